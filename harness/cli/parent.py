"""Ends a companion process when its parent has ended, however that happened."""

import os
import threading


def stop_with_parent(stop: threading.Event) -> None:
    """Set `stop`, from a thread, once the parent of this process has ended."""
    parent = os.getppid()

    def watch() -> None:
        while not stop.wait(1.0):
            if os.getppid() != parent:
                stop.set()

    threading.Thread(target=watch, daemon=True).start()
