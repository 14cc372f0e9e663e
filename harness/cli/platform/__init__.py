"""Verbs of simulated platforms and of disturbances."""
