"""The longest time in which the workflow controller did nothing, although runs waited for it.

The controller acts when it creates a pod, or ends a workflow. An idle one looks at a changed workflow after its requeue
time at the latest; a slow one keeps acting, for other workflows. So a time without any act, in which several runs have
waited for longer than a look, is an outage.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, beginnings, floats, remembered
from harness.analysis.waits.controller_limit import BUSY, QUEUE_DEPTH
from harness.analysis.waits.failures import BAD_ENDS
from harness.analysis.waits.waits import waits_so_far, workflow_end_s
from harness.model.phases import GAP, SCHEDULING, WORKFLOW_CONTROLLER

_LOOK_S = 10.5  # DEFAULT_REQUEUE_TIME of Argo's controller (10 s), with the request that creates the pod
_LEAST_S = 15.0  # longer than a look, and than a restart that is ready in time for the next one
_SCRAPE_S = 15.0  # between two samples, by default
_RESOLUTION_S = 1.0  # of Kubernetes' stamps
_LEAST_RUNS = 3  # that waited: one alone may be held back by something of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """From `since_s` to `until_s` after t0 the controller did nothing.

    Attributes:
        runs: that had waited for it for longer than a look.
        share: of all runs' time, that runs waited for it meanwhile.
        silent: its metrics were missing in that time.
        died: why its container ended then or just before, as its pod said; "" where it did not say so.
    """

    since_s: float
    until_s: float
    runs: int
    share: float
    silent: bool
    died: str = ""

    @property
    def length_s(self) -> float:
        """How long it lasted."""
        return self.until_s - self.since_s


@remembered
def outage(timeline: Timeline) -> Outage | None:
    """The longest one; none without any, or where the cluster was not observed meanwhile."""
    if timeline.executed or not timeline.of_runs(SCHEDULING).any():
        return None
    acts, since, until = _acts(timeline), *_owed(timeline)
    bounds = np.concatenate(([0.0], acts[(acts > 0) & (acts < timeline.end_s)], [timeline.end_s]))
    longest = int(np.argmax(np.diff(bounds)))
    low, high = float(bounds[longest]), float(bounds[longest + 1])
    runs = int(np.count_nonzero((np.maximum(since, low) + _LOOK_S <= high) & (until >= high - _RESOLUTION_S)))
    if high - low < _LEAST_S or runs < _LEAST_RUNS or _unobserved(timeline, low, high):
        return None
    silent, died = _silent(timeline, low, high), _died(timeline, low, high)
    if silent is False and not died:  # it answered its scrapes: it was slow, or held up
        return None
    lost_s = float(np.clip(np.minimum(until, high) - np.maximum(since, low), 0.0, None).sum())
    share = min(1.0, lost_s / max(float(waits_so_far(timeline).total.sum()), 1e-9))
    return Outage(since_s=low, until_s=high, runs=runs, share=share, silent=bool(silent), died=died)


def _acts(timeline: Timeline) -> Floats:
    """When the controller created a pod or ended a workflow, ascending."""
    created = floats(timeline.pods, "start_s")[beginnings(timeline.pods["pod"].to_numpy())]
    ended = np.concatenate((workflow_end_s(timeline), floats(timeline.runs, "over_s")))
    return np.sort(np.concatenate((created, ended[np.isfinite(ended)])))


def _owed(timeline: Timeline) -> tuple[Floats, Floats]:
    """When runs began and ended to wait for the controller: for their first pod, and for their end after the last."""
    runs, pods = timeline.runs, timeline.pods
    row, start, end = pods["row"].to_numpy(), floats(pods, "start_s"), floats(pods, "end_s")
    first, last = np.full(len(runs), np.inf), np.full(len(runs), -np.inf)
    np.minimum.at(first, row[row >= 0], start[row >= 0])
    np.maximum.at(last, row[row >= 0], np.nan_to_num(end[row >= 0], nan=np.inf))
    over = np.nan_to_num(floats(runs, "over_s"), nan=timeline.end_s)
    over = np.fmin(over, workflow_end_s(timeline))
    since = np.concatenate((floats(runs, "answered_s"), last))
    until = np.concatenate((np.minimum(first, over), over))
    waited = np.isfinite(since) & np.isfinite(until) & (until > since)
    return since[waited], until[waited]


def _silent(timeline: Timeline, low: float, high: float) -> bool | None:
    """Whether gauges of the controller, which are sampled at even intervals, have a gap within; none without them."""
    gauges = timeline.samples[timeline.samples["metric"].isin((BUSY, QUEUE_DEPTH))]
    at = np.unique(floats(gauges, "at_s"))
    apart = np.diff(at)
    gap = apart > 1.5 * min(float(apart.min(initial=np.inf)), _SCRAPE_S)
    if at.size < 2 or at[0] >= high:  # they begin later: whether they were missing is not known
        return None
    return bool((gap & (at[:-1] < high) & (at[1:] > low)).any())


def _died(timeline: Timeline, low: float, high: float) -> str:
    """What the controller's pod said of its end; it may have acted until then."""
    ends = timeline.events_of("Pod", *BAD_ENDS)
    its = ends["object"].astype(str).str.startswith(WORKFLOW_CONTROLLER)
    ends = ends[its & (ends["at_s"] >= low - _LOOK_S) & (ends["at_s"] < high)]
    return f"{ends['reason'].iloc[-1]}: {ends['message'].iloc[-1]}" if len(ends) else ""


def _unobserved(timeline: Timeline, low: float, high: float) -> bool:
    at = floats(timeline.events_of("Observer", GAP), "at_s")
    return bool(((at >= low) & (at <= high + _LOOK_S)).any())
