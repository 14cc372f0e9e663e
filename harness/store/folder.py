"""A run is a folder: the only place where load, observer and analysis meet.

Records are JSON lines, one unbuffered `write` each, on a descriptor opened for appending: an acknowledged record
survives ``kill -9``, and two processes may append to the same file. Every reader drops a torn last line.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from functools import lru_cache
from itertools import cycle, islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypeVar, get_origin, get_type_hints

import orjson

from harness import reading
from harness.model import Event, Node, Plan, PodSpans, Sample, Span, Submission
from harness.model.errors import ConfigError, suggestion
from harness.store import checks, csv_files, files, manifest, names

# The kinds of records and the file of each.
KINDS: Mapping[type, str] = {
    Submission: "submissions",
    Span: "spans",
    Sample: "samples",
    Event: "events",
    Node: "nodes",
}
# The fields of each kind, and those whose JSON value needs a conversion: enumerations and mappings.
_HINTS = {kind: get_type_hints(kind) for kind in KINDS}
_ENUMS = {
    kind: {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Enum)}
    for kind, hints in _HINTS.items()
}
_MAPPINGS = {
    kind: tuple(name for name, hint in hints.items() if get_origin(hint) is Mapping) for kind, hints in _HINTS.items()
}
MANIFEST, SCHEDULE = names.MANIFEST, "schedule.csv"
SCENARIOS = "scenarios.csv"
PIPELINE = "pipeline.yaml"
ORIGINAL = "pipeline-original.yaml"  # before it was prepared for the test
LIVE, _LIVE_LOCK = "live.json", ".live.lock"
REPORT, REPORT_HTML, REPORT_MARKDOWN, JUNIT = "report.json", "report.html", "report.md", "junit.xml"
INDEX = "index.html"  # of a folder of runs
TABLES = "tables"

MOST_RECORDS = 2**33  # bytes of a file
_CHUNK = 2**20
DAMAGED = "the folder may be damaged, or from another tool"

R = TypeVar("R")


class RunFolder:
    """The folder of one run, at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    @classmethod
    def create(cls, runs_dir: Path, name: str, *, exactly: bool = False, overwrite: bool = False) -> Self:
        """Create a folder `name` below `runs_dir`.

        A name in use gets a number. If it is meant `exactly`, it is refused, or replaces the former run (`overwrite`).

        Raises:
            ConfigError: the folder can't be created or written.
        """
        if exactly and overwrite:
            names.remove_run(runs_dir, name)
        safe = names.safe_name(name)
        for k in range(1, 10_000):
            path = runs_dir / (safe if k == 1 else f"{safe}-{k}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                if exactly and runs_dir.is_dir():
                    raise names.used(runs_dir, name) from None
                if runs_dir.is_dir():
                    continue
                raise ConfigError(f"{runs_dir} is not a folder", "give a folder for the runs with --runs-dir") from None
            except OSError as error:
                raise ConfigError(
                    f"the run folder {path} can't be created: {error.strerror}",
                    "give a writable folder with --runs-dir",
                ) from error
            if not os.access(path, os.W_OK):
                raise ConfigError(f"the run folder {path} can't be written", "give a writable folder with --runs-dir")
            return cls(path)
        raise ConfigError(f"{runs_dir} contains too many runs named {safe}", "give another name with --run-name")

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing run folder.

        Raises:
            ConfigError: there is no run at `path`.
        """
        if not path.is_dir():
            near = suggestion(path.name, [each.parent.name for each in path.parent.glob(f"*/{MANIFEST}")])
            raise ConfigError(f"there is no run folder at {path}", f"{near}give a folder below runs/")
        if not cls(path).has(MANIFEST):
            raise ConfigError(f"{path} is not a run folder: it has no {MANIFEST}", "give a folder below runs/")
        return cls(path)

    # --- the plan -----------------------------------------------------------------------------------------------

    def write_plan(self, plan: Plan) -> None:
        """Write the manifest: before anything else, and atomically."""
        self.replace(MANIFEST, manifest.written(plan))

    def read_plan(self) -> Plan:
        """The manifest as a Plan; see `harness.store.manifest.parsed`.

        Raises:
            ConfigError: the manifest is not readable.
        """
        file = self.path / MANIFEST
        try:
            return manifest.parsed(self.read_bytes(MANIFEST), file)
        except OSError as error:
            raise ConfigError(f"{file} can't be read: {error.strerror}", "the folder may be damaged") from error

    def write_schedule(
        self, offsets: Iterable[float], scenarios: Sequence[str] = (), tenants: Sequence[str] = ()
    ) -> tuple[int, str]:
        """Write ``seq,due_s``; return the count of arrivals and the SHA-256 of that, see `harness.store.csv_files`.

        `scenarios` are the scenarios' ids by arrival where they are not taken in turn, `tenants` the tenants where the
        schedule names them: further columns.
        """
        with files.replacing(self.path, SCHEDULE) as out:
            return csv_files.write_schedule(out, offsets, {"scenario_id": scenarios, "tenant": tenants})

    def read_schedule(self) -> list[float]:
        """The due times, seconds after t0, by seq.

        Raises:
            OSError: there is no schedule.
            ConfigError: it is damaged.
        """
        with reading.structured(self.path / SCHEDULE), self.open_file(SCHEDULE, MOST_RECORDS) as file:
            return [float(due_s) for due_s in csv_files.column(file, "due_s")]

    def read_scenario_ids(self, count: int | None = None) -> tuple[str, ...]:
        """The scenarios' ids by arrival, as the schedule names them or in turn; none where scenarios are unknown.

        `count` are the arrivals, where the schedule does not say it.

        Raises:
            OSError: there is no schedule.
            ConfigError: schedule or scenarios are damaged.
        """
        with reading.structured(self.path / SCHEDULE), self.open_file(SCHEDULE, MOST_RECORDS) as file:
            named = tuple(csv_files.column(file, "scenario_id"))
        if named or not self.has(SCENARIOS):
            return named
        with reading.structured(self.path / SCENARIOS), self.open_file(SCENARIOS, MOST_RECORDS) as file:
            ids = tuple(csv_files.column(file, "id"))
        return tuple(islice(cycle(ids), self.count_arrivals() if count is None else count))

    def read_tenants(self) -> tuple[str, ...]:
        """The tenants by arrival; none where the schedule does not name them.

        Raises:
            OSError: there is no schedule.
            ConfigError: it is damaged.
        """
        with reading.structured(self.path / SCHEDULE), self.open_file(SCHEDULE, MOST_RECORDS) as file:
            return tuple(csv_files.column(file, "tenant"))

    def count_arrivals(self) -> int | None:
        """How many arrivals the schedule has; None where there is no schedule."""
        if not self.has(SCHEDULE):
            return None
        with self.open_file(SCHEDULE, MOST_RECORDS) as lines:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: lines.read(_CHUNK), b"")) - 1

    def keep(self, name: str, content: bytes) -> str:
        """Copy an input of the test (scenarios, pipeline) into the folder and return its SHA-256."""
        self.replace(name, content)
        return hashlib.sha256(content).hexdigest()

    # --- records ------------------------------------------------------------------------------------------------

    def recorder(self) -> "Recorder":
        """Open this folder for appending records."""
        return Recorder(self.path)

    def tail(self, kind: type[R]) -> "Tail[R]":
        """A reader of the records appended since its last call."""
        return Tail(self.path / f"{KINDS[kind]}.jsonl", kind)

    def records(self, kind: type[R]) -> list[R]:
        """All records of a kind, in the order of writing."""
        return self.tail(kind).read()

    # --- live ---------------------------------------------------------------------------------------------------

    def write_live(self, part: str, values: Mapping[str, object]) -> None:
        """Replace the live state of `part` ("load", "observer" or "findings"); the others' states stay.

        `at` (UTC ns) is added to each. Readers see the old or the new state.

        Raises:
            OSError: the folder can't be written.
        """
        with files.locked(self.path, _LIVE_LOCK):
            states = self._read_live() | {part: {"at": time.time_ns(), **values}}
            self.replace(LIVE, orjson.dumps(states))

    def read_live(self, part: str) -> dict[str, Any]:
        """The last live state of `part`; empty when it has none yet."""
        return self._read_live().get(part, {})

    def _read_live(self) -> dict[str, dict[str, Any]]:
        try:
            live = reading.parse_json(self.read_bytes(LIVE), LIVE)
        except (OSError, ConfigError):
            return {}
        return (
            {part: state for part, state in live.items() if isinstance(state, dict)} if isinstance(live, dict) else {}
        )

    # --- documents ----------------------------------------------------------------------------------------------

    def open_file(self, name: str, most: int = reading.MOST_BYTES) -> BinaryIO:
        """A file of the folder, opened for reading.

        Raises:
            OSError: it can't be opened.
            ConfigError: it is a link, no file, or larger than `most` bytes.
        """
        return files.open_file(self.path, name, most)

    def read_bytes(self, name: str, most: int = reading.MOST_BYTES) -> bytes:
        """The content of a file of the folder; raises as `open_file` does."""
        with self.open_file(name, most) as file:
            return file.read()

    def has(self, name: str) -> bool:
        """Whether the folder has a file of that name."""
        return files.size_of(self.path, name) is not None

    def replace(self, name: str, content: bytes) -> Path:
        """Write a file of the folder as a whole or not at all, and return its path."""
        return files.replace(self.path, name, content)


class Recorder:
    """Appends records to a run folder, each with one unbuffered write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptors: dict[type, int] = {}

    def write(self, record: object) -> None:
        """Append one record; once this returns, the record survives the end of the process."""
        self.append(kind_of(record), encode(record))

    def append(self, kind: type, lines: bytes) -> None:
        """Append lines made by `encode`, here or in another process."""
        descriptor = self._descriptors.get(kind)
        if descriptor is None:
            name = f"{KINDS[kind]}.jsonl"
            descriptor = files.descriptor(self._path, name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._descriptors[kind] = descriptor
        view = memoryview(lines)
        while view:
            view = view[os.write(descriptor, view) :]

    def close(self) -> None:
        """Close the files; a further write opens them again."""
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
    """Reads a growing file of records; an incomplete last line is left for the next call."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path = path
        self._kind = kind
        self._offset = 0

    def read(self) -> list[R]:
        """The records appended since the last call."""
        try:
            with files.open_file(self._path.parent, self._path.name, MOST_RECORDS) as lines:
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
                continue  # a writer was killed within a line, and another one appended to it
            if problem := checks.problem(self._kind, raw):
                raise ConfigError(f"{self._path}: {problem}: {line[:200].decode(errors='replace')}", DAMAGED)
            yield decode(self._kind, raw)


def kind_of(record: object) -> type:
    """The kind of lines that `encode` makes of a record."""
    return Span if type(record) is PodSpans else type(record)


def encode(record: object) -> bytes:
    """A record as a JSON line, a pod's spans as one each.

    A mapping becomes a JSON string, so that every column of the table is a scalar.
    """
    if type(record) is PodSpans:
        return _encode_spans(record)
    if mappings := _MAPPINGS[type(record)]:
        raw = asdict(record)  # type: ignore[call-overload]  # every kind is a dataclass
        raw |= {name: orjson.dumps(raw[name], option=orjson.OPT_SORT_KEYS).decode() for name in mappings}
        return orjson.dumps(raw, option=orjson.OPT_APPEND_NEWLINE)
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def _encode_spans(pod: PodSpans) -> bytes:
    """The lines that `encode` would make of its spans: they differ in the phase and the two instants only."""
    head, tail = f'{{"run":{_text(pod.run)},"step":{orjson.dumps(pod.step).decode()},"phase":"', _span_end(pod)
    bounds = ["null" if at is None else str(at) for at in pod.bounds]
    return "".join(
        [
            f'{head}{phase}","started_at":{begun_at},"ended_at":{ended_at}{tail}{_text(pod.reasons.get(k, ""))}}}\n'
            for k, (phase, begun_at, ended_at) in enumerate(zip(pod.phases, bounds, bounds[1:], strict=False))
        ]
    ).encode()


def _span_end(pod: PodSpans) -> str:
    task, node, source = _text(pod.task), _text(pod.node), _text(pod.source)
    return f',"task":{task},"attempt":0,"node":{node},"source":{source},"resolution_s":0.0,"reason":'


@lru_cache(2**14)
def _text(value: str | None) -> str:
    return orjson.dumps(value).decode()


def decode(kind: type[R], raw: Mapping[str, Any]) -> R:
    """The record; fields of a newer version are ignored."""
    values = {name: value for name, value in raw.items() if name in _HINTS[kind]}
    values |= {name: enum(values[name]) for name, enum in _ENUMS[kind].items()}
    values |= {name: orjson.loads(values[name]) for name in _MAPPINGS[kind] if name in values}
    return kind(**values)
