"""Submissions and runs that the platform's database made fail: out of connections, or out of disk."""

import re
from dataclasses import dataclass

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.detectors.detector import broke
from harness.model.findings import Evidence, Finding


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
            broke(share),
        )
    ]  # fmt: skip
