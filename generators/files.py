"""Writes files atomically: a file gets its name only when it is complete."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from harness.model.errors import ConfigError
from harness.store import files

STDOUT = "-"


class Digested:
    """A binary file written once from start to end, with its length and SHA-256."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._sha256 = hashlib.sha256()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Write all of `data` and return its length."""
        self._out.write(data)
        self._sha256.update(data)
        size = memoryview(data).nbytes
        self.size += size
        return size

    def tell(self) -> int:
        """The number of bytes written."""
        return self.size

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._out.flush()

    def close(self) -> None:
        """Does nothing: the caller closes the file that it opened."""

    @property
    def sha256(self) -> str:
        """The digest of everything written so far, in hexadecimal."""
        return self._sha256.hexdigest()


@contextmanager
def whole_file(path: Path | str) -> Iterator[BinaryIO]:
    """A file to write: it gets its name when the context succeeds, and is removed when it fails.

    ``-`` is the standard output, where nothing can be taken back.

    Raises:
        ConfigError: the file can't be written there.
    """
    if str(path) == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder", "give a file name")
    try:
        with files.replacing(path.parent, path.name) as out:
            yield out
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}", "choose a file in a writable folder") from error


def write_text(path: Path | str, text: str) -> None:
    """Write a whole text file, or to the standard output for ``-``."""
    with whole_file(path) as out:
        out.write(text.encode())
