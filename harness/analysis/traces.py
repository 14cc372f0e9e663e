"""The runs of a test as traces: one of each arrival that was sent, with its submission, steps and their phases."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.timeline import Timeline, floats
from harness.model.phases import POD_PHASES, SERVICE_PHASES, SUCCEEDED
from harness.model.trace_ids import span_id, submission_id, trace_id

Attribute = str | int | bool
_OF_SERVICE = frozenset(map(POD_PHASES.index, SERVICE_PHASES))


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """An interval of a trace.

    Attributes:
        trace: 128 bits.
        id: 64 bits.
        parent: the span around it; 0 of the run itself.
        name: what happened.
        begun_at: UTC ns.
        ended_at: UTC ns; the end of the records where `pipeswarm.open` is among the attributes.
        attributes: what else is known.
        error: why it failed; "" if it did not.
        request: whether it is our request to the platform.
    """

    trace: int
    id: int
    parent: int
    name: str
    begun_at: int
    ended_at: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str = ""
    request: bool = False


def trace_spans(timeline: Timeline) -> Iterator[TraceSpan]:
    """The spans of all arrivals that were sent, by arrival; those around others come first."""
    intervals = _Intervals(timeline)
    rows = np.flatnonzero(np.isfinite(floats(timeline.runs, "sent_s")))
    arrivals: Iterable[Any] = timeline.runs.iloc[rows].itertuples(index=False)
    for row, arrival in zip(rows.tolist(), arrivals, strict=True):
        yield from _arrival(timeline, arrival)
        yield from intervals.of(row, int(arrival.seq))


def _test(timeline: Timeline) -> str:
    return timeline.plan.id or str(timeline.plan.started_at)


def _arrival(timeline: Timeline, row: Any) -> Iterator[TraceSpan]:
    test, seq = _test(timeline), int(row.seq)
    trace, run = trace_id(test, seq), span_id(test, seq)
    answered_s = row.answered_s if np.isfinite(row.answered_s) else row.sent_s
    accepted = bool(row.run)
    end_s = row.over_s if accepted else answered_s
    known: dict[str, Attribute] = {
        "pipeswarm.run": row.run or "", "pipeswarm.run_name": row.name, "pipeswarm.scenario": row.scenario_id,
        "pipeswarm.tenant": row.tenant, "pipeswarm.outcome": row.outcome, "pipeswarm.state": row.state,
    }  # fmt: skip
    error = row.error or ""
    failed = row.message or row.state if row.state and row.state != SUCCEEDED else ""
    yield TraceSpan(
        trace, run, 0, f"run {row.scenario_id}", _at(timeline, row.due_s), _end(timeline, end_s),
        {"pipeswarm.seq": seq, **_known(known), **_open(end_s)}, error or failed,
    )  # fmt: skip
    status = {} if pd.isna(row.status) else {"http.response.status_code": int(row.status)}
    yield TraceSpan(
        trace, submission_id(test, seq), run, "submit", _at(timeline, row.sent_s), _at(timeline, answered_s),
        {**status, "pipeswarm.worker": int(row.worker)}, error, request=True,
    )  # fmt: skip


class _Intervals:
    """The intervals of pods and of runs as a whole, by row of the runs."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        pods = timeline.pods.sort_values(["row", "pod", "start_s"], kind="stable")
        self._row = pods["row"].to_numpy()
        self._pod = pods["pod"].to_numpy()
        self._phase = pods["phase"].to_numpy()
        self._start, self._end = floats(pods, "start_s"), floats(pods, "end_s")
        self._task, self._node = pods["task"].tolist(), pods["node"].tolist()

    def of(self, row: int, seq: int) -> Iterator[TraceSpan]:
        """A span for each pod and within it one for each phase; of what a service reports the phases alone."""
        first, end = np.searchsorted(self._row, [row, row + 1])
        borders = np.flatnonzero(np.diff(self._pod[first:end])) + first + 1
        for begin, over in zip([first, *borders], [*borders, end], strict=True):
            if begin < over:
                yield from self._step_spans(int(begin), int(over), seq)

    def _step_spans(self, begin: int, over: int, seq: int) -> Iterator[TraceSpan]:
        timeline, test = self._timeline, _test(self._timeline)
        trace, parent, step = trace_id(test, seq), span_id(test, seq), timeline.names[int(self._pod[begin])]
        task, of_service = self._task[begin] or step, self._phase[begin] in _OF_SERVICE
        node = next((node for node in self._node[begin:over] if isinstance(node, str)), "")
        if not of_service:
            around = span_id(test, seq, step)
            end_s = self._end[begin:over].max()  # not a number while one goes on
            names = self._names(step, node)
            yield TraceSpan(
                trace, around, parent, task, _at(timeline, self._start[begin]), _end(timeline, end_s),
                {**names, "pipeswarm.task": task, **_open(end_s)},
            )  # fmt: skip
            parent = around
        replica = {"pipeswarm.replica": node} if of_service and node else {}
        for k in range(begin, over):
            yield TraceSpan(
                trace, span_id(test, seq, step, str(k - begin)), parent, POD_PHASES[self._phase[k]],
                _at(timeline, self._start[k]), _end(timeline, self._end[k]), {**replica, **_open(self._end[k])},
            )  # fmt: skip

    def _names(self, step: str, node: str) -> dict[str, Attribute]:
        """By OpenTelemetry's conventions, where there is a cluster: else it is a process on a machine."""
        if self._timeline.nodes.empty:
            return _known({"pipeswarm.step": step, "host.name": node})
        return _known({"k8s.pod.name": step, "k8s.node.name": node})


def _known(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if value != ""}


def _open(end_s: float) -> dict[str, Attribute]:
    return {} if np.isfinite(end_s) else {"pipeswarm.open": True}


def _end(timeline: Timeline, end_s: float) -> int:
    return _at(timeline, end_s if np.isfinite(end_s) else timeline.end_s)


def _at(timeline: Timeline, seconds: float) -> int:
    return timeline.start_at + round(seconds * 1e9)
