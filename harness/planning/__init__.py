"""Capacity answers, comparisons, experiments, trials on a node pool, and calibrated simulation."""
