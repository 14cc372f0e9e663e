"""The platform's database: out of connections, or out of disk."""

import re
from dataclasses import dataclass

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.detectors.detector import broke
from harness.model.findings import Evidence, Finding

CONNECTIONS = re.compile(r"Error 1040|too many connections", re.IGNORECASE)
DISK_FULL = re.compile(r"Error 1114|The table '[^']*' is full", re.IGNORECASE)
TROUBLES = re.compile(f"{CONNECTIONS.pattern}|{DISK_FULL.pattern}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One way for the database to fail: how it words it, and what to do."""

    name: str
    words: re.Pattern[str]
    title: str
    knob: str
    commands: tuple[str, ...]


def find(timeline: Timeline, trouble: Trouble) -> list[Finding]:
    """Submissions and runs whose errors carry the database's words."""
    runs = timeline.runs
    spoken = runs[(runs["error"] != "").to_numpy(dtype=bool)]
    refused = [
        (at, str(error))
        for at, error in zip(floats(spoken, "due_s").tolist(), spoken["error"], strict=True)
        if trouble.words.search(str(error))
    ]
    failed = [(f.at_s, t) for f in failures(timeline) for t in f.texts[:1] if f.says(trouble.words)]
    said = sorted(refused + failed)
    if not said:
        return []
    share = len(said) / max(len(runs), 1)
    example = next((t for _, t in said if trouble.words.search(t)), said[0][1])
    fact = Evidence(
        f"{len(said):,} submissions or runs ended with “{example[:240]}”", float(len(said)), "runs", "submissions"
    )
    return [
        Finding(
            trouble.name, f"{trouble.title}: {share:.0%} of the runs were lost to it", 0.95, (fact,), trouble.knob,
            tuple(c.format(namespace=timeline.namespace) for c in trouble.commands), broke(share),
        )
    ]  # fmt: skip
