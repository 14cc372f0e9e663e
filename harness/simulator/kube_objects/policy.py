"""The ResourceQuota of the runs as a Kubernetes object, and the PriorityClasses of every cluster."""

from harness.simulator.cluster.quota import Quota
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.snapshots import metadata

# In every cluster (kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption).
SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def render_quota(quota: Quota, namespace: str, since: float, stamp: Stamp) -> Manifest:
    """The manifest of a ResourceQuota, with amounts as Kubernetes writes them."""
    hard = dict(quota.hard)
    return {
        "metadata": metadata("quota", quota.name, stamp(since), namespace),
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": dict(quota.used)},
    }
