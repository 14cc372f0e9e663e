"""A claim on a run folder: one process at a time adds records of the load to it."""

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.model.errors import ConfigError


class Claim:
    """Held by a running test and by a recovery; it ends with the process, even by a kill.

    Raises:
        ConfigError: another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                return  # a file system without locks
            self.release()
            raise ConfigError(
                f"{folder} is in use: its test is still running, or its records are being recovered",
                "try again when that is over",
            ) from error

    def release(self) -> None:
        """End the claim."""
        if self._descriptor is not None:
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # gevent's `os.close` may come later
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
