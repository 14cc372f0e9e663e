"""Decides and simulates ahead: calibration, search, experiments, trials on a node pool."""
