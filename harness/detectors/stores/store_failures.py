"""Runs that failed at the artifact store: what the detectors of its faults have in common."""

from collections.abc import Sequence

from harness.analysis.waits.failures import Failure, failures
from harness.analysis.waits.stated import failures_for
from harness.detectors.detector import Timeline
from harness.model.phases import LAUNCHER_ERROR

# Why a failed step's reason may be unknown, and what shows it.
UNREAD = (
    "steps failed with an exit code and no reason, which is in their logs: give the observer the permission to get "
    "pods/log (deploy/rbac.yaml)"
)


def bare(timeline: Timeline) -> list[Failure]:
    """The runs of which nothing but a step's exit code is known."""
    return failures_for(timeline, "step-failed")


def share_of_runs(timeline: Timeline, said: Sequence[Failure]) -> float:
    """The share of all runs that failed as `said`: these, and as large a part of those whose logs were not read.

    Logs are read of a sample: of the runs of which no more than an exit code is known, the same part is assumed to have
    failed for this reason as of those whose launcher's log was read.
    """
    logged = set(timeline.events_of("Pod", LAUNCHER_ERROR)["run"])
    ids = timeline.runs["run"]
    read = {f.row for f in failures(timeline) if ids.iat[f.row] in logged}
    rows = {f.row for f in said}
    unread = sum(f.row not in rows for f in bare(timeline))
    assumed = unread * len(rows & read) / len(read) if read else 0.0
    return (len(rows) + assumed) / max(len(timeline.runs), 1)


def short(text: str, head: int = 80, tail: int = 140) -> str:
    """An error on one line, without its middle if it is long: Go's errors name the action first and the cause last."""
    line = " ".join(text.split())
    return line if len(line) <= head + tail else f"{line[:head]} … {line[-tail:]}"
