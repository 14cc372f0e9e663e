"""Simulation as fast as it goes: arrivals in, the records of a run folder out."""

from harness.simulator.fast.records import Arrival, Record
from harness.simulator.fast.simulation import simulate

__all__ = ["Arrival", "Record", "simulate"]
