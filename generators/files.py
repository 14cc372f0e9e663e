"""Writing a file so that its name never stands for half of it."""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from harness.model.errors import ConfigError

STDOUT = "-"


class Digested:
    """A binary file that is written once from start to end, and knows its length and SHA-256."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._sha256 = hashlib.sha256()
        self.size = 0
        self.closed = False
        self.failure: OSError | None = None  # what went wrong: Polars passes on its text, but not its kind

    def write(self, data: bytes) -> int:
        """Write all of `data`."""
        try:
            self._out.write(data)
        except OSError as error:
            self.failure = error
            raise
        self._sha256.update(data)
        size = memoryview(data).nbytes
        self.size += size
        return size

    def tell(self) -> int:
        """How much has been written."""
        return self.size

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._out.flush()

    def close(self) -> None:
        """The file is closed by whoever opened it."""

    @property
    def sha256(self) -> str:
        """Of everything written so far, in hexadecimal."""
        return self._sha256.hexdigest()


@contextmanager
def whole_file(path: Path | str) -> Iterator[BinaryIO]:
    """A file to write: it gets its name when the context ends well, and leaves nothing when it does not.

    ``-`` is the standard output, which can't be taken back.

    Raises:
        ConfigError: the file can't be written there.
    """
    if str(path) == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        out = partial.open("wb", buffering=0)
    except OSError as error:
        raise ConfigError(
            f"{path} can't be written: {error.strerror}", "name a file in a folder you can write to"
        ) from error
    try:
        with out:
            yield cast("BinaryIO", out)
        if path.is_dir():
            raise ConfigError(f"{path} is a folder", "name a file")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write a whole text file, or to the standard output for ``-``."""
    with whole_file(path) as out:
        out.write(text.encode())
