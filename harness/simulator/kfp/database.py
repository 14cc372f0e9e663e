"""The database behind the API server: connections that may run out, and a disk that runs fill."""

from random import Random

from harness.simulator.kfp.errors import internal
from harness.simulator.profile import Database as Settings

_STORE = "Failed to store run to table: "
LIST = "Failed to list runs: "
_NO_CONNECTION = "Error 1040: Too many connections"
_UNLIMITED = 100_000  # the highest max_connections that MySQL takes
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
        self.connections = settings.connections  # at once; 0 is no limit
        self.held = 0  # connections in use
        self._most_held = 0
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
        if crowded or (self.connections and self.held >= self.connections):
            self.refused += 1
            raise internal(wanted + _NO_CONNECTION)
        self.held += 1
        self._most_held = max(self._most_held, self.held)

    def limit_to(self, connections: int) -> None:
        """Allow so many connections at once: where that is more than before, others no longer take all of them."""
        if connections > self.limit:
            self.crowded = 0.0
        self.connections = connections

    @property
    def limit(self) -> int:
        """Its max_connections."""
        return self.connections or _UNLIMITED

    @property
    def connected(self) -> int:
        """Connections that there are: the API server's, one that asks, and those of others who don't let it in."""
        return max(self.held + 1, round(self.limit * self.crowded))

    @property
    def most_connected(self) -> int:
        """The most that there were at once."""
        return self.limit if self.refused else max(self._most_held + 1, self.connected)

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
