"""A ceiling on what live pods request together, as a full quota has one: the next pod comes when another one ends.

Only workflows say that a quota refused a pod. Where they were not read, its pods show it: while a pod was awaited,
those alive left less room below their largest total than it requests. A slow controller lets that total vary: pods are
awaited as often when few are alive. But created at an even rate, pods that all take as long would be equally many, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Bools, Floats, Ints, Timeline, beginnings, floats
from harness.analysis.timeline.curves import total_active
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.lacking import PLACES, REQUESTS

_WAITED_S = 3.0  # a quick controller takes less
_PODS = 20  # that were waited for
_SINCE = (0.0, 0.25, 0.5, 0.75)  # of the test: a quota may be lowered while it goes on
_SAME = 1e-6  # of a sum of requests
# Of the time that pods were waited for, and of the number of live pods. At an even rate of creation that number stays
# at its maximum for so long in 1 of 50 tests, if it varies so much; with less it may always be the same.
_EXPLAINED, _VARIANCE = 0.4, 0.3
_AS_MUCH = 0.02  # where two resources explain it, the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The ceiling of a namespace that explains most of its runs' waits for pods.

    Attributes:
        tenant: whose runs they are; "" without tenants.
        resource: a key of `REQUESTS`, or PLACES.
        most: what live pods requested together at most: cores, bytes or a number.
        since_s: from when on that was the most; 0 is the whole test.
        pods: that were waited for.
        share: of the time that they were waited for: they would not have fitted below `most`.
        variance: that the number of live pods would have had with an even rate of creation, from how long they live.
    """

    tenant: str
    resource: str
    most: float
    since_s: float
    pods: int
    share: float
    variance: float

    @property
    def likely(self) -> bool:
        """Whether the pods wait as for a quota, and a slow controller would not look the same."""
        return self.share >= _EXPLAINED and self.variance >= _VARIANCE


@remembered
def ceiling(timeline: Timeline) -> Ceiling | None:
    """The ceiling that explains most waits; none where too few pods were waited for."""
    tenant = timeline.runs["tenant"].to_numpy()
    found = (_of_namespace(timeline, str(name), tenant == name) for name in np.unique(tenant))
    return max(filter(None, found), key=lambda each: each.share, default=None)


def _of_namespace(timeline: Timeline, tenant: str, mine: Bools) -> Ceiling | None:
    pods = _live(timeline, mine)
    waited = np.isfinite(pods.due) & (pods.begun - pods.due >= _WAITED_S)
    if waited.sum() < _PODS:
        return None
    variance = _variance(pods)
    ceilings = [
        Ceiling(
            tenant=tenant,
            resource=name,
            most=most,
            since_s=since_s,
            pods=int(waited.sum()),
            share=share,
            variance=variance,
        )
        for name, size in _sizes(timeline, pods.task)
        for since_s, most, share in _explained(timeline, pods, waited, size)
    ]
    best = max(each.share for each in ceilings)
    return next(each for each in ceilings if each.share >= best - _AS_MUCH)


@dataclass(frozen=True, slots=True, eq=False)
class _Pods:
    """By pod: its task's code, when it could have been created, when it was, and when it ended."""

    task: Ints
    due: Floats
    begun: Floats
    over: Floats


def _live(timeline: Timeline, mine: Bools) -> _Pods:
    """The pods of some runs. One is due when the last pod of its run that ended before it did, or after the answer."""
    rows = timeline.pods["row"].to_numpy()
    of_runs = timeline.pods[(rows >= 0) & np.append(mine, False)[rows] & ~timeline.reported]
    first = beginnings(of_runs["pod"].to_numpy())
    row, ends = of_runs["row"].to_numpy()[first], np.nan_to_num(floats(of_runs, "end_s"), nan=timeline.end_s)
    begun = np.minimum.reduceat(floats(of_runs, "start_s"), first) if first.size else np.zeros(0)
    over = np.maximum.reduceat(ends, first) if first.size else np.zeros(0)
    order = np.lexsort((over, row))
    # Runs one after the other on a single axis, so that one search finds the place within each run.
    apart = timeline.end_s - min(float(begun.min(initial=0.0)), 0.0) + 1.0
    place = np.searchsorted(row[order] * apart + over[order], row * apart + begun, side="right") - 1
    before = order[np.maximum(place, 0)]
    follows = (place >= 0) & (row[before] == row)
    answered = floats(timeline.runs, "answered_s")[row]
    return _Pods(of_runs["task"].cat.codes.to_numpy()[first], np.where(follows, over[before], answered), begun, over)


def _variance(pods: _Pods) -> float:
    """Of the number that are alive, were the pods of each task created at an even rate (D/G/∞, by task).

    There P(S > k / rate) is the probability that the k-th last one is alive, and the sum of p (1 - p) over k becomes
    rate · ∫ F (1 - F) = half the rate times the mean difference of two lifetimes.
    """
    life, whole = pods.over - pods.begun, float(pods.over.max() - pods.begun.min())
    found = 0.0
    for task in np.unique(pods.task).tolist():
        of_task = np.sort(life[pods.task == task])
        ranks = 2 * np.arange(1, of_task.size + 1) - of_task.size - 1
        found += float((ranks * of_task).sum()) / of_task.size
    return found / whole if whole > 0 else 0.0


def _sizes(timeline: Timeline, task: Ints) -> Iterator[tuple[str, Floats]]:
    """By resource, what each pod requests of it; one that no pod requests is left out."""
    names = timeline.pods["task"].cat.categories
    for resource, metric in REQUESTS.items():
        by_task = dict(requests_by(timeline, metric, "task"))
        size = np.array([by_task.get(str(name), 0.0) for name in names])[task]
        if size.any():
            yield resource, size
    yield PLACES, np.ones(task.size)


def _explained(timeline: Timeline, pods: _Pods, waited: Bools, size: Floats) -> Iterator[tuple[float, float, float]]:
    """By the time since when it may hold: the ceiling of a resource, and the share of the waits that it explains."""
    at = np.unique(np.concatenate((pods.begun, pods.over)))
    used = total_active(pods.begun, pods.over, size, at)
    length = np.diff(at, append=at[-1])
    whole = float((pods.begun - pods.due)[waited].sum())
    for since_s in (share * timeline.end_s for share in _SINCE):
        later = at >= since_s
        most, blocked_s = float(used[later].max(initial=0.0)), 0.0
        for amount in np.unique(size[waited & (size > 0)]).tolist():
            full = (used + amount > most * (1 + _SAME)) & later
            passed = np.concatenate(([0.0], np.cumsum(full * length)[:-1]))
            those = waited & (size == amount)
            blocked_s += float(
                (np.interp(pods.begun[those], at, passed) - np.interp(pods.due[those], at, passed)).sum()
            )
        yield since_s, most, blocked_s / whole
