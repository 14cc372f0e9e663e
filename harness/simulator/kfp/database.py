"""The database behind the API server: connections that may run out, and a disk that runs fill."""

from random import Random

from harness.simulator.kfp.errors import internal
from harness.simulator.profile import Database as Settings

_STORE = "Failed to store run to table: "
LIST = "Failed to list runs: "
_NO_CONNECTION = "Error 1040: Too many connections"
_DISK_FULL = "Error 1114 (HY000): The table 'run_details' is full"


class Database:
    """MySQL, as far as a run's creation can fail on it.

    A call that writes, or lists runs, holds a connection from `connect` to `disconnect`, and takes the longer the more
    are held. Each run is a row that keeps its specification and its workflow; rows that are there can still be changed
    when the disk is full.
    """

    def __init__(self, settings: Settings, random: Random) -> None:
        self._random = random
        self.settings = settings
        self.held = 0  # connections in use
        self.refused = 0  # calls that found none
        self.answered = 0  # calls that are over
        self.crowded = 0.0  # share of calls that find all connections taken by others
        self.row_s = 0.0  # that reading a list spends on each run there is; nothing with the indexes that it needs
        self.capacity = settings.capacity
        self.used = settings.used

    def connect(self, wanted: str = _STORE) -> None:
        """Take a connection; `wanted` is what fails without one.

        Raises:
            RpcError: 500: there is none, in MySQL's words.
        """
        crowded = self.crowded and self._random.random() < self.crowded
        if crowded or (self.settings.connections and self.held >= self.settings.connections):
            self.refused += 1
            raise internal(wanted + _NO_CONNECTION)
        self.held += 1

    @property
    def slowdown(self) -> float:
        """How much longer a call takes than alone, with as many at work as now."""
        return max(1.0, self.held / self.settings.parallel) if self.settings.parallel else 1.0

    def disconnect(self) -> None:
        """Give it back."""
        self.held -= 1
        self.answered += 1

    def insert(self) -> None:
        """Store a new run.

        Raises:
            RpcError: 500: the disk is full, in MySQL's words.
        """
        if self.used + self.settings.run_bytes > self.capacity:
            raise internal(_STORE + _DISK_FULL)
        self.used += self.settings.run_bytes

    def delete(self) -> None:
        """Remove a run's row."""
        self.used -= self.settings.run_bytes
