"""Simulated tests with injected faults, judged against the truth: the data of the detectors' benchmark."""
