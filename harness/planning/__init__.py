"""Capacity answers, comparisons, experiments, trials on a node pool, and simulation of recorded platforms."""
