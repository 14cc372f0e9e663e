"""A cluster's node pools through the official client: read for trials, and cordoned node by node."""

from collections.abc import Mapping
from typing import Any

from harness.collectors.kubernetes.kube_api import CoreApi
from harness.collectors.kubernetes.nodes import node_of
from harness.collectors.kubernetes.pod.life import WORKFLOW, run_of, task_of
from harness.collectors.kubernetes.pod.requests import requests_of
from harness.model.cluster import NodeOffer, PoolNode, PoolPod

_FAILED = "reason=FailedScheduling"
_LIVE = ("Pending", "Running")


class NodePools:
    """The cluster of a kubeconfig's context (none: its current one); `namespace` is that of the runs ("": all).

    Raises:
        ConfigError: the kubeconfig can't be used.
        TargetUnreachableError: of the methods: the API server refuses or does not answer.
    """

    def __init__(self, context: str | None = None, namespace: str = "") -> None:
        self._api = CoreApi(context or "")
        self._namespace = namespace

    def nodes(self) -> list[PoolNode]:
        """All nodes."""
        return [
            PoolNode(node_of(item), bool(item["spec"].get("taints")), bool(item["spec"].get("unschedulable")))
            for item in self._api.nodes()
        ]

    def offers(self) -> list[NodeOffer]:
        """What the nodes offer to pods."""
        return [_offer(item) for item in self._api.nodes()]

    def pods(self, *, everywhere: bool = False) -> list[PoolPod]:
        """The pods of runs in their namespace, or all pods everywhere."""
        of_runs = {"label_selector": WORKFLOW, "namespace": self._namespace}
        return [_pod(each) for each in self._api.items("pod", **({} if everywhere else of_runs))]

    def scheduling_failures(self) -> list[tuple[str, str]]:
        """Events in the namespace of the runs: a pod's name, and the scheduler's message."""
        events = self._api.items("event", self._namespace, field_selector=_FAILED)
        return [(str(event["involvedObject"].get("name")), str(event.get("message") or "")) for event in events]

    def cordon(self, node: str, *, cordoned: bool) -> None:
        """Keep new pods off a node, or allow them again."""
        body = {"spec": {"unschedulable": cordoned}}
        self._api.send(self._api.core.patch_node, node, body, hint="is 'patch nodes' allowed?")


def _offer(manifest: Mapping[str, Any]) -> NodeOffer:
    node, labels = node_of(manifest), manifest["metadata"].get("labels") or {}
    taints = manifest.get("spec", {}).get("taints") or ()
    of_taints = tuple((str(t["key"]), str(t.get("value") or ""), str(t["effect"])) for t in taints)
    return NodeOffer(node.pool, labels, of_taints, node.cpu, node.memory, node.gpu, node.virtual)


def _pod(manifest: Mapping[str, Any]) -> PoolPod:
    requested = requests_of(manifest["spec"])
    return PoolPod(
        name=manifest["metadata"]["name"],
        run=run_of(manifest),
        task=task_of(manifest),
        node=manifest["spec"].get("nodeName") or "",
        live=manifest["status"].get("phase") in _LIVE,
        cpu=requested.cpu,
        memory=requested.memory,
        unschedulable=_unschedulable(manifest),
    )


def _unschedulable(manifest: Mapping[str, Any]) -> str:
    for condition in manifest["status"].get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition.get("message") or "unschedulable")
    return ""
