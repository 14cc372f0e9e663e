"""A run is a folder. Three processes meet only there: the load, the observer, the analysis.

Records are JSON lines, one unbuffered `write` each, on a descriptor opened for appending: what has been acknowledged
survives ``kill -9``, and two processes may append to the same file. A torn last line is dropped by every reader.
"""

import csv
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, get_type_hints

import orjson

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.records import Event, Node, Sample, Span, Submission
from harness.store import files

# The kinds of records and the file each is kept in.
KINDS: Mapping[type, str] = {
    Submission: "submissions",
    Span: "spans",
    Sample: "samples",
    Event: "events",
    Node: "nodes",
}
MANIFEST = "manifest.json"
SCHEDULE = "schedule.csv"
SCENARIOS = "scenarios.csv"
PIPELINE = "pipeline.yaml"
LIVE, _LIVE_LOCK = "live.json", ".live.lock"
REPORT = "report.json"
TABLES = "tables"

R = TypeVar("R")


class RunFolder:
    """The folder of one run, at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    @classmethod
    def create(cls, runs_dir: Path, name: str) -> Self:
        """Make a new folder `name` below `runs_dir`; a name in use gets a number.

        Raises:
            ConfigError: the folder can't be made or written.
        """
        safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
        for k in range(1, 10_000):
            path = runs_dir / (safe if k == 1 else f"{safe}-{k}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                if runs_dir.is_dir():
                    continue
                raise ConfigError(
                    f"the runs folder {runs_dir} is not a folder", "give another place with --runs-dir"
                ) from None
            except OSError as error:
                raise ConfigError(
                    f"the run folder {path} can't be made: {error.strerror}", "give a writable place with --runs-dir"
                ) from error
            if not os.access(path, os.W_OK):
                raise ConfigError(f"the run folder {path} can't be written", "give a writable place with --runs-dir")
            return cls(path)
        raise ConfigError(f"{runs_dir} holds too many runs named {safe}", "give another name with --run-name")

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing run folder.

        Raises:
            ConfigError: there is no run at `path`.
        """
        if not path.is_dir():
            raise ConfigError(f"there is no run folder at {path}", "name a folder below runs/")
        if not (path / MANIFEST).is_file():
            raise ConfigError(f"{path} is not a run folder: it has no {MANIFEST}", "name a folder below runs/")
        return cls(path)

    # --- the plan -----------------------------------------------------------------------------------------------

    def write_plan(self, plan: Plan) -> None:
        """The manifest: written first, replaced as a whole."""
        self.replace(MANIFEST, orjson.dumps(plan, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")

    def read_plan(self) -> Plan:
        """The manifest as a Plan; fields of a newer version are left aside.

        Raises:
            ConfigError: the manifest is not readable.
        """
        try:
            return Plan.from_mapping(orjson.loads((self.path / MANIFEST).read_bytes()))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigError(
                f"{self.path / MANIFEST} can't be read: {error}", "the folder may be from another tool, or damaged"
            ) from error

    def write_schedule(self, offsets: Iterable[float]) -> tuple[int, str]:
        """Write ``seq,due_s`` and return the count of arrivals and the file's SHA-256."""
        digest = hashlib.sha256()
        count = -1  # the first line is the heading
        with (self.path / SCHEDULE).open("wb") as out:
            for line in _schedule_lines(offsets):
                digest.update(line)
                out.write(line)
                count += 1
        return count, digest.hexdigest()

    def read_schedule(self) -> list[float]:
        """The due times, seconds after t0, by seq."""
        with (self.path / SCHEDULE).open(encoding="ascii", newline="") as text:
            rows = csv.reader(text)
            next(rows, None)
            return [float(row[1]) for row in rows if len(row) == 2]

    def keep(self, name: str, content: bytes) -> str:
        """Keep an input of the test (scenarios, pipeline) in the folder and return its SHA-256."""
        self.replace(name, content)
        return hashlib.sha256(content).hexdigest()

    # --- records ------------------------------------------------------------------------------------------------

    def recorder(self) -> "Recorder":
        """Something that appends records to this folder."""
        return Recorder(self.path)

    def tail(self, kind: type[R]) -> "Tail[R]":
        """A reader that returns what has been appended since it was last asked."""
        return Tail(self.path / f"{KINDS[kind]}.jsonl", kind)

    def records(self, kind: type[R]) -> list[R]:
        """All records of a kind, in the order of writing."""
        return self.tail(kind).read()

    # --- live ---------------------------------------------------------------------------------------------------

    def write_live(self, part: str, values: Mapping[str, object]) -> None:
        """Replace what `part` ("load", "observer" or "findings") says of the present; what the others said stays.

        Each part says in `at` (UTC ns) when it said so. Readers see old or new, never half.

        Raises:
            OSError: the folder can't be written.
        """
        with files.turn(self.path / _LIVE_LOCK):
            said = self._read_live() | {part: {"at": time.time_ns(), **values}}
            self.replace(LIVE, orjson.dumps(said))

    def read_live(self, part: str) -> dict[str, Any]:
        """What `part` last said; empty when it has not said anything yet."""
        return self._read_live().get(part, {})

    def _read_live(self) -> dict[str, dict[str, Any]]:
        try:
            live: dict[str, dict[str, Any]] = orjson.loads((self.path / LIVE).read_bytes())
        except (OSError, ValueError):
            return {}
        return live

    # --- documents ----------------------------------------------------------------------------------------------

    def replace(self, name: str, content: bytes) -> Path:
        """Write a document of the folder as a whole or not at all."""
        return files.replace(self.path / name, content)


class Recorder:
    """Appends records to a run folder, each with one unbuffered write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptors: dict[type, int] = {}

    def write(self, record: object) -> None:
        """Append one record; when this returns, the record survives the end of the process."""
        self.append(type(record), encode(record))

    def append(self, kind: type, lines: bytes) -> None:
        """Append lines that `encode` made, here or in another process."""
        descriptor = self._descriptors.get(kind)
        if descriptor is None:
            name = self._path / f"{KINDS[kind]}.jsonl"
            descriptor = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._descriptors[kind] = descriptor
        view = memoryview(lines)
        while view:
            view = view[os.write(descriptor, view) :]

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Tail(Generic[R]):
    """Reads a growing file of records; a line without its end is left for the next time."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self._kind = kind
        self._offset = 0
        self._decode = _decoder(kind)

    def read(self) -> list[R]:
        """The records that are new since the last call."""
        try:
            with self._path.open("rb") as lines:
                lines.seek(self._offset)
                new = lines.read()
        except FileNotFoundError:
            return []
        whole = new.rfind(b"\n") + 1
        self._offset += whole
        return list(self._records(new[:whole]))

    def _records(self, lines: bytes) -> Iterator[R]:
        for line in lines.splitlines():
            try:
                raw = orjson.loads(line)
            except ValueError:
                continue  # a writer was killed in the middle of a line and another went on after it
            yield self._decode(raw)


def encode(record: object) -> bytes:
    """One record as a JSON line. A mapping becomes a JSON string, so that every column of the table is a scalar."""
    if isinstance(record, Sample):
        raw = asdict(record)
        raw["labels"] = orjson.dumps(raw["labels"], option=orjson.OPT_SORT_KEYS).decode()
        return orjson.dumps(raw, option=orjson.OPT_APPEND_NEWLINE)
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _decoder(kind: type[R]) -> Any:
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    enums = {
        name: hint for name, hint in get_type_hints(kind).items() if isinstance(hint, type) and issubclass(hint, Enum)
    }

    def decode(raw: dict[str, Any]) -> R:
        values = {name: value for name, value in raw.items() if name in names}
        for name, hint in enums.items():
            values[name] = hint(values[name])
        if isinstance(values.get("labels"), str):
            values["labels"] = orjson.loads(values["labels"])
        return kind(**values)

    return decode


def schedule_digest(offsets: Iterable[float]) -> str:
    """The SHA-256 that the schedule's file will have."""
    digest = hashlib.sha256()
    for line in _schedule_lines(offsets):
        digest.update(line)
    return digest.hexdigest()


def _schedule_lines(offsets: Iterable[float]) -> Iterator[bytes]:
    yield b"seq,due_s\n"
    for seq, due_s in enumerate(offsets):
        yield f"{seq},{due_s!r}\n".encode()


def run_name(target: str, schedule: str, runs: int, now_at: int) -> str:
    """The default name of a run folder: ``<utc>-<target>-<schedule>-<runs>``."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_at / 1e9))
    return f"{stamp}-{target}-{schedule}-{runs}"
