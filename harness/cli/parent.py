"""Processes that accompany another one end when it is gone, however it ended."""

import os
import threading


def stop_with_parent(stop: threading.Event) -> None:
    """Set `stop`, from a thread, once this process has been handed to another parent."""
    parent = os.getppid()

    def watch() -> None:
        while not stop.wait(1.0):
            if os.getppid() != parent:
                stop.set()

    threading.Thread(target=watch, daemon=True).start()
