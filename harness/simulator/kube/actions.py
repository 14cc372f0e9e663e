"""What a Kubernetes client may do to the simulated cluster."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.simulator.cluster import Change, Pod
from harness.simulator.cluster.kubelet import GRACE_S
from harness.simulator.kube.installation import DATABASE_CLAIM, Claim
from harness.simulator.kube.view import KubernetesView
from harness.simulator.kubeapi import ApiError
from harness.simulator.profile import Taint

# What of each type a client can change; the rest is refused rather than ignored.
_CHANGEABLE: Mapping[str, frozenset[str]] = {
    "nodes": frozenset({"metadata.labels", "spec.taints", "spec.unschedulable"}),
    "pods": frozenset({"metadata.labels"}),
    "deployments": frozenset({"spec.replicas", "spec.template"}),
    "machinedeployments": frozenset({"spec.replicas"}),
    "persistentvolumeclaims": frozenset({"spec.resources"}),
}
_MOST = 10_000  # replicas, or nodes of a pool
_RESTARTED = "kubectl.kubernetes.io/restartedAt"


class ClusterActions:
    """Deleting, cordoning, labelling, scaling: done to the model, which shows the outcome."""

    def __init__(self, view: KubernetesView, advance: Callable[[], None]) -> None:
        self._view = view
        self._advance = advance

    def delete(self, plural: str, namespace: str, name: str, grace_s: float | None) -> None:
        """See `Actions.delete`."""
        self._advance()
        cluster, controller = self._view.platform.cluster, self._view.platform.controller
        if plural == "pods":
            self._delete_pod(cluster.pods[name], grace_s)
        elif plural == "nodes":
            cluster.remove_node(cluster.nodes[name], "deleted")
        elif plural == "workflows":
            workflow = controller.workflows[name]
            controller.remove(workflow)
            self._view.workflow_changed(workflow)
        elif plural == "events":
            self._view.store.delete("events", namespace, name)
        else:
            raise _kept(plural, name)
        self._advance()

    def evict(self, namespace: str, name: str, grace_s: float | None = None) -> None:
        """See `Actions.evict`."""
        del namespace
        self._advance()
        self._delete_pod(self._view.platform.cluster.pods[name], grace_s)
        self._advance()

    def _delete_pod(self, pod: Pod, grace_s: float | None) -> None:
        self._view.platform.cluster.kubelet.delete(pod, GRACE_S if grace_s is None else grace_s)

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """See `Actions.patch`."""
        del namespace
        self._advance()
        _check_changeable(plural, name, patch)
        try:
            self._patch(plural, name, patch)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            message = f'{plural} "{name}" in the patch cannot be handled: {error}'
            raise ApiError(400, "BadRequest", message, {"name": name, "kind": plural}) from error
        self._advance()

    def _patch(self, plural: str, name: str, patch: Mapping[str, Any]) -> None:
        spec = patch.get("spec", {})
        match plural:
            case "nodes":
                self._patch_node(name, patch)
            case "pods":
                pod = self._view.platform.cluster.pods[name]
                pod.labels = _merged(pod.labels, patch["metadata"]["labels"])
                self._view.pod_changed(pod, Change.LABELLED)
            case "deployments":
                self._patch_deployment(name, spec)
            case "machinedeployments":
                pool = next(each for each in self._view.platform.profile.pools if each.name == name)
                self._view.platform.cluster.scale_pool(pool, _replicas(spec))
            case "persistentvolumeclaims":
                self._resize(name, patch)

    def _patch_node(self, name: str, patch: Mapping[str, Any]) -> None:
        cluster = self._view.platform.cluster
        node, spec = cluster.nodes[name], patch.get("spec", {})
        node.labels = _merged(node.labels, patch.get("metadata", {}).get("labels", {}))
        if "taints" in spec:
            given = spec["taints"] or ()
            node.taints = tuple(
                Taint(each["key"], each.get("value", ""), each["effect"])
                for each in given
                if not each["key"].startswith("node.kubernetes.io/")
            )
        if "unschedulable" in spec and bool(spec["unschedulable"]) != node.cordoned:
            cluster.cordon(node, cordoned=bool(spec["unschedulable"]))
        else:
            node.special = True
            cluster.scheduler.room_made(node)
            self._view.node_changed(node)

    def _patch_deployment(self, name: str, spec: Mapping[str, Any]) -> None:
        template = spec.get("template", {})
        restarted = template.get("metadata", {}).get("annotations", {}).get(_RESTARTED)
        if template and template != {"metadata": {"annotations": {_RESTARTED: restarted}}}:
            raise _kept("deployments", name)
        if "replicas" in spec:
            self._scale(name, _replicas(spec))
        if restarted:
            self._view.deployments.restart(name, str(restarted))

    def _scale(self, name: str, replicas: int) -> None:
        platform = self._view.platform
        self._view.deployments.scale(name, replicas)
        if name == "ml-pipeline":  # each replica has a client of its own
            platform.server.bucket.rate = platform.profile.api.qps * max(replicas, 1)
            platform.server.bucket.burst = platform.profile.api.burst * max(replicas, 1)

    def _resize(self, name: str, patch: Mapping[str, Any]) -> None:
        wanted = patch.get("spec", {}).get("resources", {}).get("requests", {}).get("storage")
        if wanted is None:
            return
        claim = self._view.claims[name]
        try:
            size = parse_quantity(wanted)
        except ConfigError as error:
            raise ApiError(422, "Invalid", f'PersistentVolumeClaim "{name}" is invalid: {error.message}') from error
        if size < claim.capacity:
            why = "field can not be less than previous value"
            message = f'PersistentVolumeClaim "{name}" is invalid: spec.resources.requests.storage: Forbidden: {why}'
            raise ApiError(422, "Invalid", message, {"name": name, "kind": "PersistentVolumeClaim"})
        store = self._view.platform.store
        if name == store.installed.claim:
            store.capacity = size
        elif name == DATABASE_CLAIM:
            self._view.platform.server.database.capacity = size
        self._view.set_claim(Claim(name, claim.namespace, size))


def _kept(plural: str, name: str) -> ApiError:
    message = f'{plural} "{name}" is forbidden: the simulated platform keeps its own installation'
    return ApiError(403, "Forbidden", message, {"name": name, "kind": plural})


def _check_changeable(plural: str, name: str, patch: Mapping[str, Any]) -> None:
    parts = {f"{part}.{field}" for part, fields in patch.items() if isinstance(fields, dict) for field in fields}
    parts |= {part for part, fields in patch.items() if not isinstance(fields, dict)}
    others = sorted(parts - _CHANGEABLE.get(plural, frozenset()))
    if others:
        message = f'{plural} "{name}" is forbidden: the simulated platform can\'t change {", ".join(others)}'
        raise ApiError(403, "Forbidden", message, {"name": name, "kind": plural})


def _replicas(spec: Mapping[str, Any]) -> int:
    """How many are wanted.

    Raises:
        ValueError: it is no number, or more than anybody has.
    """
    wanted = spec["replicas"]
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 0 <= wanted <= _MOST:
        raise ValueError(f"spec.replicas is {str(wanted)[:20]}, and has to be a number from 0 to {_MOST}")
    return wanted


def _merged(labels: Mapping[str, str], patch: Mapping[str, Any]) -> dict[str, str]:
    merged = dict(labels)
    for key, value in (patch or {}).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = str(value)
    return merged
