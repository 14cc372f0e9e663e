"""Adds records that a load generator made, but its master never wrote, to the run folder: each exactly once."""

import os
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from harness import reading
from harness.model import ConfigError, Event, Sample, Span, Submission, counted
from harness.model.phases import RUN
from harness.model.records import Outcome
from harness.store import csv_files
from harness.store.checks import problem
from harness.store.claims import Claim
from harness.store.folder import KINDS, MANIFEST, MOST_RECORDS, REPORT, SCENARIOS, SCHEDULE, RunFolder, encode
from harness.store.spools import kind_of, leftovers, read_spool

_MOST_FINISHED = 3  # at one start: the next test waits for it


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a spool's records."""

    arrivals: int  # rows of the ledger that were added
    records: int  # all records that were added, these rows included
    known: int  # records that the run folder had already
    unreadable: int  # lines that are no records: they were left out

    def __str__(self) -> str:
        left_out = f", {self.unreadable:,} unreadable lines left out" if self.unreadable else ""
        return (
            f"{self.arrivals:,} arrivals recovered ({self.records:,} records; {self.known:,} known already{left_out})"
        )


def sentences(merged: Mapping[Path, Recovered], found: int) -> list[str]:
    """What was added, one sentence for each source; nothing where all was known."""
    sentences = [f"{spool}: {recovered}" for spool, recovered in merged.items()]
    if found:
        sentences.append(f"{counted(found, 'run')} that the load had not recorded: found on the platform, and added")
    return sentences


def merge_spool(folder: RunFolder, path: Path) -> Recovered:
    """Add the records of a spool to the run folder of its test.

    Raises:
        ConfigError: there is no spool at `path`, it is of another test, or the folder is in use.
        OSError: the folder can't be written; the same call completes the merge later.
    """
    origin, lines = read_spool(path)
    if origin.test != folder.read_plan().id or not origin.test:
        raise ConfigError(
            f"{path} holds records of another test, of the run {origin.run}",
            f"{folder.path} is not that run: give the folder of {origin.run}",
        )
    return merge(folder, lines, f"worker {origin.worker}")


def recover(folder: RunFolder, given: Sequence[Path] = ()) -> tuple[dict[Path, Recovered], int]:
    """Add what the folder lacks and is known here: the records of spools, and runs that were seen on the platform.

    Returns:
        What became of each spool, `given` or of this test on this machine, and the number of runs found.

    Raises:
        ConfigError: the folder is in use, or it or a spool is damaged.
        OSError: the folder can't be written.
    """
    test = folder.read_plan().id
    spools = given or (leftovers(test) if test else ())
    merged = {spool: merge_spool(folder, spool) for spool in spools}
    with Claim(folder.path):
        submissions = found_runs(folder)
    if submissions:
        merge(folder, map(encode, submissions), "a load that was killed, found on the platform,")
    return merged, len(submissions)


def merge(folder: RunFolder, lines: Iterable[bytes], whose: str) -> Recovered:
    """Add each of these records that the run folder lacks, and an event that says so. It can be repeated at any time.

    Raises:
        ConfigError: the folder is in use.
        OSError: the folder can't be written; the same call completes the merge later.
    """
    with Claim(folder.path):
        given, unreadable = _by_kind(lines)
        added = {kind: _without_known(folder, kind, new) for kind, new in given.items()}
        for kind, new in added.items():
            _append(folder, kind, new.values())
        arrivals, records = len(added.get(Submission, {})), sum(map(len, added.values()))
        recovered = Recovered(arrivals, records, sum(map(len, given.values())) - records, unreadable)
        if records:
            message = f"{arrivals:,} arrivals of {whose} were added after their test or their worker had been given up"
            at = _last_instant(added) or folder.read_plan().started_at or time.time_ns()
            _append(folder, Event, [encode(Event(at, "Test", folder.path.name, "Recovered", message))])
    return recovered


def unfinished(runs_dir: Path) -> list[RunFolder]:
    """The latest folders below `runs_dir` whose load was killed after it had sent something: they have no report."""
    found = []
    for manifest in sorted(runs_dir.glob(f"*/{MANIFEST}"), key=lambda path: path.lstat().st_mtime, reverse=True):
        folder = RunFolder(manifest.parent)
        with suppress(ConfigError, OSError):
            if not folder.has(REPORT) and any(folder.has(f"{KINDS[kind]}.jsonl") for kind in (Submission, Span)):
                Claim(folder.path).release()
                found.append(folder)
        if len(found) == _MOST_FINISHED:
            break
    return found


def find_folder(runs_dir: Path, test: str) -> RunFolder | None:
    """The run folder below `runs_dir` whose test has this id."""
    for manifest in sorted(runs_dir.glob(f"*/{MANIFEST}"), reverse=True) if test else ():
        folder = RunFolder(manifest.parent)
        try:
            if folder.read_plan().id == test:
                return folder
        except ConfigError:
            continue
    return None


def _by_kind(lines: Iterable[bytes]) -> tuple[dict[type, dict[bytes, bytes]], int]:
    """The lines that are records, by kind, each once, in their order; and the number of the others."""
    kinds: dict[type, dict[bytes, bytes]] = {}
    unreadable = 0
    for line in lines:
        kind = kind_of_line(line)
        if kind is None:
            unreadable += 1
        else:
            kinds.setdefault(kind, {})[line] = line
    return kinds, unreadable


def kind_of_line(line: bytes) -> type | None:
    """The kind of a load generator's record that a line holds; none if it holds none."""
    try:
        raw = orjson.loads(line)
    except ValueError:
        return None
    kind = kind_of(raw) if isinstance(raw, dict) else None
    return None if kind is None or problem(kind, raw) else kind


def _without_known(folder: RunFolder, kind: type, new: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Those that the folder lacks: a worker's line is written there unchanged, so equal lines are one record."""
    name = f"{KINDS[kind]}.jsonl"
    left = dict(new)
    if folder.has(name):
        _end_line(folder, kind, name)
        with folder.open_file(name, MOST_RECORDS) as written:
            for line in written:
                left.pop(line, None)
    return left


def _end_line(folder: RunFolder, kind: type, name: str) -> None:
    """End the last line: a writer may have been killed within it."""
    with folder.open_file(name, MOST_RECORDS) as file:
        file.seek(-min(1, file.seek(0, os.SEEK_END)), os.SEEK_END)
        if file.read(1) not in {b"", b"\n"}:
            _append(folder, kind, [b"\n"])


def _append(folder: RunFolder, kind: type, lines: Iterable[bytes]) -> None:
    with folder.recorder() as recorder:
        recorder.append(kind, b"".join(lines))


def _last_instant(records: dict[type, dict[bytes, bytes]]) -> int:
    """When the latest of these records was made: the event must not lengthen the test."""
    instants = [0]
    for kind, names in (
        (Submission, ("sent_at", "answered_at")),
        (Event, ("at",)),
        (Sample, ("at",)),
        (Span, ("ended_at",)),
    ):
        for line in records.get(kind, ()):
            raw = orjson.loads(line)
            instants += [raw[name] for name in names if raw.get(name)]
    return max(instants)


# --- runs of a test that its observer saw on the platform and that the ledger lacks ----------------------------------
# A load that is killed leaves answers unread in the kernel's buffers; the observer looks at the platform once more.


FOUND = "found on the platform: its answer had not been read when the load ended"
_EARLY_NS = 2 * 10**9  # the platform's clock may be behind, and has whole seconds


def found_runs(folder: RunFolder) -> list[Submission]:
    """A row for each arrival without one whose run, known by its name, was seen on the platform.

    When it was sent and answered is not known: the row has neither instant. When it was due follows from the schedule;
    one that was due when another run ended, as a killed closed schedule has them, is dated by its creation.

    Raises:
        ConfigError: schedule or scenarios are damaged.
    """
    if not (folder.has(SCHEDULE) and folder.has(SCENARIOS)):
        return []
    plan, rows = folder.read_plan(), folder.records(Submission)
    seqs, runs = {row.seq for row in rows}, {row.run for row in rows}
    spans = {span.run: span for span in folder.records(Span) if span.phase == RUN and not span.step}
    seen = [each for run, each in spans.items() if run not in runs and each.started_at >= plan.started_at - _EARLY_NS]
    dues = folder.read_schedule()
    closed = not dues and plan.schedule.get("model") == "closed"
    lacking = defaultdict[str, deque[tuple[int, str]]](deque)
    for seq, (id_, name) in enumerate(_named(folder, len(rows) + len(seen) if closed else len(dues))):
        if seq not in seqs:
            lacking[name].append((seq, id_))
    seen = [each for each in seen if each.task in lacking]
    t0_at = _t0_at(dues, rows, [(lacking[each.task][0][0], each.started_at) for each in seen])
    found = []
    for span in seen:
        waiting = lacking[span.task]
        due_at = span.started_at if closed or not waiting else t0_at + round(dues[waiting[0][0]] * 1e9)
        if waiting and span.started_at >= max(due_at, t0_at) - _EARLY_NS:
            seq, id_ = waiting.popleft()
            found.append(
                Submission(seq, id_, span.task, due_at, None, None, Outcome.ACCEPTED, span.run, 0, None, FOUND)
            )
    return found


def _t0_at(dues: Sequence[float], rows: Sequence[Submission], seen: Sequence[tuple[int, int]]) -> int:
    """When the first arrival was due, by a row; without one by the (arrival, creation) of a run that was seen."""

    def began_at(seq: int, at: int) -> int:
        return at - round(dues[seq] * 1e9) if seq < len(dues) else at

    return min([began_at(row.seq, row.due_at) for row in rows[:1]] or [began_at(*each) for each in seen], default=0)


def _named(folder: RunFolder, count: int) -> Iterator[tuple[str, str]]:
    """Scenario and run name of each of a number of arrivals, as `Assignment.arrival` names them."""
    ids = folder.read_scenario_ids(count)
    with reading.structured(folder.path / SCENARIOS), folder.open_file(SCENARIOS, MOST_RECORDS) as file:
        names = tuple(csv_files.column(file, "scenario_name"))
    with reading.structured(folder.path / SCENARIOS), folder.open_file(SCENARIOS, MOST_RECORDS) as file:
        of_id = dict(zip(csv_files.column(file, "id"), names, strict=True))
    in_turn = len(of_id) == len(names) and list(ids[: len(names)]) == list(of_id)[: len(ids)]
    for seq, id_ in enumerate(ids):
        turn = seq // len(names) + 1 if in_turn else 1
        yield id_, f"{id_}-{of_id.get(id_, '')}" + (f"-{turn}" if turn > 1 else "")
