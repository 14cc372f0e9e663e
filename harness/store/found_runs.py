"""Runs of a test that its observer saw on the platform and that the ledger lacks.

A load that is killed leaves answers unread in the kernel's buffers; the observer looks at the platform once more.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from harness import reading
from harness.model.phases import RUN
from harness.model.records import Outcome, Span, Submission
from harness.store import csv_files
from harness.store.folder import MOST_RECORDS, SCENARIOS, SCHEDULE, RunFolder

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
