"""Garbage collection of a process that serves for days and holds a large model.

Python's full collections scan all old objects, which stops a model of 50,000 pods for seconds. Runs, executions and
connections are freed by reference counting, and young collections find what requests leave, in milliseconds. Little
remains, such as refused requests whose errors refer to each other; full collections for it run in idle moments only,
and a model that is never idle grows by no more than that.
"""

import gc
import sys
import time

_NEVER = 2**31 - 1  # effectively disables automatic full collections
_WORTHWHILE = 1_000  # requests since the last full collection
_BLOCK_S = 1e-6  # initial estimate of the time to scan one memory block, on the high side
_MARGIN = 2.0  # a collection may take this many times as long as the last one
_UNNOTICED_S = 0.01  # duration of a collection that delays no request noticeably


class Collector:
    """Runs full garbage collections in place of Python, whose automatic ones it disables."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # exempts loaded modules
        gc.set_threshold(5_000, 2, _NEVER)
        self._block_s = _BLOCK_S
        self._seen = self._cleaned = 0

    def collect_if_idle(self, requests: int, quiet_s: float) -> bool:
        """Collect if worthwhile and nothing is delayed; returns whether it did.

        Args:
            requests: number of requests answered so far.
            quiet_s: seconds until the next simulated action.
        """
        idle, self._seen = requests == self._seen, requests
        needed_s = _MARGIN * self._block_s * sys.getallocatedblocks()
        if requests - self._cleaned < _WORTHWHILE or needed_s > (quiet_s if idle else _UNNOTICED_S):
            return False
        blocks, begun = sys.getallocatedblocks(), time.perf_counter()
        gc.collect()
        self._block_s = (time.perf_counter() - begun) / blocks
        self._cleaned = requests
        return True
