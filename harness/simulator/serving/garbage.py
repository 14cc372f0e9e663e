"""Garbage collection of a process that serves for days and holds a large model.

Python looks for cycles of garbage among all that has grown old, which stops a model of 50,000 pods for seconds. What a
run, an execution or a connection holds is freed without, when it is over, and what requests leave is found among the
young, in milliseconds. What remains is little, as refused requests whose errors know each other and were slow to go; it
is looked for in moments in which nobody waits, and a model that knows no such moment grows by no more than that.
"""

import gc
import sys
import time

_NEVER = 2**31 - 1  # collections of the young for one of the old
_WORTH_IT = 1_000  # requests since the last look
_BLOCK_S = 1e-6  # to look at one block of memory, before it was ever measured: too long rather than too short
_MARGIN = 2.0  # by how much a look may take longer than it took the last time
_UNNOTICED_S = 0.01  # of a look while others wait


class Collector:
    """Looks in the place of Python, whose own looks at what is old are off from its making on."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # modules stay
        gc.set_threshold(5_000, 2, _NEVER)
        self._block_s = _BLOCK_S
        self._seen = self._cleaned = 0

    def look(self, requests: int, quiet_s: float) -> bool:
        """Collect if there may be something and time for it; returns whether it did.

        Args:
            requests: how many were answered so far.
            quiet_s: how long nothing is due, unless a request comes.
        """
        idle, self._seen = requests == self._seen, requests
        needed_s = _MARGIN * self._block_s * sys.getallocatedblocks()
        if requests - self._cleaned < _WORTH_IT or needed_s > (quiet_s if idle else _UNNOTICED_S):
            return False
        blocks, begun = sys.getallocatedblocks(), time.perf_counter()
        gc.collect()
        self._block_s = (time.perf_counter() - begun) / blocks
        self._cleaned = requests
        return True
