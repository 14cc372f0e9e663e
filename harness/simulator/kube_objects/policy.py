"""The ResourceQuota of the runs as a Kubernetes object, and the PriorityClasses of every cluster."""

from typing import NamedTuple

from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.snapshots import metadata

# In every cluster (kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption).
SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class QuotaSnapshot(NamedTuple):
    """A ResourceQuota at one resource version: amounts as Kubernetes writes them, by resource."""

    name: str
    namespace: str
    hard: tuple[tuple[str, str], ...]
    used: tuple[tuple[str, str], ...]
    since: float


def render_quota(quota: QuotaSnapshot, stamp: Stamp) -> Manifest:
    """The manifest of a ResourceQuota."""
    hard = dict(quota.hard)
    return {
        "metadata": metadata("quota", quota.name, stamp(quota.since), quota.namespace),
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": dict(quota.used)},
    }
