"""Spools: what a worker has recorded and the master may not have yet, in a file on the worker's machine.

The first line says whose records follow: one JSON object with the spool's format, the test's id, the name of its run
folder, the worker's index, and `start`. A position counts the bytes of all records of one worker in one test; the file
holds those from `start` on, each a JSON line as in the run folder.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from harness.model import ConfigError, Event, Sample, Span, Submission

FORMAT = 1
# The records of a load generator, and a field that only this kind has.
_MARKS: tuple[tuple[type, str], ...] = ((Submission, "outcome"), (Span, "phase"), (Event, "reason"), (Sample, "metric"))
_PREFIX, _SUFFIX = "pipeswarm-spool-", ".jsonl"
_LONGEST_LINE = 4 * 2**20
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose records a spool holds, and from which position on."""

    test: str
    run: str
    worker: int
    start: int = 0
    format: int = FORMAT


class Spool:
    """Writes one spool. The file is made with the first record, and locked until it is closed.

    Attributes:
        path: of the file.
        end: the position after the last record in it.
    """

    def __init__(self, path: Path, origin: Origin) -> None:
        self.path = path
        self._origin = origin
        self._descriptor: int | None = None
        self.end = origin.start

    @property
    def start(self) -> int:
        """The position of the first record in it."""
        return self._origin.start

    def append(self, lines: bytes) -> None:
        """Add records: all of them or none.

        Raises:
            OSError: the file can't be written.
        """
        descriptor = self._descriptor
        if descriptor is None:
            descriptor = self._open()
        size = os.lseek(descriptor, 0, os.SEEK_END)
        try:
            _write(descriptor, lines)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        self.end += len(lines)

    def restart(self, start: int) -> None:
        """Drop all records, for those from position `start` on."""
        self.remove()
        self._origin = replace(self._origin, start=start)
        self.end = start

    def close(self) -> None:
        """Close the file and unlock it; it stays."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # gevent's `os.close` may come later
            os.close(self._descriptor)
            self._descriptor = None

    def remove(self) -> None:
        """Delete the file."""
        if self._descriptor is not None:
            self.path.unlink(missing_ok=True)
        self.close()

    def _open(self) -> int:
        descriptor = os.open(self.path, _CREATE, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write(descriptor, orjson.dumps(self._origin, option=orjson.OPT_APPEND_NEWLINE))
        except OSError:
            self.path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return descriptor


def spool_path(test: str, worker: int) -> Path:
    """Where a worker of this machine keeps its spool. A test's id can't be guessed, so neither can the name.

    Raises:
        ConfigError: `test` is not an id.
    """
    if not (test.isascii() and test.isalnum()):
        raise ConfigError(f"{test!r} is not the id of a test", "the master and this worker need the same version")
    return _directory() / f"{_PREFIX}{os.getuid()}-{test}-{worker}{_SUFFIX}"


def leftovers(test: str = "*") -> list[Path]:
    """The spools of this user on this machine that no worker holds any more; of one test or of all."""
    paths = sorted(_directory().glob(f"{_PREFIX}{os.getuid()}-{test}-*{_SUFFIX}"))
    return [path for path in paths if not is_held(path)]


def is_held(path: Path) -> bool:
    """Whether a worker lives that writes this spool, or is stopped by a signal; false if there is none."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def read_spool(path: Path) -> tuple[Origin, Iterator[bytes]]:
    """Whose spool it is, and its complete lines; a torn last one is left out.

    Raises:
        ConfigError: there is no spool at `path`, or, while the lines are read, a line is too long for a record.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        raise ConfigError(
            f"the spool {path} can't be read: {error.strerror}", "give the file a worker named"
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(f"the spool {path} is not a regular file", "give the file a worker named")
        origin, begin = _origin(path, file.readline(_LONGEST_LINE)), file.tell()
    return origin, _lines(path, begin)


def lines_from(path: Path, test: str, worker: int, position: int) -> bytes | None:
    """The records from `position` on in the spool of this worker; none if its spool is not here."""
    try:
        origin, lines = read_spool(path)
        if (origin.test, origin.worker) != (test, worker) or origin.start > position:
            return None
        return b"".join(lines)[position - origin.start :]
    except ConfigError:
        return None


def kind_of(raw: Mapping[str, Any]) -> type | None:
    """The kind of a load generator's record; none if it is something else."""
    return next((kind for kind, mark in _MARKS if mark in raw), None)


def _origin(path: Path, line: bytes) -> Origin:
    hint = "give a file whose name begins with " + _PREFIX
    try:
        raw = orjson.loads(line)
        origin = Origin(**raw)
    except (ValueError, TypeError):
        raise ConfigError(f"{path} is not a spool", hint) from None
    kinds = {name: type(value) for name, value in asdict(origin).items()}
    if kinds != {"test": str, "run": str, "worker": int, "start": int, "format": int}:
        raise ConfigError(f"{path} is not a spool", hint)
    if origin.format != FORMAT:
        raise ConfigError(f"{path} is a spool of format {origin.format}; this version reads {FORMAT}",
                          "use the version of Pipeswarm that the worker had")  # fmt: skip
    return origin


def _lines(path: Path, begin: int) -> Iterator[bytes]:
    with os.fdopen(os.open(path, _READ), "rb") as file:
        file.seek(begin)
        while line := file.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise ConfigError(
                    f"{path} is damaged: a line has more than {_LONGEST_LINE:,} bytes", "give another file"
                )
            if line.endswith(b"\n"):
                yield line


def _directory() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # every temporary folder is full
        return Path("/tmp")  # noqa: S108  # spools are made with O_EXCL and names that can't be guessed


def _write(descriptor: int, lines: bytes) -> None:
    view = memoryview(lines)
    while view:
        view = view[os.write(descriptor, view) :]
