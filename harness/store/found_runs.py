"""Runs of a test that its observer saw on the platform and that the ledger lacks.

A load that is killed leaves answers unread in the kernel's buffers; the observer looks at the platform once more.
"""

from collections import defaultdict, deque
from collections.abc import Iterator

from harness import reading
from harness.model.phases import RUN
from harness.model.records import Outcome, Span, Submission
from harness.store import csv_files
from harness.store.folder import MOST_RECORDS, SCENARIOS, SCHEDULE, RunFolder

FOUND = "found on the platform: its answer had not been read when the load ended"
_EARLY_NS = 2 * 10**9  # the platform's clock may be behind, and has whole seconds


def found_runs(folder: RunFolder) -> list[Submission]:
    """A row for each arrival without one whose run, known by its name, was seen on the platform.

    When it was sent and answered is not known: the row has neither instant.

    Raises:
        ConfigError: schedule or scenarios are damaged.
    """
    if not (folder.has(SCHEDULE) and folder.has(SCENARIOS)):
        return []
    rows, dues = folder.records(Submission), folder.read_schedule()
    seqs, runs = {row.seq for row in rows}, {row.run for row in rows}
    sent = next((row for row in rows if row.seq < len(dues)), None)
    if sent is None or len(seqs) >= len(dues):
        return []
    t0_at = sent.due_at - round(dues[sent.seq] * 1e9)
    lacking = defaultdict[str, deque[tuple[int, str]]](deque)
    for seq, (id_, name) in enumerate(_named(folder)):
        if seq not in seqs and seq < len(dues):
            lacking[name].append((seq, id_))
    found = []
    for run, span in {span.run: span for span in folder.records(Span) if span.phase == RUN and not span.step}.items():
        waiting = lacking.get(span.task)
        if run in runs or not waiting or span.started_at < t0_at + round(dues[waiting[0][0]] * 1e9) - _EARLY_NS:
            continue
        seq, id_ = waiting.popleft()
        due_at = t0_at + round(dues[seq] * 1e9)
        found.append(Submission(seq, id_, span.task, due_at, None, None, Outcome.ACCEPTED, run, 0, None, FOUND))
    return found


def _named(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """Scenario and run name of each arrival, as `Assignment.arrival` names them."""
    ids = folder.read_scenario_ids()
    with reading.structured(folder.path / SCENARIOS), folder.open_file(SCENARIOS, MOST_RECORDS) as file:
        names = tuple(csv_files.column(file, "scenario_name"))
    with reading.structured(folder.path / SCENARIOS), folder.open_file(SCENARIOS, MOST_RECORDS) as file:
        of_id = dict(zip(csv_files.column(file, "id"), names, strict=True))
    in_turn = len(of_id) == len(names) and list(ids[: len(names)]) == list(of_id)[: len(ids)]
    for seq, id_ in enumerate(ids):
        turn = seq // len(names) + 1 if in_turn else 1
        yield id_, f"{id_}-{of_id.get(id_, '')}" + (f"-{turn}" if turn > 1 else "")
