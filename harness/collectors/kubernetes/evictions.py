"""Evictions through the Kubernetes API: of pods by their subresource, of nodes by deleting them after a notice."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.collectors.kubernetes.kube_api import CoreApi, said_by
from harness.collectors.kubernetes.pod.life import run_of
from harness.model.cluster import CandidateNode, CandidatePod
from harness.model.errors import ConfigError, TargetUnreachableError

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_ON_EVERY_NODE = frozenset({"DaemonSet", "Node"})  # kinds of owners
_ENDED = frozenset({"Succeeded", "Failed"})
_RIGHTS = "grant it to the account of the kubeconfig: docs/spot.md lists the rights"
_GONE, _IN_THE_WAY, _TOO_MANY, _BAD_REQUEST = 404, 409, 429, 400


class EvictionApi:
    """The cluster of a kubeconfig's context (none: its current one).

    Raises:
        ConfigError: the kubeconfig can't be used.
    """

    def __init__(self, context: str | None = None) -> None:
        self._api = CoreApi(context or "")

    def pods(self, namespace: str = "", selector: str = "") -> list[CandidatePod]:
        """The pods that have not ended, in one namespace or in all.

        Raises:
            ConfigError: the API server does not understand the selector.
            TargetUnreachableError: it refuses or does not answer, as with the other methods.
        """
        found = _selected(self._api.items, "pod", namespace, label_selector=selector)
        return [_pod(each) for each in found if (each.get("status") or {}).get("phase") not in _ENDED]

    def nodes(self, selector: str) -> list[CandidateNode]:
        """The nodes that the selector matches."""
        return [_node(item) for item in _selected(self._api.nodes, label_selector=selector)]

    def evict_pod(self, namespace: str, name: str, grace_s: int | None) -> str:
        """Evict a pod; returns why that was not possible, "" if it was. None is the pod's own grace period."""
        # Without a version, each API server takes it as its own: policy/v1 is unknown before Kubernetes 1.22.
        body: dict[str, Any] = {"metadata": {"name": name, "namespace": namespace}}
        if grace_s is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace_s}
        return self._try(self._api.core.create_namespaced_pod_eviction, name, namespace, body)

    def delete_node(self, name: str, notice: Callable[[], None]) -> str:
        """Cordon a node, wait for the `notice`, delete the node; it is uncordoned again if that is not possible."""
        if refused := self._try(self._api.core.patch_node, name, {"spec": {"unschedulable": True}}):
            return refused
        deleted = False
        try:
            notice()
            refused = self._try(self._api.core.delete_node, name)
            deleted = not refused
        finally:
            if not deleted:
                self._try(self._api.core.patch_node, name, {"spec": {"unschedulable": None}})
        return refused

    def _try(self, call: Callable[..., Any], *given: object) -> str:
        """Send a change; returns why only this one object can't be changed for now."""
        try:
            self._api.send(call, *given, hint=_RIGHTS)
        except TargetUnreachableError as error:
            if getattr(error.__cause__, "status", 0) in {_GONE, _IN_THE_WAY, _TOO_MANY}:
                return said_by(error.__cause__)
            raise
        return ""


def _selected(call: Callable[..., list[dict[str, Any]]], *given: str, label_selector: str) -> list[dict[str, Any]]:
    try:
        return call(*given, label_selector=label_selector, hint=_RIGHTS)
    except TargetUnreachableError as error:
        if getattr(error.__cause__, "status", 0) == _BAD_REQUEST:
            hint = "write labels as kubectl does: key=value,other!=value"
            raise ConfigError(f"--selector: {said_by(error.__cause__)}", hint) from error
        raise


def _pod(manifest: Mapping[str, Any]) -> CandidatePod:
    metadata = manifest["metadata"]
    return CandidatePod(
        name=str(metadata["name"]),
        namespace=str(metadata["namespace"]),
        node=str(manifest["spec"].get("nodeName") or ""),
        run=run_of(manifest),
        everywhere=any(owner.get("kind") in _ON_EVERY_NODE for owner in metadata.get("ownerReferences") or ()),
    )


def _node(manifest: Mapping[str, Any]) -> CandidateNode:
    metadata = manifest["metadata"]
    labels = metadata.get("labels") or {}
    taints = {str(taint.get("key")) for taint in manifest["spec"].get("taints") or ()}
    return CandidateNode(str(metadata["name"]), any(each in labels or each in taints for each in _CONTROL_PLANE))
