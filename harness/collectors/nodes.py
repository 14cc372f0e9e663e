"""A cluster's machines, read from their manifests."""

from collections.abc import Mapping
from typing import Any

from harness.collectors.stamps import stamp
from harness.model.records import Node
from harness.model.units import parse_quantity

# Labels that name a node's pool: AKS, GKE, EKS, eksctl, Karpenter, DigitalOcean, Scaleway, OVH, Linode, others.
_POOL_LABELS = (
    "kubernetes.azure.com/agentpool", "agentpool", "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name", "karpenter.sh/nodepool", "karpenter.sh/provisioner-name",
    "doks.digitalocean.com/node-pool", "k8s.scaleway.com/pool-name", "nodepool", "lke.linode.com/pool-id",
    "node-pool", "pool",
)  # fmt: skip
# Labels that say that a machine may be taken away: (label, value in lower case).
_SPOT_LABELS = frozenset(
    {
        ("kubernetes.azure.com/scalesetpriority", "spot"), ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-preemptible", "true"), ("eks.amazonaws.com/capacitytype", "spot"),
        ("karpenter.sh/capacity-type", "spot"), ("node.kubernetes.io/lifecycle", "spot"),
    }
)  # fmt: skip
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
_NO_POOL = "default"


def node_of(manifest: Mapping[str, Any], before: Node | None = None) -> Node:
    """The node as it is now; what was known `before` of when it became ready stays."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = {str(name): str(value) for name, value in (metadata.get("labels") or {}).items()}
    room = status.get("allocatable") or status.get("capacity") or {}
    created = stamp(metadata.get("creationTimestamp"))
    ready = ready_since(manifest)
    return Node(
        name=str(metadata["name"]),
        pool=next((labels[name] for name in _POOL_LABELS if labels.get(name)), _NO_POOL),
        created_at=created.at if created else 0,
        ready_at=before.ready_at if before and before.ready_at is not None else ready,
        gone_at=None,
        cpu=parse_quantity(room.get("cpu", 0)),
        memory=parse_quantity(room.get("memory", 0)),
        gpu=float(sum(parse_quantity(room[name]) for name in _GPUS if name in room)),
        pods=int(parse_quantity(room.get("pods", 110))),
        spot=any((name.lower(), value.lower()) in _SPOT_LABELS for name, value in labels.items()),
    )


def ready_since(manifest: Mapping[str, Any]) -> int | None:
    """Since when the node is ready, UTC ns; none while it is not."""
    for condition in (manifest.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            since = stamp(condition.get("lastTransitionTime"))
            return since.at if since else None
    return None
