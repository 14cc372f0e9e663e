"""What is observed of a simulated platform: without some sources, and perhaps with timestamps in whole seconds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.analysis.waits.controller_limit import METRICS as CONTROLLER_METRICS
from harness.detectors.capability import Access
from harness.model import Event, Node, Sample, Span
from harness.model.phases import (
    CACHED,
    LAUNCHER_ERROR,
    MYSQL_CONNECTIONS,
    MYSQL_ERRORS,
    MYSQL_MOST_CONNECTIONS,
    NODE_CPU_CORES,
    NOT_REACHABLE,
    OF_TASK,
    POD_CPU_CORES,
    PULLING,
    REPLICA_WORKERS,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUN,
    RUNNING,
    SERVICE_PHASES,
    STARTING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    STORE_PROBE_SECONDS,
    STORE_REQUEST_SECONDS,
    STORING,
    UPLOAD_SECONDS,
)

_SECOND = 10**9
_REQUESTED = {REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, REQUESTED_GPUS, UPLOAD_SECONDS}
_SPACE = {STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES}
_ONLY_IN_EVENTS = {"FailedScheduling", "NotTriggerScaleUp", "Preempted", "TriggeredScaleUp"}
_PULL_FAILED = "Failed to pull image"
_QUOTA = "exceeded quota"
_NEVER = 2**63


def _of_pod(record: Any) -> bool:
    match record:
        case Span(phase=phase):
            return phase != RUN and phase not in SERVICE_PHASES  # a service's answer names its own phases
        case Event(kind=kind):
            return kind == "Pod"
        case Sample(metric=metric):
            return metric in _REQUESTED
    return False


def _of_node(record: Any) -> bool:
    return isinstance(record, Node) or (isinstance(record, Event) and record.kind == "Node")


def _pod_event(record: Any) -> bool:
    """What only events of pods say; why containers wait or ended, their states say, too."""
    return isinstance(record, Event) and record.kind == "Pod" and record.reason in _ONLY_IN_EVENTS


def _of_log(record: Any) -> bool:
    match record:
        case Sample(metric=metric):
            return metric == UPLOAD_SECONDS
        case Event(reason=reason):
            return reason == LAUNCHER_ERROR
    return False


def _without_events(records: Iterable[Any]) -> Iterator[Any]:
    """As the states of pods show it: pulls are part of the start, and the container says that its image is missing."""
    pull: Span | None = None
    for record in records:
        begun = pull if isinstance(record, Span) and record.phase == STARTING else None
        if pull is not None and begun is None:
            yield pull
        pull = None
        match record:
            case Span(phase=phase) if phase == PULLING:
                pull = replace(record, phase=STARTING)
            case Span() if begun is not None:
                yield replace(record, started_at=begun.started_at)
            case Event(kind="Pod", reason="Failed", message=message) if message.startswith(_PULL_FAILED):
                yield replace(record, reason="ErrImagePull")
            case _:
                yield record
    if pull is not None:
        yield pull


def _without_logs(records: Iterable[Any]) -> Iterator[Any]:
    """As Kubernetes shows it: uploads are part of running, until the main container ends."""
    every = list(records)
    uploaded = {
        each.object if isinstance(each, Event) else each.labels["pod"]: each.at for each in every if _of_log(each)
    }
    for record in every:
        until = uploaded.get(record.step) if isinstance(record, Span) else None
        if until is None or record.phase not in {RUNNING, STORING}:
            yield record
        elif record.phase == RUNNING:
            yield replace(record, ended_at=until)
        elif record.ended_at is None or record.ended_at > until:
            yield replace(record, started_at=until)


def as_read(records: Iterable[Any]) -> Iterator[Any]:
    """Refusals of a quota as an observer learns of them: from one workflow now and then, which shows its waiting nodes.

    As `harness.collectors.kubernetes.workflow.watch` does, first those without a living pod.
    """
    every = list(records)
    refused: dict[str, list[Event]] = defaultdict(list)
    for each in every:
        if _is_refusal(each):
            refused[each.run].append(each)
    if not refused:
        yield from every
        return
    runs: dict[str, tuple[int, int]] = {}
    lives: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for each in every:
        if isinstance(each, Span) and each.phase == RUN:
            runs[each.run] = each.started_at, each.ended_at or _NEVER
        elif isinstance(each, Span):
            since, until = lives[each.run].get(each.step, (_NEVER, 0))
            lives[each.run][each.step] = min(since, each.started_at), max(until, each.ended_at or _NEVER)
    readings, read, found = dict.fromkeys(runs, 0), 0, list[Event]()
    at = min((since for since, _ in runs.values()), default=_NEVER)
    last = max(each.at for each in every if isinstance(each, Sample))
    while at < last:
        waiting = [
            (any(since <= at < until for since, until in lives[run].values()), readings[run], begun, run)
            for run, (begun, over) in runs.items()
            if begun + 10 * _SECOND <= at < over
        ]
        if not waiting:
            at += _SECOND
            continue
        run = min(waiting)[-1]
        latest = {_pod_of(each): each for each in refused.get(run, ()) if each.at <= at}
        found += [replace(each, at=at) for pod, each in latest.items() if at < lives[run].get(pod, (_NEVER, 0))[0]]
        readings[run] += 1
        at += min(300, 10 * 2 ** (read // 6)) * _SECOND
        read += 1
    yield from (each for each in every if not _is_refusal(each))
    yield from found


def _is_refusal(record: Any) -> bool:
    return isinstance(record, Event) and record.kind == OF_TASK and _QUOTA in record.message


def _pod_of(refusal: Event) -> str:
    return refusal.message.partition('pods "')[2].partition('"')[0]


def _of_workflow(record: Any) -> bool:
    """What Argo's workflows say; that a task came from the cache is what the platform's API says."""
    return isinstance(record, Event) and record.kind in {"Task", "Workflow"} and record.reason != CACHED


def _measured(names: set[str]) -> Callable[[Any], bool]:
    return lambda record: isinstance(record, Sample) and record.metric in names


# source → whether a record comes from it
SOURCES: Mapping[str, Callable[[Any], bool]] = {
    "pods": _of_pod,
    "nodes": _of_node,
    "pod events": _pod_event,
    "workflows": _of_workflow,
    "step logs": _of_log,
    "store": _measured(_SPACE),
    "store requests": _measured({STORE_REQUEST_SECONDS, STORE_PROBE_SECONDS}),
    "node cpu": _measured({NODE_CPU_CORES}),
    "controller metrics": _measured({*CONTROLLER_METRICS, "argo_workflows"}),
    "etcd size": _measured({"etcd_db_bytes", "etcd_quota_bytes"}),
    "database": _measured({MYSQL_CONNECTIONS, MYSQL_ERRORS, MYSQL_MOST_CONNECTIONS}),
}
RUNS_ONLY = frozenset(SOURCES)
# The same of a service that executes the runs.
OF_SERVICE: Mapping[str, Callable[[Any], bool]] = {
    "replicas": _measured({REPLICA_WORKERS, POD_CPU_CORES}),
    "replica cpu": _measured({POD_CPU_CORES}),
}
# What an observer that may read pods says of other objects that it may not.
_REFUSED = {"workflows": "kubernetes workflows", "pod events": "kubernetes events"}
_OF_METRICS = frozenset({"store", "store requests", "controller metrics", "database", "etcd size"})
# What installations add one after the other → the sources that are still missing with it.
MISSING_WITH: Mapping[Access, frozenset[str]] = {
    Access.API: RUNS_ONLY,
    Access.KUBECONFIG: frozenset({"node cpu", *_OF_METRICS}),
    Access.METRICS_SERVER: _OF_METRICS,
    Access.PROMETHEUS: frozenset(),
}


def seen(records: Iterable[Any], *, without: frozenset[str], whole: bool) -> Iterator[Any]:
    """The records of the remaining sources, with their timestamps as observed.

    An observer that may read pods, and not workflows or events, says so.
    """
    records = _without_events(records) if "pod events" in without else records
    records = _without_logs(records) if "step logs" in without else records
    every = {**SOURCES, **OF_SERVICE}
    missing = [every[name] for name in without]
    unsaid = [] if "pods" in without else [said for name, said in _REFUSED.items() if name in without]
    for record in records:
        while unsaid and isinstance(record, Event | Sample):
            yield Event(record.at, "Observer", unsaid.pop(), NOT_REACHABLE, "403 Forbidden", type="Warning")
        if not any(of_source(record) for of_source in missing):
            yield _in_whole_seconds(record) if whole else record


def _in_whole_seconds(record: Any) -> Any:
    """Truncate timestamps to seconds, as Kubernetes and Kubeflow Pipelines do."""
    match record:
        case Span():
            names: tuple[str, ...] = ("started_at", "ended_at")
        case Node():
            names = ("created_at", "ready_at", "gone_at")
        case Event(kind="Pod" | "Node" | "Run"):
            names = ("at",)
        case _:
            return record
    cut = {name: at // _SECOND * _SECOND for name in names if (at := getattr(record, name)) is not None}
    return replace(record, **cut)
