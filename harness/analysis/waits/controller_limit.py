"""What holds the workflow controller up: its client's rate, its workers, or the time to its next look at a workflow.

A worker keeps its workflow while its requests wait for the client's tokens. So at the client's rate the workers are all
busy, too, and more of them would not help. The controller's own metrics distinguish these, with the limits that its pod
states: where updates of workflows take long and requests don't, these wait inside the client. Without metrics,
workflows may tell: a node is there before its pod is requested, so that a pod long after its node waited for a token,
and a node that comes late waited for a worker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pandas as pd

from harness.analysis.timeline import Floats, Timeline, beginnings, containing, floats, remembered
from harness.analysis.waits.failures import own_events
from harness.analysis.waits.workflow_limits import DEFAULTS, settings
from harness.model.phases import QPS, REQUEUE_TIME, WORKFLOW_WORKERS
from harness.reasons import builtin_row

WORKFLOW_QUEUE, CLEANUP_QUEUE = "workflow_queue", "pod_cleanup_queue"
CLIENT_WAIT_S, RESOURCE_WAIT_S, QUEUE_WAIT_S = "argo_client_wait_s", "argo_resource_wait_s", "argo_queue_wait_s"
WORKING, BUSY, REQUESTS = "argo_working_workers", "argo_busy_workers", "argo_k8s_requests_per_s"
QUEUE_DEPTH = "argo_queue_depth"
OPERATION_S, REQUEST_S = "argo_operation_s", "argo_k8s_request_s"
METRICS = (CLIENT_WAIT_S, RESOURCE_WAIT_S, QUEUE_WAIT_S, QUEUE_DEPTH, WORKING, BUSY, REQUESTS)
WORKERS = int(DEFAULTS[WORKFLOW_WORKERS])

_BUSY_QUANTILE = 0.75  # quantile over the samples: a test has quiet stretches
_MIN_TOKEN_S = 0.5  # median wait of a request
# Median wait of a workflow; the lowest bucket ends here, and the median of an idle queue is inside.
_MAX_IDLE_QUEUE_S = 1.0
# That a worker spends on a workflow: Argo 4.0 sleeps for a second after each update, other versions don't.
_MIN_WORK_S = 1.5
_MIN_LOOK_S = 4.0  # median of its time for a workflow; an idle one's is in the bucket up to 2.5 s
_LONG_ANSWERS = frozenset({"List", "Watch"})  # verbs whose answers are long
_REQUESTS_PER_LOOK = 5  # of a look at a workflow
_MIN_OF_RATE = 0.4  # a limit that binds: rates are means over a minute, with its quiet stretches
_FEW_WORKERS = 4  # workers: each takes a second or more for a workflow
SOON_S = 2.0  # to the next look, which no fix shortens further
_MIN_LATE_S = 1.0  # median time from a node to its pod; both are stamped in whole seconds
_MIN_QUEUE, _MIN_QUEUED_SAMPLES = 2, 2
_MIN_PODS = 20  # that were compared with their nodes
_MAX_DEVIATION, _MIN_SHARE_EVEN, _MIN_SAMPLES = 0.15, 0.7, 3
_ARGOS = ("workflow", "cronworkflow", "clusterworkflow")  # kinds of argoproj.io begin with these
_HELD = ("lock-wait", "workflows-postponed", "quota")  # rows of the catalogue


class Limit(StrEnum):
    """What the controller is held up by."""

    REQUESTS = "requests"  # --qps and --burst
    POD_RATE = "pod rate"  # resourceRateLimit
    WORKERS = "workers"  # --workflow-workers
    LOOKS = "looks"  # DEFAULT_REQUEUE_TIME
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptoms:
    """What was seen of the controller; none is not recorded. Seconds are typical of its busy stretches.

    Attributes:
        token_s: a request's median wait for the client's rate limit (Argo 4.1).
        pod_token_s: the same for the limit on the creation of pods.
        queued_s: a workflow's median wait for a worker.
        work_s: of a worker's time for each update of a workflow.
        operation_s: a worker's median time for a look at a workflow.
        busy: workers that worked at once, at most.
        queue: workflows behind them, at most, while all that ever worked at once were busy; 0 where one was idle.
        rate: requests per second to the API group that got most of them.
        even: whether that rate stayed at its maximum.
        late_s: median time from a workflow's node to its pod, where nothing else is known to hold pods back.
        request_s: the longest of `request_times`.
        settings: the controller's settings, see `controller_settings`.
    """

    token_s: float | None = None
    pod_token_s: float | None = None
    queued_s: float | None = None
    work_s: float | None = None
    operation_s: float | None = None
    busy: float | None = None
    queue: float = 0.0
    rate: float | None = None
    even: bool = False
    late_s: float | None = None
    request_s: float | None = None
    settings: Mapping[str, float] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Whether the controller's own metrics show enough to decide."""
        return self.queued_s is not None

    def limit(self, *, idle: bool, late_start: bool) -> Limit:
        """What these symptoms mean for a controller that is slow.

        Args:
            idle: new workflows start at once, and what follows takes no longer than to the controller's next look.
            late_start: new workflows wait, and not for other workflows to end.
        """
        if not self.measured:
            return self._shown_by_nodes(idle=idle, late_start=late_start)
        if self.pod_token_s is not None and self.pod_token_s >= _MIN_TOKEN_S:
            return Limit.POD_RATE
        if self.few_workers:
            return Limit.WORKERS
        if self.at_client_rate:
            return Limit.REQUESTS
        if self.queues:
            return Limit.UNKNOWN if self._slow else Limit.WORKERS  # slow workers lack something, such as CPU
        return Limit.LOOKS if idle and self.looks_s else Limit.UNKNOWN

    @property
    def at_client_rate(self) -> bool:
        """Whether its metrics show that requests wait for the client's rate."""
        if self.token_s is not None:
            return self.token_s >= _MIN_TOKEN_S
        if not self._slow or self.few_workers or self._below_rate:
            return False
        if self.request_s is None or self.operation_s is None:
            return self.even
        return self.operation_s >= max(_MIN_LOOK_S, self.request_s * _REQUESTS_PER_LOOK)

    @property
    def _below_rate(self) -> bool:
        """Whether it sent far fewer requests than it may."""
        allowed = self.settings.get(QPS)
        return allowed is not None and self.rate is not None and self.rate < _MIN_OF_RATE * allowed

    @property
    def few_workers(self) -> bool:
        """Whether all workers are busy with a queue behind them, and there are fewer than by default.

        At the client's rate all of the default's workers are busy, too; then other symptoms decide.
        """
        told = self.settings.get(WORKFLOW_WORKERS, self.busy)
        return self.queue > 0 and self.busy is not None and told is not None and told <= self.busy < WORKERS

    @property
    def _slow(self) -> bool:
        return (self.operation_s or 0.0) >= _MIN_LOOK_S or (self.work_s or 0.0) >= _MIN_WORK_S

    @property
    def queues(self) -> bool:
        """Whether workflows wait for a worker."""
        return self.queued_s is not None and self.queued_s > _MAX_IDLE_QUEUE_S

    def _shown_by_nodes(self, *, idle: bool, late_start: bool) -> Limit:
        if self.late_s is not None and self.late_s >= _MIN_LATE_S:
            return Limit.REQUESTS
        few = self.settings.get(WORKFLOW_WORKERS, WORKERS) <= _FEW_WORKERS
        if late_start and (few or self.late_s is not None):
            return Limit.WORKERS
        return Limit.LOOKS if idle and self.looks_s else Limit.UNKNOWN

    @property
    def looks_s(self) -> float:
        """To the controller's next look at a changed workflow; 0 where it is too soon to matter."""
        looks_s = self.settings.get(REQUEUE_TIME, DEFAULTS[REQUEUE_TIME])
        return looks_s if looks_s > SOON_S else 0.0


@remembered
def symptoms(timeline: Timeline) -> Symptoms:
    """Read the symptoms from samples, and from the workflows whose nodes were read."""
    working = _series(timeline, WORKING, queue_name=WORKFLOW_QUEUE)
    gauge = _series(timeline, BUSY, worker_type=WORKFLOW_QUEUE)
    working = working if working.size else gauge
    rates = _rates(timeline)
    rate = max(rates, key=lambda each: float(each.max()), default=np.zeros(0))
    return Symptoms(
        token_s=_usual(_series(timeline, CLIENT_WAIT_S, quantile="0.5")),
        pod_token_s=_usual(_series(timeline, RESOURCE_WAIT_S, quantile="0.5")),
        queued_s=_usual(_series(timeline, QUEUE_WAIT_S, queue_name=WORKFLOW_QUEUE, quantile="0.5")),
        work_s=_work_s(timeline, working),
        operation_s=_usual(_series(timeline, OPERATION_S, quantile="0.5")),
        busy=float(max(gauge.max() if gauge.size else 0.0, 0.0) or working.max()) if working.size else None,
        queue=_queue_behind_all(timeline),
        rate=float(np.median(rate[rate >= rate.max() / 2])) if rate.size else None,
        even=any(map(_is_even, rates)),
        late_s=_late_s(timeline),
        request_s=max(request_times(timeline).values(), default=None),
        settings=settings(timeline),
    )


def request_times(timeline: Timeline) -> Mapping[tuple[str, str], float]:
    """By kind and verb, the median time that the controller's requests took at the API server at least, in seconds."""
    found: dict[tuple[str, str], float] = {}
    samples = timeline.labelled(REQUEST_S, "kind", "verb", quantile="0.5")
    for kind, verb, value in samples[["kind", "verb", "value"]].itertuples(index=False):
        if verb not in _LONG_ANSWERS and np.isfinite(value):
            found[kind, verb] = min(found.get((kind, verb), np.inf), value)
    return found


def queue_wait_s(timeline: Timeline, queue: str) -> float | None:
    """The median wait in a queue of the controller in its busy stretches; none if it was not recorded."""
    return _usual(_series(timeline, QUEUE_WAIT_S, queue_name=queue, quantile="0.5"))


def workers_of(timeline: Timeline, queue: str) -> float | None:
    """The number of workers of a queue that were busy at once, at most; none if it was not recorded."""
    found = _series(timeline, BUSY, worker_type=queue)
    return float(found.max()) if found.size else None


def _series(timeline: Timeline, metric: str, **labels: str) -> Floats:
    """The values of a metric, by time, of the series with these labels."""
    return floats(timeline.labelled(metric, **labels).sort_values("at_s", kind="stable"), "value")


def _queue_behind_all(timeline: Timeline) -> float:
    """The longest queue behind workers that are all busy; 0 where a queue stood behind fewer, or was seen only once.

    Both are gauges, sampled at the same instants. A queue shorter than the number of workers is gone within a look.
    """
    depth, busy = (
        timeline.labelled(metric, **{label: WORKFLOW_QUEUE}).sort_values("at_s").set_index("at_s")["value"]
        for metric, label in ((QUEUE_DEPTH, "queue_name"), (BUSY, "worker_type"))
    )
    both = pd.concat({"depth": depth, "busy": busy}, axis=1, join="inner")
    queued = both[both["depth"] >= np.maximum(both["busy"], _MIN_QUEUE)]
    all_busy = len(queued) >= _MIN_QUEUED_SAMPLES and (queued["busy"] == both["busy"].max()).all()
    return float(queued["depth"].max()) if all_busy and both["busy"].max() > 0 else 0.0


def _usual(values: Floats) -> float | None:
    return float(np.quantile(values, _BUSY_QUANTILE)) if values.size else None


def _work_s(timeline: Timeline, working: Floats) -> float | None:
    """Little's law: workers at work by updates per second; both as means of their busy stretches."""
    updates = _series(timeline, REQUESTS, kind="workflows", verb="Update", status_code="200")
    if not working.size or not updates.size or updates.max() <= 0:
        return None
    busy = np.quantile(working, _BUSY_QUANTILE)
    return float(busy / np.quantile(updates, _BUSY_QUANTILE)) if np.quantile(updates, _BUSY_QUANTILE) > 0 else None


def _rates(timeline: Timeline) -> tuple[Floats, ...]:
    """Requests per second by time, to Kubernetes' own API and to Argo's: each has a rate limit of its own."""
    samples = timeline.labelled(REQUESTS, "kind")
    argos = samples["kind"].str.startswith(_ARGOS).to_numpy(dtype=bool)
    parts = (samples[argos], samples[~argos])
    return tuple(
        floats(part.groupby("at_s", sort=True)["value"].sum().to_frame(), "value") for part in parts if len(part)
    )


def _is_even(rate: Floats) -> bool:
    """Whether most samples of the busy stretches are about the same: what a token bucket lets through."""
    busy = rate[(rate > 0) & (rate >= rate.max() / 2)]
    if busy.size < _MIN_SAMPLES:
        return False
    return float((np.abs(busy / np.median(busy) - 1) <= _MAX_DEVIATION).mean()) >= _MIN_SHARE_EVEN


def _late_s(timeline: Timeline) -> float | None:
    """The median time from a node's start to its pod's creation: their names end in the same hash."""
    if not timeline.described.size or containing(own_events(timeline)["message"], *map(builtin_row, _HELD)).any():
        return None
    pods, tasks, chosen = timeline.pods, timeline.tasks, np.zeros(len(timeline.runs), dtype=np.bool_)
    chosen[timeline.described] = True
    pods = pods[chosen[pods["row"].to_numpy()]]
    first = beginnings(pods["pod"].to_numpy())
    names = timeline.names.take(pods["pod"].to_numpy()[first])
    made = pd.DataFrame({
        "row": pods["row"].to_numpy()[first],
        "hash": _last(names),
        "made_s": np.minimum.reduceat(floats(pods, "start_s"), first) if first.size else np.zeros(0),
    })  # fmt: skip
    nodes = tasks.assign(hash=_last(tasks["task"]), row=tasks["row"].astype(made["row"].dtype))
    both = made.merge(nodes, on=["row", "hash"])
    late = floats(both, "made_s") - floats(both, "start_s")
    return float(np.median(late)) if late.size >= _MIN_PODS else None


def _last(names: "pd.Series[str]") -> Floats:
    """The part of each name behind its last dash."""
    return names.astype("str").str.rpartition("-")[2].to_numpy() if len(names) else np.zeros(0)
