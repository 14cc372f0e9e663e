"""What a run folder must say, held against what happened."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.model import Plan
from harness.model.phases import RUN, RUNNING, TERMINAL_STATES
from harness.model.records import Event, Outcome, Span, Submission
from harness.store import RunFolder
from tests.support.real_parts.kubelet import Lived

_WITHIN_S = 1.0  # Kubernetes tells the times of containers in whole seconds
_TOLD_S = 0.01


@dataclass(frozen=True)
class Check:
    """One comparison; it is met when both are equal."""

    what: str
    expected: object
    seen: object

    @property
    def met(self) -> bool:
        """Whether what was expected was seen."""
        return self.expected == self.seen


class Folder:
    """What a load test left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = RunFolder(path)

    @cached_property
    def plan(self) -> Plan:
        """What the test was to do, and the ids that it found."""
        return self._folder.read_plan()

    @cached_property
    def sent(self) -> dict[str, Submission]:
        """Accepted submissions by run."""
        rows = self._folder.records(Submission)
        return {str(row.run): row for row in rows if row.outcome is Outcome.ACCEPTED}

    @cached_property
    def events(self) -> list[Event]:
        """All events."""
        return list(self._folder.records(Event))

    @cached_property
    def spans(self) -> dict[tuple[str, str, str, int], Span]:
        """The last record of each span."""
        return {(each.run, each.step, each.phase, each.attempt): each for each in self._folder.records(Span)}

    def rows(self, kind: type[Any]) -> list[Any]:
        """Records of another kind."""
        return list(self._folder.records(kind))

    def ends(self) -> dict[str, Event]:
        """By run, the end that the platform reported."""
        return {each.object: each for each in self.events if each.kind == "Run" and each.reason in TERMINAL_STATES}

    def lengths(self) -> dict[str, float]:
        """By run, the sum of its phases in seconds."""
        found: dict[str, float] = {}
        for row in pq.read_table(self.path / "tables" / "phases.parquet").to_pylist():
            found[row["run"]] = found.get(row["run"], 0.0) + row["length_s"]
        return found


def check_runs(
    folder: Folder, lengths: Mapping[str, float], runs: Mapping[str, Mapping[str, Any]], intended: int
) -> Iterator[Check]:
    """Every run exactly once, its end, and its phases.

    Args:
        folder: that the test left.
        lengths: by run, the sum of its phases in seconds.
        runs: the platform's own, by id.
        intended: number of arrivals.
    """
    rows = folder.rows(Submission)
    yield Check("arrivals accepted", intended, sum(row.outcome is Outcome.ACCEPTED for row in rows))
    yield Check("runs created once, and no others", sorted(runs), sorted(str(row.run) for row in rows))
    listed = Counter(run for run, step, phase, _ in folder.spans if phase == RUN and not step)
    yield Check("runs listed", sorted(runs), sorted(listed))
    ends = folder.ends()
    yield Check("ends of runs", _states(runs), dict(sorted((run, end.reason) for run, end in ends.items())))
    sent = folder.sent
    spans = [
        span for (_, step, phase, _), span in folder.spans.items() if phase == RUN and not step and span.run in sent
    ]
    off = [
        span.run
        for span in spans
        if span.ended_at and abs(lengths.get(span.run, 0.0) - (span.ended_at - sent[span.run].due_at) / 1e9) > _TOLD_S
    ]
    yield Check("runs whose phases don't add up to their duration", [], off)


def _states(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {run: state for run in sorted(runs) if (state := str(runs[run]["state"])) in TERMINAL_STATES}


def check_pods(folder: Folder, lived: Mapping[str, Lived]) -> Iterator[Check]:
    """Pods that ran, their nodes and their running times, against the kubelet's account."""
    spans = [span for span in folder.spans.values() if span.phase == RUNNING and span.run in folder.sent]
    ran = {span.step: span for span in spans}  # without other workloads of the cluster
    lived = {name: pod for name, pod in lived.items() if pod.began_s}
    yield Check("pods", sorted(lived), sorted(ran))
    places = {name: pod.node for name, pod in sorted(lived.items())}
    yield Check("nodes of the pods", places, {name: span.node for name, span in sorted(ran.items())})
    off = []
    for name in lived.keys() & ran.keys():
        times = ((ran[name].started_at, lived[name].began_s), (ran[name].ended_at, lived[name].ended_s))
        if any(seen is None or abs(seen / 1e9 - true_s) > _WITHIN_S for seen, true_s in times):
            off.append(name)
    yield Check("pods whose running is off by more than a second", [], off)
