"""Processes of a pool: the one that made them decides when they end."""

import os
import signal
import threading
from multiprocessing import parent_process


def follow_parent() -> None:
    """Initialise a process of a pool: leave Ctrl-C, which reaches it too, to the parent, and end when that is gone.

    A parent that is killed closes no pool, and its processes would wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
