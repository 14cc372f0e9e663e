"""What a detector may need to see, whether a timeline shows it, who can show it, and what to report when it is missing.

What the observer sees depends on what it was given: the platform's API alone, then a kubeconfig, metrics-server in that
cluster, and a Prometheus.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from harness.analysis.timeline import Timeline, floats, remembered
from harness.analysis.waits.controller_limit import METRICS as CONTROLLER_METRICS
from harness.model.phases import (
    LAUNCHER_ERROR,
    LIST_SECONDS,
    MYSQL_ERRORS,
    NODE_CPU_CORES,
    NOT_REACHABLE,
    OF_TASK,
    PAST,
    PULLING,
    SCRAPED,
    STORE_AVAILABLE_BYTES,
    STORE_PROBE_SECONDS,
    STORE_REQUEST_SECONDS,
    UPLOAD_SECONDS,
)


class Access(StrEnum):
    """What shows something to the observer, in the order in which installations add it."""

    API = "the platform's API"
    KUBECONFIG = "Kubernetes access"
    METRICS_SERVER = "metrics-server"
    PROMETHEUS = "Prometheus"
    STORE_PROBE = "--store-probe"


class Capability(StrEnum):
    """A kind of observation."""

    SUBMISSIONS = "submissions"
    RUNS = "runs"
    PODS = "pods"
    NODES = "nodes"
    POD_EVENTS = "pod events"
    WORKFLOWS = "workflow messages"
    LOGS = "step logs"
    STORE = "store"
    STORE_REQUESTS = "store requests"
    NODE_CPU = "node cpu"
    LISTING = "listing"
    DATABASE = "database"
    EXECUTIONS = "executions"
    CONTROLLER = "controller metrics"
    ETCD = "etcd size"

    def observed(self, timeline: Timeline) -> bool:
        """Whether the timeline shows it."""
        return self in _observed(timeline)

    @property
    def missing(self) -> str:
        """The reason to report when nothing was observed at all."""
        return _SOURCES[self].missing

    @property
    def shown_by(self) -> tuple[Access, ...]:
        """What shows it: any one of these is enough."""
        return _SOURCES[self].shown_by

    def reason(self, timeline: Timeline) -> str:
        """The reason to report when this timeline does not show it."""
        return self.missing.replace(_NO_ACCESS, _NONE) if _cluster_seen(timeline) else self.missing

    def sources(self, timeline: Timeline) -> str:
        """What would have shown it."""
        seen = _cluster_seen(timeline)
        return " or ".join(_RECORDS if seen and access is Access.KUBECONFIG else access for access in self.shown_by)


@remembered
def _observed(timeline: Timeline) -> frozenset[Capability]:
    return frozenset(each for each, source in _SOURCES.items() if source.observed(timeline))


class _Source(NamedTuple):
    observed: Callable[[Timeline], bool]
    missing: str
    shown_by: tuple[Access, ...]


_NO_ACCESS, _NONE = "no access to Kubernetes", "there were none"
_RECORDS = "records from Kubernetes"  # where there is access, but they did not come


def _cluster_seen(timeline: Timeline) -> bool:
    """Whether the observer had access to Kubernetes."""
    return len(timeline.nodes) > 0 or len(timeline.pods) > 0


def _runs(timeline: Timeline) -> bool:
    return bool(timeline.is_over.any() or np.isfinite(floats(timeline.runs, "created_s")).any())


def _workflows(timeline: Timeline) -> bool:
    """Where pods were seen and no source of workflows was unreadable, their nodes had nothing to say."""
    events, elsewhere = timeline.events, timeline.events["source"] != timeline.plan.target
    if ((events["kind"] == OF_TASK) & elsewhere).any():
        return True
    if _scraped(timeline):
        return False
    any_seen = ((events["kind"] == "Workflow") & elsewhere).any() or len(timeline.pods)
    return bool(any_seen) and not _unreadable(timeline, "workflow")


def _pod_events(timeline: Timeline) -> bool:
    """Pulls are known by events alone, unless they are inferred from scrapes; failed containers have a state."""
    events = timeline.events
    if timeline.of_runs(PULLING).any() and not _scraped(timeline):
        return True
    told = (events["kind"] == "Pod") & (events["source"] != PAST)
    return bool(told.any()) and not _unreadable(timeline, "events")


def _scraped(timeline: Timeline) -> bool:
    """Whether objects were gone when they were looked for."""
    return bool((timeline.events["reason"] == SCRAPED).any())


def _unreadable(timeline: Timeline, what: str) -> bool:
    """Whether the observer could not read `what`, which begins the name of a kind of Kubernetes objects."""
    events = timeline.events
    unread = (events["kind"] == "Observer") & events["object"].str.startswith(f"kubernetes {what}")
    return bool((unread & (events["reason"] == NOT_REACHABLE)).any())


def _logs(timeline: Timeline) -> bool:
    return len(timeline.metric(UPLOAD_SECONDS)) > 0 or bool((timeline.events["reason"] == LAUNCHER_ERROR).any())


def _measured(*metrics: str) -> Callable[[Timeline], bool]:
    return lambda timeline: any(len(timeline.metric(metric)) for metric in metrics)


_API, _CLUSTER = (Access.API,), (Access.KUBECONFIG,)
_SOURCES: Mapping[Capability, _Source] = {
    Capability.SUBMISSIONS: _Source(lambda t: len(t.runs) > 0, "no submission was recorded", _API),
    Capability.RUNS: _Source(_runs, "no run was observed on the platform", _API),
    Capability.PODS: _Source(
        lambda t: len(t.pods) > 0, f"no pods were observed: {_NO_ACCESS}, or not to the runs' namespace", _CLUSTER
    ),
    Capability.NODES: _Source(
        lambda t: len(t.nodes) > 0, f"no nodes were observed: {_NO_ACCESS}, or no permission to list nodes", _CLUSTER
    ),
    Capability.POD_EVENTS: _Source(
        _pod_events, f"no pod events were observed: {_NO_ACCESS}, or no permission to list events", _CLUSTER
    ),
    Capability.WORKFLOWS: _Source(
        _workflows,
        f"the messages of Argo workflows' nodes: none could be read ({_NO_ACCESS}, or no permission to get workflows)",
        _CLUSTER,
    ),
    Capability.LOGS: _Source(
        _logs, "no step's log showed its uploads: no permission to get pods/log, or no KFP launcher", _CLUSTER
    ),
    Capability.STORE: _Source(
        _measured(STORE_AVAILABLE_BYTES),
        "the free space of the artifact store's volume was not observed (the kubelets' kubelet_volume_stats_* or the "
        "store's metrics in a Prometheus)",
        (Access.PROMETHEUS,),
    ),
    Capability.STORE_REQUESTS: _Source(
        _measured(STORE_REQUEST_SECONDS, STORE_PROBE_SECONDS),
        "how long the artifact store's requests take was not observed (its metrics or --store-probe)",
        (Access.PROMETHEUS, Access.STORE_PROBE),
    ),
    Capability.NODE_CPU: _Source(
        _measured(NODE_CPU_CORES),
        "the nodes' CPU usage was not observed (metrics-server or Prometheus)",
        (Access.METRICS_SERVER, Access.PROMETHEUS),
    ),
    Capability.LISTING: _Source(_measured(LIST_SECONDS), "the time to list runs was not measured", _API),
    Capability.DATABASE: _Source(
        _measured(MYSQL_ERRORS),
        "the connections that the database refused were not recorded (--metrics mysql=… or Prometheus, of a "
        "mysqld_exporter)",
        (Access.PROMETHEUS,),
    ),
    Capability.EXECUTIONS: _Source(
        lambda t: t.executed,
        "no execution reported its phases: the target's runs are not executions of a service that returns the result",
        _API,
    ),
    Capability.CONTROLLER: _Source(
        _measured(*CONTROLLER_METRICS, "argo_workflows"),
        "the workflow controller's metrics were not recorded (--metrics argo=… or Prometheus)",
        (Access.PROMETHEUS,),
    ),
    Capability.ETCD: _Source(
        _measured("etcd_db_bytes"),
        "the size of the cluster's etcd was not recorded (metrics of the API server or of etcd: "
        "--metrics kube-state-metrics=… or Prometheus)",
        (Access.PROMETHEUS,),
    ),
}
