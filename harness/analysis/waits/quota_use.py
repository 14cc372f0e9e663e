"""Quotas that were used up while runs waited for pods, by what the API server says is used of them.

A refused pod leaves no event, so this is the surest sign: the amounts are the ones that admission decides by.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.timeline import Bools, Floats, Timeline, floats, remembered
from harness.analysis.waits.waits import coverage, segments, waits_so_far
from harness.model.phases import (
    PRECEDENCE,
    QUOTA_AMOUNT,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
)

_REQUESTS = {
    "requests.cpu": REQUESTED_CPU_CORES, "cpu": REQUESTED_CPU_CORES,
    "requests.memory": REQUESTED_MEMORY_BYTES, "memory": REQUESTED_MEMORY_BYTES,
    "requests.nvidia.com/gpu": REQUESTED_GPUS,
}  # fmt: skip
_COUNTED = frozenset({"pods", "count/pods"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedUp:
    """A resource of a quota that had no room for another pod while runs waited for one.

    Attributes:
        namespace: of the quota.
        quota: its name.
        resource: as the quota calls it: pods, requests.cpu, …
        used: at most.
        hard: the quota's limit.
        of_waits: share of the time for which runs waited for their next pod.
        share: the same, of all runs' time.
    """

    namespace: str
    quota: str
    resource: str
    used: float
    hard: float
    of_waits: float
    share: float


@remembered
def used_up(timeline: Timeline) -> tuple[UsedUp, ...]:
    """Those that were used up for any of that time, the costliest first."""
    begun, ended = _waiting(timeline)
    waited, whole = float((ended - begun).sum()), float(waits_so_far(timeline).total.sum())
    if waited <= 0 or whole <= 0:
        return ()
    found = []
    for (namespace, quota, resource), amounts in amounts_of(timeline):
        full, hard, most = _full(timeline, resource, amounts)
        seconds = float(coverage(*full, begun, ended).sum())
        if seconds > 0:
            found.append(
                UsedUp(
                    namespace=namespace, quota=quota, resource=resource, used=most, hard=hard,
                    of_waits=seconds / waited, share=min(1.0, seconds / whole),
                )
            )  # fmt: skip
    return tuple(sorted(found, key=lambda each: (-each.share, each.quota, each.resource)))


def _waiting(timeline: Timeline) -> tuple[Floats, Floats]:
    """Begin and end of each wait for a pod: after the answer, and between two pods."""
    runs, chosen = timeline.runs, np.ones(len(timeline.runs), dtype=np.bool_)
    parts = segments(timeline, chosen)
    between = parts.level == len(PRECEDENCE)
    first = np.full(len(runs), np.inf)
    np.minimum.at(first, parts.row, parts.start)
    over = np.nan_to_num(floats(runs, "over_s"), nan=timeline.end_s)
    answered, until = floats(runs, "answered_s"), np.minimum(first, over)
    waited: Bools = np.isfinite(answered) & (until > answered)
    return (
        np.concatenate((answered[waited], parts.start[between])),
        np.concatenate((until[waited], parts.end[between])),
    )


def amounts_of(timeline: Timeline) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """By namespace, quota and resource: at_s, value and type of the samples, by time."""
    samples = timeline.labelled(QUOTA_AMOUNT, "namespace", "quota", "resource", "type")
    for key, group in samples.groupby(["namespace", "quota", "resource"], sort=True):
        yield (str(key[0]), str(key[1]), str(key[2])), group.sort_values("at_s", kind="stable")


def _full(timeline: Timeline, resource: str, amounts: pd.DataFrame) -> tuple[tuple[Floats, Floats], float, float]:
    """When the quota had no room for the smallest pod (begins and ends), its limit, and the most used meanwhile."""
    at, hard, used = side_by_side(amounts)
    full = used + _smallest(timeline, resource) > hard * (1 + 1e-9)
    until = np.append(at[1:], max(timeline.end_s, at[-1] if at.size else 0.0))
    limit = float(hard[-1]) if hard.size else 0.0
    return (at[full], until[full]), limit, float(used[full].max(initial=0.0))


def side_by_side(amounts: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """When the amounts of a quota's resource changed, its limit and what was used of it from then on."""
    wide = amounts.pivot_table(index="at_s", columns="type", values="value", aggfunc="last").ffill()
    if not {"hard", "used"} <= set(wide.columns):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    wide = wide.dropna()
    return wide.index.to_numpy(dtype=np.float64), floats(wide, "hard"), floats(wide, "used")


def _smallest(timeline: Timeline, resource: str) -> float:
    """What the smallest pod of the runs takes of it; infinitesimal where that is not known."""
    if resource in _COUNTED:
        return 1.0
    requested = floats(timeline.metric(_REQUESTS.get(resource, "")), "value")
    return float(requested[requested > 0].min(initial=np.inf)) if (requested > 0).any() else 1e-9
