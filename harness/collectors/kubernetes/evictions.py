"""Evictions through the Kubernetes API: of pods by their subresource, of nodes by deleting them after a notice."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson

from harness.collectors.kubernetes.kube_api import connect, listed
from harness.collectors.kubernetes.pod.life import run_of
from harness.collectors.source_health import UnreachableError
from harness.model.cluster import CandidateNode, CandidatePod
from harness.model.errors import ConfigError, TargetUnreachableError

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_ON_EVERY_NODE = frozenset({"DaemonSet", "Node"})  # kinds of owners
_ENDED = frozenset({"Succeeded", "Failed"})
_TIMEOUTS_S = (10.0, 60.0)  # for a connection, for an answer
_GONE, _IN_THE_WAY, _TOO_MANY, _BAD_REQUEST = 404, 409, 429, 400


class EvictionApi:
    """The cluster of a kubeconfig's context (none: its current one).

    Raises:
        ConfigError: there is no such context.
        TargetUnreachableError: there is no access to a cluster.
    """

    def __init__(self, context: str | None = None) -> None:
        from kubernetes import client

        try:
            connected, _ = connect(context or "")
        except UnreachableError as error:
            raise TargetUnreachableError(str(error), "set KUBECONFIG, or give --kube-context") from error
        self._core: Any = client.CoreV1Api(connected)

    def pods(self, namespace: str = "", selector: str = "") -> list[CandidatePod]:
        """The pods that have not ended, in one namespace or in all.

        Raises:
            ConfigError: the API server does not understand the selector.
            TargetUnreachableError: it refuses or does not answer, as with the other methods.
        """
        if namespace:
            found = self._items(self._core.list_namespaced_pod, namespace, label_selector=selector)
        else:
            found = self._items(self._core.list_pod_for_all_namespaces, label_selector=selector)
        return [_pod(each) for each in found if (each.get("status") or {}).get("phase") not in _ENDED]

    def nodes(self, selector: str) -> list[CandidateNode]:
        """The nodes that the selector matches."""
        return [_node(item) for item in self._items(self._core.list_node, label_selector=selector)]

    def evict_pod(self, namespace: str, name: str, grace_s: int | None) -> str:
        """Evict a pod; returns why that was not possible, "" if it was. None is the pod's own grace period."""
        # Without a version, each API server takes it as its own: policy/v1 is unknown before Kubernetes 1.22.
        body: dict[str, Any] = {"metadata": {"name": name, "namespace": namespace}}
        if grace_s is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace_s}
        return self._try(self._core.create_namespaced_pod_eviction, name, namespace, body)

    def delete_node(self, name: str, notice: Callable[[], None]) -> str:
        """Cordon a node, wait for the `notice`, delete the node; it is uncordoned again if that is not possible."""
        if refused := self._try(self._core.patch_node, name, {"spec": {"unschedulable": True}}):
            return refused
        deleted = False
        try:
            notice()
            refused = self._try(self._core.delete_node, name)
            deleted = not refused
        finally:
            if not deleted:
                self._try(self._core.patch_node, name, {"spec": {"unschedulable": None}})
        return refused

    def _items(self, call: Callable[..., Any], *given: str, label_selector: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._send(partial(listed, call), *given, label_selector=label_selector)
        return found

    def _try(self, call: Callable[..., Any], *given: object) -> str:
        """Send a change whose refusal concerns only this one object."""
        try:
            self._send(call, *given)
        except _RefusedError as error:
            return error.reason
        return ""

    @staticmethod
    def _send(call: Callable[..., Any], *given: object, **selectors: str) -> Any:
        """Plain JSON instead of the client's models."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            return call(*given, **selectors, _preload_content=False, _request_timeout=_TIMEOUTS_S)
        except ApiException as error:
            said = _message(error.body) or str(error.reason)
            if error.status == _BAD_REQUEST and selectors:
                raise ConfigError(
                    f"--selector: {said}", "write labels as kubectl does: key=value,other!=value"
                ) from error
            if error.status in {_GONE, _IN_THE_WAY, _TOO_MANY}:
                raise _RefusedError(said) from error
            hint = "grant it to the account of the kubeconfig: docs/spot.md lists the rights"
            raise TargetUnreachableError(f"the Kubernetes API refused: {error.status} {said}", hint) from error
        except HTTPError as error:
            raise TargetUnreachableError(
                f"the Kubernetes API does not answer: {error}", "try kubectl get nodes"
            ) from error


class _RefusedError(Exception):
    """The API server refuses a change for now, or its object is gone."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _message(body: object) -> str:
    """The message of a Status object."""
    try:
        return str(orjson.loads(body if isinstance(body, bytes | str) else b"")["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""


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
