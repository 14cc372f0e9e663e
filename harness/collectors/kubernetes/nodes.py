"""A cluster's machines: read from their manifests, and recorded when they change."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import stamp
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
GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
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
        gpu=float(sum(parse_quantity(room[name]) for name in GPUS if name in room)),
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


class Nodes:
    """The nodes that there are and were."""

    def __init__(self, journal: Journal, recorded: Iterable[Node] = ()) -> None:
        self._journal = journal
        self._nodes: dict[str, Node] = {}
        self._ready: dict[str, bool] = {}
        # Those that an observer before this one has left; whether they are still there is not known yet.
        self._left = {node.name: node for node in recorded if node.gone_at is None}

    def see(self, change: str, manifest: Manifest) -> None:
        """Record a node when it is new, has changed, or is gone."""
        name = str(manifest["metadata"]["name"])
        before = self._nodes.get(name) or self._left.pop(name, None)
        if change == "DELETED":
            self._ready.pop(name, None)
            self._nodes.pop(name, None)
            if before:
                asked = stamp(manifest["metadata"].get("deletionTimestamp"))
                self._journal.write(replace(before, gone_at=asked.at if asked else self._journal.now()))
            return
        self._ready[name] = ready_since(manifest) is not None
        node = node_of(manifest, before)
        self._nodes[name] = node
        if node != before:
            self._journal.write(node)

    def listed(self) -> None:
        """Every node there is has been seen: those that are left went while nobody observed."""
        for node in self._left.values():
            self._journal.write(replace(node, gone_at=self._journal.now()))
        self._left.clear()

    @property
    def ready(self) -> int:
        """How many are ready now."""
        return sum(self._ready.values())

    def __len__(self) -> int:
        return len(self._nodes)
