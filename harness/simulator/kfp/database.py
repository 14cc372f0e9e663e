"""The database behind the API server: connections that may run out, and a disk that runs fill."""

from random import Random

from harness.simulator.kfp.errors import Code, RpcError
from harness.simulator.profile import Database as Settings

_FAILED = "InternalServerError: Failed to store run to table: "
_NO_CONNECTION = "Error 1040: Too many connections"
_DISK_FULL = "Error 1114 (HY000): The table 'run_details' is full"


class Database:
    """MySQL, as far as a run's creation can fail on it.

    A call that writes holds a connection from `connect` to `disconnect`. Each run is a row that keeps its
    specification and its workflow; rows that are there can still be changed when the disk is full.
    """

    def __init__(self, settings: Settings, random: Random) -> None:
        self._random = random
        self.settings = settings
        self.held = 0  # connections in use
        self.crowded = 0.0  # share of calls that find all connections taken by others
        self.row_s = 0.0  # that reading a list spends on each run there is; nothing with the indexes that it needs
        self.capacity = settings.capacity
        self.used = settings.used

    def connect(self) -> None:
        """Take a connection.

        Raises:
            RpcError: 500: there is none, in MySQL's words.
        """
        crowded = self.crowded and self._random.random() < self.crowded
        if crowded or (self.settings.connections and self.held >= self.settings.connections):
            raise RpcError(Code.INTERNAL, _FAILED + _NO_CONNECTION)
        self.held += 1

    def disconnect(self) -> None:
        """Give it back."""
        self.held -= 1

    def insert(self) -> None:
        """Store a new run.

        Raises:
            RpcError: 500: the disk is full, in MySQL's words.
        """
        if self.used + self.settings.run_bytes > self.capacity:
            raise RpcError(Code.INTERNAL, _FAILED + _DISK_FULL)
        self.used += self.settings.run_bytes

    def delete(self) -> None:
        """Remove a run's row."""
        self.used -= self.settings.run_bytes
