"""Simulation as fast as it goes: arrivals in, the records of a run folder out."""

from harness.simulator.fast.records import Arrival, Compact, Record
from harness.simulator.fast.simulation import simulate_compactly

__all__ = ["Arrival", "Compact", "Record", "simulate_compactly"]
