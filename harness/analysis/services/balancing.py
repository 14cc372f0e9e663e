"""How long executions would wait if each went to the first worker that is free.

One queue before c workers is the best that a load balancer can do without knowing how long executions take. The waits
follow from the arrivals and service times by the recursion of Kiefer and Wolfowitz (Transactions of the American
Mathematical Society 78, 1955): an execution starts when the first of the workers is free, or when it comes.
"""

from heapq import heapify, heapreplace

import numpy as np

from harness.analysis.timeline import Floats


def balanced_waits(came: Floats, takes: Floats, workers: int) -> Floats:
    """Seconds that each execution waits, served in the order in which they come; shape (n,).

    Args:
        came: instants of arrival, seconds, shape (n,), in any order.
        takes: how long each keeps a worker, seconds, shape (n,).
        workers: how many there are, at least 1.
    """
    order = np.argsort(came, kind="stable")
    free = [-np.inf] * workers
    heapify(free)
    waits = np.empty(came.size)
    for place, at, long in zip(order.tolist(), came[order].tolist(), takes[order].tolist(), strict=True):
        starts = max(at, free[0])
        waits[place] = starts - at
        heapreplace(free, starts + long)
    return waits
