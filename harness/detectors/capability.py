"""What a detector may need to see, whether a timeline shows it, and what to report when it does not."""

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.model.phases import LIST_SECONDS, NODE_CPU_CORES, STORE_AVAILABLE_BYTES


class Capability(StrEnum):
    """A kind of observation."""

    SUBMISSIONS = "submissions"
    RUNS = "runs"
    PODS = "pods"
    NODES = "nodes"
    POD_EVENTS = "pod events"
    STORE = "store"
    NODE_CPU = "node cpu"
    LISTING = "listing"
    EXECUTIONS = "executions"

    def observed(self, timeline: Timeline) -> bool:
        """Whether the timeline shows it."""
        return _SOURCES[self][0](timeline)

    @property
    def missing(self) -> str:
        """The reason to report when it was not observed."""
        return _SOURCES[self][1]


_SOURCES: Mapping[Capability, tuple[Callable[[Timeline], bool], str]] = {
    Capability.SUBMISSIONS: (lambda t: len(t.runs) > 0, "no submission was recorded"),
    Capability.RUNS: (
        lambda t: bool(t.is_over.any() or np.isfinite(floats(t.runs, "created_s")).any()),
        "no run was observed on the platform",
    ),
    Capability.PODS: (
        lambda t: len(t.pods) > 0,
        "no pods were observed: no access to Kubernetes, or not to the runs' namespace",
    ),
    Capability.NODES: (
        lambda t: len(t.nodes) > 0,
        "no nodes were observed: no access to Kubernetes, or no permission to list nodes",
    ),
    Capability.POD_EVENTS: (
        lambda t: bool((t.events["kind"] == "Pod").any()),
        "no pod events were observed: no access to Kubernetes, or no permission to list events",
    ),
    Capability.STORE: (
        lambda t: len(t.metric(STORE_AVAILABLE_BYTES)) > 0,
        "the free space of the artifact store's volume was not observed (kubelet statistics or the store's metrics)",
    ),
    Capability.NODE_CPU: (
        lambda t: len(t.metric(NODE_CPU_CORES)) > 0,
        "the nodes' CPU usage was not observed (metrics-server or Prometheus)",
    ),
    Capability.LISTING: (lambda t: len(t.metric(LIST_SECONDS)) > 0, "the time to list runs was not measured"),
    Capability.EXECUTIONS: (
        lambda t: t.executed,
        "no execution reported its phases: the target's runs are not executions of a service that returns the result",
    ),
}
