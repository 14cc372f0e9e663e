"""Calls of drivers and launchers to the API server, where KFP keeps the state of tasks there."""

from collections.abc import Callable

from harness.simulator.cluster import Pod
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.server import Server

_TASK = "Failed to update task: "
_RETRY_S = 1.0  # after a refused call


class TaskCalls:
    """Each call holds a connection to the database; calls of one pod come one after the other."""

    def __init__(self, loop: EventLoop, server: Server, calls: int) -> None:
        self._loop = loop
        self._server = server
        self._calls = calls
        self.answered = 0

    def make(self, pod: Pod, then: Callable[[Pod], None]) -> None:
        """Make the calls of one driver or launcher; then its own work begins."""
        self._call(pod, then, self._calls)

    def _call(self, pod: Pod, then: Callable[[Pod], None], left: int) -> None:
        if pod.over or pod.deleting is not None:
            return
        if not left:
            then(pod)
            return
        database = self._server.database
        try:
            database.connect(_TASK)
        except RpcError:
            self._loop.after(_RETRY_S, self._call, pod, then, left)
            return
        self._loop.after(self._server.latency_s() * database.slowdown, self._answered, pod, then, left - 1)

    def _answered(self, pod: Pod, then: Callable[[Pod], None], left: int) -> None:
        self._server.database.disconnect()
        self.answered += 1
        self._call(pod, then, left)
