"""What is observed of a simulated platform: without some sources, and perhaps with timestamps in whole seconds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.analysis.waits.controller_limit import METRICS as CONTROLLER_METRICS
from harness.collectors.source_health import NOT_REACHABLE
from harness.detectors.capability import Access
from harness.model import Event, Node, Sample, Span
from harness.model.phases import (
    CACHED,
    LAUNCHER_ERROR,
    NODE_CPU_CORES,
    POD_CPU_CORES,
    REPLICA_WORKERS,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUN,
    SERVICE_PHASES,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    STORE_PROBE_SECONDS,
    STORE_REQUEST_SECONDS,
    UPLOAD_SECONDS,
)

_SECOND = 10**9
_REQUESTED = {REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, REQUESTED_GPUS, UPLOAD_SECONDS}
_SPACE = {STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES}


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
    return isinstance(record, Event) and record.kind == "Pod"


def _of_log(record: Any) -> bool:
    match record:
        case Sample(metric=metric):
            return metric == UPLOAD_SECONDS
        case Event(reason=reason):
            return reason == LAUNCHER_ERROR
    return False


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
}
RUNS_ONLY = frozenset(SOURCES)
# The same of a service that executes the runs.
OF_SERVICE: Mapping[str, Callable[[Any], bool]] = {
    "replicas": _measured({REPLICA_WORKERS, POD_CPU_CORES}),
    "replica cpu": _measured({POD_CPU_CORES}),
}
_OF_METRICS = frozenset({"store requests", "controller metrics", "etcd size"})
# What installations add one after the other → the sources that are still missing with it.
MISSING_WITH: Mapping[Access, frozenset[str]] = {
    Access.API: RUNS_ONLY,
    Access.KUBECONFIG: frozenset({"node cpu", *_OF_METRICS}),
    Access.METRICS_SERVER: _OF_METRICS,
    Access.PROMETHEUS: frozenset(),
}


def seen(records: Iterable[Any], *, without: frozenset[str], whole: bool) -> Iterator[Any]:
    """The records of the remaining sources, with their timestamps as observed.

    An observer that may read pods and not workflows says so.
    """
    every = {**SOURCES, **OF_SERVICE}
    missing = [every[name] for name in without]
    unsaid = "workflows" in without and "pods" not in without
    for record in records:
        if unsaid and isinstance(record, Event | Sample):
            unsaid = False
            yield Event(record.at, "Observer", "kubernetes workflows", NOT_REACHABLE, "403 Forbidden", type="Warning")
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
