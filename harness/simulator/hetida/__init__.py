"""hetida designer: a model of backend, runtime workers and adapters, and the endpoints that serve it."""

from harness.simulator.hetida.execution import Ending, Job
from harness.simulator.hetida.service import Replica, Service

__all__ = ["Ending", "Job", "Replica", "Service"]
