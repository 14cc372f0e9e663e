"""The chain of pods that a run's end waited for, and what that chain spent its time on.

While one pod of a run runs, `waits` says that the run runs. In a fan-out that hides what the last pod waited for. So
this goes back from a run's last pod: to its own driver, else to the pod that ended last before it was created, and so
on to the run's first pod. What lies between two pods of the chain is the controller's time. (Critical path: Kelley and
Walker 1959; from traces, the last thing to end before each start: Hollingsworth and Miller 1994.)
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.capacity.autoscaling import provisioning
from harness.analysis.timeline import Bools, Floats, Ints, Timeline, beginnings, evenly, floats, remembered
from harness.analysis.waits.storing import storing
from harness.analysis.waits.waits import coverage, waits_so_far
from harness.model.phases import CONTROLLER, POD_PHASES, PROVISIONING, RUNNING, SERVING, STORING, UNSCHEDULABLE

_MOST_RUNS = 400  # that are followed
_SAME_S = 1.0  # platforms stamp whole seconds: a pod may seem to begin before the one that it waited for has ended
_DRIVER = "-driver"
_DRIVING, _STORED = "driving", "stored"


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """The chains of some evenly chosen runs.

    Attributes:
        runs: how many were followed.
        whole_s: the seconds that these runs took together.
        shares: by phase of a pod, CONTROLLER and PROVISIONING: share of these runs' time; the rest passed before the
            first pod or after the last one.
        driving: share of these runs' time that driver pods of the chains ran.
        storing: share of it that pods of the chains stored outputs, estimated where it can't be separated from running.
        gaps_s: seconds between two pods of a chain.
    """

    runs: int
    whole_s: float
    shares: Mapping[str, float]
    driving: float
    storing: float
    gaps_s: Floats


@remembered
def critical_path(timeline: Timeline) -> CriticalPath:
    """Follow up to 400 finished or unfinished runs that had pods."""
    split = waits_so_far(timeline)
    pods = _of_some_runs(timeline, split.row)
    row, number = pods["row"].to_numpy(), pods["pod"].to_numpy()
    heads = beginnings(row)
    ends = np.append(heads[1:], row.size)[: heads.size]
    tasks = tuple(str(name) for name in pods["task"].cat.categories)
    spans = _Spans(
        number, pods["phase"].to_numpy(), floats(pods, "start_s"),
        np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s), pods["task"].cat.codes.to_numpy().astype(np.int64),
        _driver_codes(tasks), np.array([name.endswith(_DRIVER) for name in tasks], dtype=bool), provisioning(timeline),
        storing(timeline).hidden,
    )  # fmt: skip
    found = dict.fromkeys((*POD_PHASES, CONTROLLER, PROVISIONING, _DRIVING, _STORED), 0.0)
    gaps: list[float] = []
    for low, high in zip(heads.tolist(), ends.tolist(), strict=True):
        gaps += _follow(spans, low, high, found)
    found[CONTROLLER] = sum(gaps)
    whole = float(split.total[np.isin(split.row, row[heads])].sum())
    shares = {name: seconds / whole if whole > 0 else 0.0 for name, seconds in found.items()}
    driving, stored = shares.pop(_DRIVING), shares.pop(_STORED)
    return CriticalPath(int(heads.size), whole, shares, driving, stored, np.array(gaps))


def _of_some_runs(timeline: Timeline, runs: Ints) -> pd.DataFrame:
    """The pods in chains of evenly chosen ones of these runs."""
    row, kept = timeline.pods["row"].to_numpy(), _in_chains(timeline)
    there = row[kept]
    there = there[beginnings(there)]  # a run's pods are adjacent
    there = there[np.isin(there, runs)]
    chosen = np.zeros(len(timeline.runs), dtype=np.bool_)
    chosen[there[evenly(there.size, _MOST_RUNS)] if there.size else there] = True
    kept &= chosen[row]
    return timeline.pods[kept]


def _in_chains(timeline: Timeline) -> Bools:
    """Per row of `Timeline.pods`: what others wait for.

    That is a serving pod's start, not its end. Of runs made of pods it is the pods, not what runs report themselves.
    """
    return ~timeline.of_runs(SERVING) & ~timeline.reported


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """Rows of `Timeline.pods`; by task's code, its driver's or -1, whether it is one, and what hides storing."""

    number: Ints
    phase: Ints
    start: Floats
    end: Floats
    task: Ints
    driver: Ints
    drives: Bools
    coming: tuple[Floats, Floats]
    hidden: Floats


def _driver_codes(names: tuple[str, ...]) -> Ints:
    place = {name: k for k, name in enumerate(names)}
    return np.array([place.get(name + _DRIVER, -1) for name in names], dtype=np.int64)


def _follow(spans: _Spans, low: int, high: int, found: dict[str, float]) -> list[float]:
    """Add what the chain of the run in rows [low, high) spent; the gaps between its pods."""
    first = low + beginnings(spans.number[low:high])
    begun = np.minimum.reduceat(spans.start[low:high], first - low)
    over = np.maximum.reduceat(spans.end[low:high], first - low)
    until = np.append(first[1:], high)
    task = spans.task[first]
    here, gaps = int(np.argmax(over)), list[float]()
    left = np.ones(first.size, dtype=bool)
    while True:
        _add(spans, int(first[here]), int(until[here]), found)
        left[here] = False
        earlier = left & (over <= begun[here] + _SAME_S) & (begun < begun[here])
        own = earlier & (task == spans.driver[task[here]])
        candidates = np.flatnonzero(own if own.any() else earlier)
        if not candidates.size:
            return gaps
        before = int(candidates[np.argmax(over[candidates])])
        gaps.append(max(0.0, float(begun[here] - over[before])))
        here = before


def _add(spans: _Spans, low: int, high: int, found: dict[str, float]) -> None:
    for k in range(low, high):
        name, start, end = POD_PHASES[spans.phase[k]], spans.start[k], spans.end[k]
        found[name] += max(0.0, float(end - start))
        stored = 1.0 if name == STORING else float(spans.hidden[spans.task[k]]) if name == RUNNING else 0.0
        found[_STORED] += stored * max(0.0, float(end - start))
        if name == RUNNING and spans.drives[spans.task[k]]:
            found[_DRIVING] += max(0.0, float(end - start))
        if name == UNSCHEDULABLE and end > start:
            covered = float(coverage(*spans.coming, np.array([start]), np.array([end]))[0])
            found[PROVISIONING] += covered
            found[UNSCHEDULABLE] -= covered
