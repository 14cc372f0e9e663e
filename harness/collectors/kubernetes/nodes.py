"""A cluster's nodes, read from their manifests and recorded when they change."""

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
# Labels of nodes that may be preempted: (label, value in lower case).
_SPOT_LABELS = frozenset(
    {
        ("kubernetes.azure.com/scalesetpriority", "spot"), ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-preemptible", "true"), ("eks.amazonaws.com/capacitytype", "spot"),
        ("karpenter.sh/capacity-type", "spot"), ("node.kubernetes.io/lifecycle", "spot"),
    }
)  # fmt: skip
GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
# Nodes that are no machines, with their pools' names: a cloud runs each of their pods somewhere else.
_VIRTUAL = {("type", "virtual-kubelet"): "virtual-node", ("eks.amazonaws.com/compute-type", "fargate"): "fargate"}
_NO_POOL = "default"
_MACHINE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
KNOWN_LABELS = (*_POOL_LABELS, *_MACHINE, *sorted(name for name, _ in (*_SPOT_LABELS, *_VIRTUAL)))


def node_of(manifest: Mapping[str, Any], before: Node | None = None, now_at: int | None = None) -> Node:
    """The node as it is now, with the time at which it first became ready kept from `before`.

    Kubernetes does not say since when GPUs can be allocated: that is `now_at` for a node that had none `before`.
    """
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = {str(name): str(value) for name, value in (metadata.get("labels") or {}).items()}
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    created = stamp(metadata.get("creationTimestamp"))
    ready = ready_since(manifest)
    gpu = float(sum(parse_quantity(allocatable[name]) for name in GPUS if name in allocatable))
    gpus_at = before.gpus_at if before else None
    return Node(
        name=str(metadata["name"]),
        pool=_pool(labels),
        created_at=created.at if created else 0,
        ready_at=before.ready_at if before and before.ready_at is not None else ready,
        gone_at=None,
        cpu=parse_quantity(allocatable.get("cpu", 0)),
        memory=parse_quantity(allocatable.get("memory", 0)),
        gpu=gpu,
        pods=int(parse_quantity(allocatable.get("pods", 110))),
        gpus_at=now_at if before and gpu > before.gpu and gpus_at is None else gpus_at,
        virtual=_virtual(labels) is not None,
        machine=next((labels[name] for name in _MACHINE if name in labels), ""),
        ephemeral=parse_quantity(allocatable.get("ephemeral-storage", 0)),
        spot=any((name.lower(), value.lower()) in _SPOT_LABELS for name, value in labels.items()),
    )


def _pool(labels: Mapping[str, str]) -> str:
    named = (labels[name] for name in _POOL_LABELS if labels.get(name))
    return _virtual(labels) or next(named, _NO_POOL)


def _virtual(labels: Mapping[str, str]) -> str | None:
    """The pool of a node that is no machine."""
    return next((pool for (name, value), pool in _VIRTUAL.items() if labels.get(name) == value), None)


def ready_since(manifest: Mapping[str, Any]) -> int | None:
    """Since when the node has been ready, UTC ns; none while it is not."""
    for condition in (manifest.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            since = stamp(condition.get("lastTransitionTime"))
            return since.at if since else None
    return None


class Nodes:
    """The cluster's nodes, with those `recorded` by an earlier observer."""

    def __init__(self, journal: Journal, recorded: Iterable[Node] = ()) -> None:
        self._journal = journal
        self._nodes: dict[str, Node] = {}
        self._ready: dict[str, bool] = {}
        self._pools: dict[str, str] = {}  # also of nodes that have gone
        self._unconfirmed = {node.name: node for node in recorded if node.gone_at is None}

    @property
    def known(self) -> Mapping[str, Node]:
        """The nodes that there are, by name."""
        return self._nodes

    def see(self, change: str, manifest: Manifest) -> None:
        """Record a node that is new, changed or gone."""
        name = str(manifest["metadata"]["name"])
        before = self._nodes.get(name) or self._unconfirmed.pop(name, None)
        if change == "DELETED":
            self._ready.pop(name, None)
            self._nodes.pop(name, None)
            if before:
                asked = stamp(manifest["metadata"].get("deletionTimestamp"))
                self._journal.write(replace(before, gone_at=asked.at if asked else self._journal.now()))
            return
        self._ready[name] = ready_since(manifest) is not None
        node = node_of(manifest, before, self._journal.now())
        self._nodes[name] = node
        self._pools[name] = node.pool
        if node != before:
            self._journal.write(node)

    def listed(self) -> None:
        """All nodes were listed: recorded nodes that were not seen have gone while nothing was observed."""
        for node in self._unconfirmed.values():
            self._journal.write(replace(node, gone_at=self._journal.now()))
        self._unconfirmed.clear()

    def of_steps(self, hosts: Iterable[str]) -> tuple[int, int] | None:
        """How many machines of the pools of `hosts` are ready now, and how many there are, as reports count them.

        None as long as no pool is known: the number of all machines would be another one.
        """
        pools = {self._pools[name] for name in hosts if name in self._pools}
        if not pools:
            return None
        return self._counted(node for node in tuple(self._nodes.values()) if node.pool in pools)

    def of_all(self) -> tuple[int, int]:
        """The same of all machines, where the runs have no pods of their own."""
        return self._counted(tuple(self._nodes.values()))

    def _counted(self, nodes: Iterable[Node]) -> tuple[int, int]:
        machines = [node for node in nodes if not node.virtual]
        return sum(self._ready.get(node.name, False) for node in machines), len(machines)
