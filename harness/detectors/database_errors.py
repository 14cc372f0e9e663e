"""Submissions and runs that the platform's database made fail: out of connections, or out of disk."""

import re
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.failures import failures
from harness.detectors.detector import refused
from harness.detectors.error_texts import DB_DISK_FULL
from harness.model.findings import Evidence, Finding
from harness.model.records import Outcome


@dataclass(frozen=True, slots=True)
class DatabaseError:
    """One way for the database to fail: the words it uses, and how to fix it; commands may contain {namespace}."""

    name: str
    words: re.Pattern[str]
    title: str
    fix: str
    commands: tuple[str, ...]


def find(timeline: Timeline, error: DatabaseError) -> list[Finding]:
    """A finding when submissions or runs ended with the database's words."""
    runs = timeline.runs
    with_error = runs[(runs["error"] != "").to_numpy(dtype=bool)]
    rejected = [
        (at, str(text))
        for at, text in zip(floats(with_error, "due_s").tolist(), with_error["error"], strict=True)
        if error.words.search(str(text))
    ]
    failed = [(f.at_s, text) for f in failures(timeline) for text in f.texts[:1] if f.says(error.words)]
    lost = sorted(rejected + failed)
    if not lost:
        return []
    share = len(lost) / max(len(runs), 1)
    example = next((text for _, text in lost if error.words.search(text)), lost[0][1])
    fact = Evidence(
        f"{len(lost):,} submissions or runs ended with “{example[:240]}”", float(len(lost)), "runs", "submissions"
    )
    return [
        Finding(
            error.name, f"{error.title}: {share:.0%} of the runs failed", 0.95, (fact,), error.fix,
            tuple(command.format(namespace=timeline.namespace) for command in error.commands),
            _severity(timeline, error, [at for at, _ in rejected], len(failed)),
        )
    ]  # fmt: skip


def _severity(timeline: Timeline, error: DatabaseError, rejected_at: list[float], failed: int) -> float:
    full_s = full_since(timeline)
    late = sum(at > full_s for at in rejected_at)
    if error.words is DB_DISK_FULL:
        refused_meanwhile = int((_due(timeline, Outcome.REJECTED) > full_s).sum())
        return refused(timeline, len(rejected_at) - late + refused_meanwhile + failed, failed)
    return refused(timeline, len(rejected_at) + failed, failed, anyway=late)


@remembered
def full_since(timeline: Timeline) -> float:
    """From when on the database's disk would have refused every submission, s; infinite if it was not full.

    A full disk stays full: whatever else refuses submissions meanwhile, it would have refused them as well. The last
    one that was accepted shows that it was not full yet.
    """
    rejected = timeline.runs[(timeline.runs["outcome"] == Outcome.REJECTED.value).to_numpy(dtype=bool)]
    by_disk = floats(rejected, "due_s")[rejected["error"].str.contains(DB_DISK_FULL).to_numpy(dtype=bool)]
    last_s = float(_due(timeline, Outcome.ACCEPTED).max(initial=-np.inf))
    return last_s if by_disk.size and by_disk.min() > last_s else np.inf


def _due(timeline: Timeline, outcome: Outcome) -> Floats:
    return floats(timeline.runs, "due_s")[(timeline.runs["outcome"] == outcome.value).to_numpy(dtype=bool)]
