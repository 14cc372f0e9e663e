"""The database behind the API server: limited connections, and a disk that runs fill up."""

from collections.abc import Iterable
from random import Random

from harness.simulator.kfp.errors import internal
from harness.simulator.kfp.records import Run
from harness.simulator.profile import Database as Settings
from harness.simulator.workflows.graph import EXECUTOR, Graph

_STORE = "Failed to store run to table: "
LIST = "Failed to list runs: "
_NO_CONNECTION = "Error 1040: Too many connections"
_UNLIMITED = 100_000  # the highest max_connections that MySQL takes
_DISK_FULL = "Error 1114 (HY000): The table 'run_details' is full"


class Database:
    """MySQL, as far as it can make the creation of a run fail.

    A call that writes or lists runs holds a connection from `connect` to `disconnect`; the more are held, the longer it
    takes. Each run is a row with its specification and its workflow; existing rows can be changed on a full disk.
    """

    def __init__(self, settings: Settings, random: Random) -> None:
        self._random = random
        self.settings = settings
        self.connections = settings.connections  # at once; 0 is no limit
        self.held = 0  # connections in use
        self.refused = 0  # calls refused for want of a connection
        self.answered = 0  # finished calls
        self.crowded = 0.0  # share of calls that find all connections in use by other clients
        self.row_s = 0.0  # seconds per stored run for listing runs; 0 with the indexes
        self.capacity = settings.capacity
        self.used = settings.used

    def connect(self, prefix: str = _STORE) -> None:
        """Take a connection; `prefix` begins the error.

        Raises:
            RpcError: 500: none is free, in MySQL's words.
        """
        crowded = self.crowded and self._random.random() < self.crowded
        if crowded or (self.connections and self.held >= self.connections):
            self.refused += 1
            raise internal(prefix + _NO_CONNECTION)
        self.held += 1

    def limit_to(self, connections: int) -> None:
        """Set max_connections; a higher limit ends the shortage caused by other clients."""
        if connections > self.limit:
            self.crowded = 0.0
        self.connections = connections

    @property
    def limit(self) -> int:
        """The limit on connections that is in effect (max_connections)."""
        return self.connections or _UNLIMITED

    @property
    def connected(self) -> int:
        """Current connections: the API server's, the querying client's, and those of other clients."""
        return max(self.held + 1, round(self.limit * self.crowded))

    @property
    def slowdown(self) -> float:
        """Duration of a call relative to an idle database, at the current load."""
        return max(1.0, self.held / self.settings.parallel) if self.settings.parallel else 1.0

    def disconnect(self) -> None:
        """Return the connection and count the call as answered."""
        self.held -= 1
        self.answered += 1

    def listing_s(self, stored: int, page: Iterable[Run] = ()) -> float:
        """Seconds for listing a page of runs, out of that many."""
        costs = self.settings.listing
        seconds = costs.request_s + (costs.stored_s + self.row_s) * stored
        for run in page:
            tasks = run.workflow.graph.nodes if run.reports and run.workflow is not None else 0
            seconds += costs.run_s + costs.found_s * stored + costs.task_s * tasks
        return seconds

    def bytes_of(self, graph: Graph) -> float:
        """The space that a run of the pipeline takes."""
        settings, steps = self.settings, sum(plan.role == EXECUTOR for plan in graph.plans)
        return settings.spec_bytes + settings.step_bytes * steps + settings.node_bytes * graph.nodes

    def insert(self, graph: Graph) -> None:
        """Store a new run of the pipeline.

        Raises:
            RpcError: 500: full disk, in MySQL's words.
        """
        size = self.bytes_of(graph)
        if self.used + size > self.capacity:
            raise internal(_STORE + _DISK_FULL)
        self.used += size

    def delete(self, graph: Graph) -> None:
        """Delete a run's row, which frees its space."""
        self.used -= self.bytes_of(graph)
