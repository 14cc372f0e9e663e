"""Chooses the next point of an experiment: search, grid, interleaved comparison."""
