"""The writes of Kubernetes clients, applied to the model."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.simulator.cluster import Change, Pod
from harness.simulator.cluster.kubelet import GRACE_S
from harness.simulator.cluster.objects import DISRUPTED_BY_EVICTION
from harness.simulator.kube_api import ApiError, Manifest
from harness.simulator.kube_api.patches import merge
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_objects import dask_objects, settings
from harness.simulator.kube_objects.argo_objects import ArgoObjects
from harness.simulator.kube_objects.components import API_SERVER, CONFIGURATION, DATABASE_CLAIM
from harness.simulator.kube_objects.dask_objects import DaskObjects
from harness.simulator.kube_objects.deployments import RESTARTED, Deployment, render_template
from harness.simulator.kube_objects.installation import Claim
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.profile import Quota, Taint

# The fields that clients can change, by type; other changes are refused, not ignored.
_CHANGEABLE: Mapping[str, frozenset[str]] = {
    "nodes": frozenset({"metadata.labels", "spec.taints", "spec.unschedulable"}),
    "pods": frozenset({"metadata.labels"}),
    "configmaps": frozenset({f"data.{name}" for name in settings.LIMITS}),
    "deployments": frozenset({"spec.replicas", "spec.template"}),
    "machinedeployments": frozenset({"spec.replicas"}),
    "persistentvolumeclaims": frozenset({"spec.resources"}),
    "resourcequotas": frozenset({"spec.hard"}),
}
_MOST_REPLICAS = 10_000  # or nodes of a pool
_LIMITED = {"requests.cpu", "requests.memory", "cpu", "memory", "pods", "requests.nvidia.com/gpu"}  # by a quota
_CHANGEABLE_IN_CONTAINER = ("args", "env")


class ClusterActions:
    """Implements `kube_api.Actions`: deletes, cordons, labels and scales the model, whose view shows the outcome."""

    def __init__(self, view: KubernetesView, advance: Callable[[], None]) -> None:
        self._view = view
        self._advance = advance
        self._argo = ArgoObjects(view)
        self._dask = DaskObjects(view)

    def make(self, resource: Resource, namespace: str, document: Manifest, *, dry: bool = False) -> None:
        """As `Actions.make`."""
        self._advance()
        if resource.group == dask_objects.API or resource.plural == "pods":
            self._dask.create(resource, namespace, document, dry=dry)
        else:
            self._argo.create(resource.kind, namespace, document, dry=dry)
        self._advance()

    def delete(self, plural: str, namespace: str, name: str, grace_s: float | None) -> None:
        """As `Actions.delete`."""
        self._advance()
        cluster, controller = self._view.platform.cluster, self._view.platform.controller
        if plural == "pods":
            self._delete_pod(cluster.pods[name], grace_s)
        elif plural == "nodes":
            cluster.delete_node(cluster.nodes[name])
        elif self._argo.delete(plural, namespace, name) or self._dask.delete(plural, namespace, name):
            pass
        elif plural == "workflows":
            workflow = controller.workflows[namespace, name]
            controller.remove(workflow)
            self._view.workflow_changed(workflow)
        elif plural == "events":
            self._view.store.delete("events", namespace, name)
        else:
            raise _kept(plural, name)
        self._advance()

    def evict(self, namespace: str, name: str, grace_s: float | None = None) -> None:
        """As `Actions.evict`."""
        del namespace
        self._advance()
        pod = self._view.platform.cluster.pods[name]
        if pod.deleting is None and not pod.over:
            pod.disrupted = DISRUPTED_BY_EVICTION
        self._delete_pod(pod, grace_s)
        self._advance()

    def _delete_pod(self, pod: Pod, grace_s: float | None) -> None:
        self._view.platform.cluster.kubelet.delete(pod, GRACE_S if grace_s is None else grace_s)

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """As `Actions.patch`."""
        self._advance()
        if any(each.patch(plural, namespace, name, patch) for each in (self._argo, self._dask)):
            self._advance()
            return
        _check_changeable(plural, name, patch)
        try:
            self._patch(plural, namespace, name, patch)
        except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
            message = f'{plural} "{name}" in the patch cannot be handled: {error}'
            raise ApiError(400, "BadRequest", message, {"name": name, "kind": plural}) from error
        self._advance()

    def _patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
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
            case "resourcequotas":
                self._limit_to(namespace, spec["hard"])
            case "configmaps":
                self._configure(name, patch["data"])

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
        deployments = self._view.deployments
        if "template" in spec:
            before = deployments[name]
            restarted, container = _template(before, spec["template"])
            settings.read(name, container)  # refuses invalid values
            deployments.renew(name, restarted, container)
        if "replicas" in spec:
            self._scale(name, _replicas(spec))

    def _scale(self, name: str, replicas: int) -> None:
        before = self._view.deployments[name].replicas
        self._view.deployments.scale(name, replicas)
        if name == API_SERVER:  # each replica has its own client
            more = max(replicas, 1) / max(before, 1)
            for bucket in self._view.platform.server.buckets:
                bucket.rate, bucket.burst = bucket.rate * more, bucket.burst * more

    def _limit_to(self, namespace: str, hard: Mapping[str, str | None]) -> None:
        """Change a namespace's quota: resources missing in `hard` keep their limits, null removes one."""
        quota = self._view.platform.controller.quotas.of(namespace)
        unknown = hard.keys() - _LIMITED
        if unknown:
            raise _kept("resourcequotas", f"{', '.join(sorted(unknown))} of {quota.name}")

        def limit(name: str, before: float) -> float:
            key = name if name in hard else name.removeprefix("requests.")
            if key not in hard:
                return before
            amount = parse_quantity(str(hard[key])) if hard[key] is not None else 0.0
            if hard[key] is not None and not amount > 0:
                raise ValueError(f"{key} is {hard[key]}: the simulated quota cannot be 0")
            return amount

        limits = quota.limits
        quota.limit_to(
            Quota(
                cpu=limit("requests.cpu", limits.cpu),
                memory=limit("requests.memory", limits.memory),
                gpu=int(limit("requests.nvidia.com/gpu", limits.gpu)),
                pods=int(limit("pods", limits.pods)),
            )
        )

    def _configure(self, name: str, data: Mapping[str, str | None]) -> None:
        if name != CONFIGURATION:
            raise _kept("configmaps", name)
        if not all(isinstance(value, str | None) for value in data.values()):
            raise ValueError("data must be strings")
        merged = {**self._view.configuration, **data}
        configuration = {key: value for key, value in merged.items() if value is not None}
        limits = settings.limits(configuration)
        self._view.configure(configuration)
        self._view.platform.controller.limit_to(*limits)

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


def _template(before: Deployment, patch: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The restart annotation and the container after a change of the template.

    Raises:
        ApiError: 403: a change of anything but these, or of the container beyond arguments and environment.
    """
    merged = merge(render_template(before), patch)
    (container,) = merged["spec"]["containers"]
    restarted = merged["metadata"].get("annotations", {}).get(RESTARTED, "")
    _check_container(container)
    kept = {name: value for name, value in before.container.items() if name not in _CHANGEABLE_IN_CONTAINER}
    changed = {name: container[name] for name in _CHANGEABLE_IN_CONTAINER if container.get(name)}
    after = replace(before, restarted=restarted, container={**kept, **changed})
    if render_template(after) != merged:
        raise _kept("deployments", before.component.name)
    return restarted, after.container


def _check_container(container: Mapping[str, Any]) -> None:
    """Check the types of arguments and environment.

    Raises:
        ValueError: wrong type.
    """
    arguments, environment = container.get("args") or [], container.get("env") or []
    if not isinstance(arguments, list) or not all(isinstance(argument, str) for argument in arguments):
        raise ValueError("args must be a list of strings")
    if not isinstance(environment, list) or not all(_is_variable(each) for each in environment):
        raise ValueError("env must be a list of names with values")


def _is_variable(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return False
    return isinstance(value.get("value", ""), str) and isinstance(value.get("valueFrom", {}), dict)


def _kept(plural: str, name: str) -> ApiError:
    message = f'{plural} "{name}" is forbidden: the simulated platform cannot change it'
    return ApiError(403, "Forbidden", message, {"name": name, "kind": plural})


def _check_changeable(plural: str, name: str, patch: Mapping[str, Any]) -> None:
    parts = {f"{part}.{field}" for part, fields in patch.items() if isinstance(fields, dict) for field in fields}
    parts |= {part for part, fields in patch.items() if not isinstance(fields, dict)}
    others = sorted(parts - _CHANGEABLE.get(plural, frozenset()))
    if others:
        message = f'{plural} "{name}" is forbidden: the simulated platform can\'t change {", ".join(others)}'
        raise ApiError(403, "Forbidden", message, {"name": name, "kind": plural})


def _replicas(spec: Mapping[str, Any]) -> int:
    """The desired number of replicas.

    Raises:
        ValueError: not a number from 0 to 10,000.
    """
    wanted = spec["replicas"]
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 0 <= wanted <= _MOST_REPLICAS:
        raise ValueError(f"spec.replicas is {str(wanted)[:20]}, and must be a number from 0 to {_MOST_REPLICAS}")
    return wanted


def _merged(labels: Mapping[str, str], patch: Mapping[str, Any]) -> dict[str, str]:
    merged = dict(labels)
    for key, value in (patch or {}).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = str(value)
    return merged
