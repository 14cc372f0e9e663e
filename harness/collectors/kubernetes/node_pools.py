"""A cluster's node pools through the official client: read for trials, and cordoned node by node."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from harness.collectors.kubernetes.kube_api import connect, listed
from harness.collectors.kubernetes.nodes import node_of
from harness.collectors.kubernetes.pod.life import WORKFLOW, run_of, task_of
from harness.collectors.kubernetes.pod.requests import requests_of
from harness.collectors.source_health import UnreachableError
from harness.model.cluster import NodeOffer, PoolNode, PoolPod
from harness.model.errors import ConfigError, TargetUnreachableError

_FAILED = "reason=FailedScheduling"
_LIVE = ("Pending", "Running")
_TIMEOUTS_S = (10.0, 60.0)  # for a connection, for an answer


class NodePools:
    """The cluster of a kubeconfig's context (none: its current one); `namespace` is that of the runs ("": all).

    Raises:
        ConfigError: the kubeconfig can't be used.
    """

    def __init__(self, context: str | None = None, namespace: str = "") -> None:
        from kubernetes import client

        try:
            connected, _ = connect(context or "")
        except UnreachableError as error:
            raise ConfigError(str(error), "set KUBECONFIG, or give --kube-context") from error
        self._core: Any = client.CoreV1Api(connected)
        self._namespace = namespace

    def nodes(self) -> list[PoolNode]:
        """All nodes.

        Raises:
            TargetUnreachableError: the cluster does not answer, as with the other methods.
        """
        return [
            PoolNode(node_of(item), bool(item["spec"].get("taints")), bool(item["spec"].get("unschedulable")))
            for item in self._items(self._core.list_node)
        ]

    def offers(self) -> list[NodeOffer]:
        """What the nodes offer to pods."""
        return [_offer(item) for item in self._items(self._core.list_node)]

    def pods(self, *, everywhere: bool = False) -> list[PoolPod]:
        """The pods of runs in their namespace, or all pods everywhere."""
        if everywhere:
            found = self._items(self._core.list_pod_for_all_namespaces)
        else:
            found = self._namespaced("pod", label_selector=WORKFLOW)
        return [_pod(each) for each in found]

    def scheduling_failures(self) -> list[tuple[str, str]]:
        """Events in the namespace of the runs: a pod's name, and the scheduler's message."""
        events = self._namespaced("event", field_selector=_FAILED)
        return [(str(event["involvedObject"].get("name")), str(event.get("message") or "")) for event in events]

    def cordon(self, node: str, *, cordoned: bool) -> None:
        """Keep new pods off a node, or allow them again."""
        self._call(self._core.patch_node, "is 'patch nodes' allowed?", node, {"spec": {"unschedulable": cordoned}})

    def _namespaced(self, kind: str, **selectors: str) -> list[dict[str, Any]]:
        if self._namespace:
            return self._items(getattr(self._core, f"list_namespaced_{kind}"), self._namespace, **selectors)
        return self._items(getattr(self._core, f"list_{kind}_for_all_namespaces"), **selectors)

    def _items(self, call: Callable[..., Any], *given: str, **selectors: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call(partial(listed, call), "try kubectl get nodes", *given, **selectors)
        return found

    @staticmethod
    def _call(call: Callable[..., Any], hint: str, *given: object, **selectors: str) -> Any:
        """Plain JSON instead of the client's models."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            return call(*given, **selectors, _preload_content=False, _request_timeout=_TIMEOUTS_S)
        except (ApiException, HTTPError) as error:
            raise TargetUnreachableError(f"the Kubernetes API refused or did not answer: {error}", hint) from error


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
