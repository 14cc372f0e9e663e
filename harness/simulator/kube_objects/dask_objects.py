"""Objects of the Dask Kubernetes operator at the Kubernetes API: made, scaled and deleted by clients.

A tenant's stage of work is a pod of its own (`harness.targets.dask_tenants.objects`), which is the only kind of pod
that clients can create.
"""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from harness.model.errors import ConfigError
from harness.simulator.cluster import Pod
from harness.simulator.dask import pods
from harness.simulator.dask.operator import CLUSTER, COMPONENT, SCHEDULER, STAGE, WORKER, DaskCluster, Operator
from harness.simulator.kube_api import ApiError, Manifest
from harness.simulator.kube_api.errors import not_creatable
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_objects.installation import render_namespace
from harness.simulator.kube_objects.snapshots import Labels, metadata
from harness.simulator.kube_objects.view import KubernetesView

API = "kubernetes.dask.org"
CLUSTERS, GROUPS, AUTOSCALERS = "daskclusters", "daskworkergroups", "daskautoscalers"
DEPLOYMENTS = "deployments"
_MOST_WORKERS, _MOST_TASKS, _MOST_TASK_S = 10_000, 1_000_000, 1e6


class DaskObjects:
    """Takes what clients write, and keeps the store's objects up to date."""

    def __init__(self, view: KubernetesView) -> None:
        platform = view.platform
        self._view = view
        self._store = view.store
        self._random = Random(f"{platform.seed}/dask tasks")
        self._deployments: dict[DaskCluster, dict[str, Manifest]] = {}  # as the store has them
        self._operator = Operator(
            platform.loop, platform.cluster, platform.profile.priority_classes, Random(f"{platform.seed}/dask"),
            quotas=platform.controller.quotas, changed=self._changed, owner=_owner,
        )  # fmt: skip

    def create(self, resource: Resource, namespace: str, document: Manifest, *, dry: bool = False) -> None:
        """Take a new object, whose metadata the server has completed.

        Raises:
            ApiError: 422 for what the operator's definitions refuse, 403 for a pod that is no tenant's stage or for
                which the quota has no room, 404 without the cluster that it names.
        """
        name = document["metadata"]["name"]
        try:
            _demand_mapping(document.get("spec"), "spec")
            match resource.plural:
                case "pods":
                    self._run(resource, namespace, document, dry=dry)
                case "daskclusters":
                    self._add(namespace, document, dry=dry)
                case "daskautoscalers":
                    self._adapt(namespace, document, dry=dry)
                case _:
                    raise not_creatable(resource)
        except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
            why = error.message if isinstance(error, ConfigError) else str(error)
            message = f'{resource.kind}.{API} "{name}" is invalid: {why}'
            raise ApiError(422, "Invalid", message, {"name": name, "group": API, "kind": resource.kind}) from error

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> bool:
        """Scale a cluster; false for other objects.

        Raises:
            ApiError: 403 for any other change.
        """
        if plural not in {CLUSTERS, GROUPS, AUTOSCALERS}:
            return False
        dask_cluster = self._operator.clusters.get(
            (namespace, name.removesuffix("-default") if plural == GROUPS else name)
        )
        replicas = (patch.get("spec") or {}).get("worker", {}).get("replicas")
        if dask_cluster is None or patch != {"spec": {"worker": {"replicas": replicas}}} or not _is_count(replicas):
            message = f'{plural} "{name}" is forbidden: the simulated platform only changes spec.worker.replicas'
            raise ApiError(403, "Forbidden", message, {"name": name, "kind": plural})
        self._operator.scale(dask_cluster, replicas)
        return True

    def delete(self, plural: str, namespace: str, name: str) -> bool:
        """Delete a cluster with all that belongs to it, or an autoscaler; false for other objects."""
        if plural == CLUSTERS:
            self._operator.remove(self._operator.clusters[namespace, name])
        elif plural == AUTOSCALERS:
            shown = self._manifest_of(AUTOSCALERS, namespace, name)
            dask_cluster = self._operator.clusters.get((namespace, str(shown["spec"]["cluster"])))
            if dask_cluster is not None:
                dask_cluster.bounds = None
            self._store.delete(plural, namespace, name)
        return plural in {CLUSTERS, AUTOSCALERS}

    # --- what clients create ----------------------------------------------------------------------------------------

    def _add(self, namespace: str, document: Manifest, *, dry: bool) -> None:
        spec = document["spec"]
        for component in (WORKER, SCHEDULER):
            template = _demand_mapping((spec.get(component) or {}).get("spec"), f"spec.{component}.spec")
            pods.make("trial", namespace, template, {}, {})
        _demand_mapping(spec[SCHEDULER].get("service"), "spec.scheduler.service")
        replicas = spec[WORKER].get("replicas", 3)
        if not _is_count(replicas):
            raise ValueError(f"spec.worker.replicas: Invalid value: must be an integer from 0 to {_MOST_WORKERS}")
        if dry:
            return
        if not any(stored.name == namespace for stored in self._store.objects(self._type("namespaces"))):
            self._store.put("namespaces", "", namespace, render_namespace(namespace, self._view.calendar.stamp))
        self._operator.add(DaskCluster(document, self._view.platform.loop.now, replicas))

    def _adapt(self, namespace: str, document: Manifest, *, dry: bool) -> None:
        spec = document["spec"]
        dask_cluster = self._demand_cluster(namespace, str(spec["cluster"]))
        least, most = spec["minimum"], spec["maximum"]
        if not _is_count(least) or not _is_count(most):
            raise ValueError(f"spec.minimum and spec.maximum must be integers from 0 to {_MOST_WORKERS}")
        if not dry:
            self._store.put(AUTOSCALERS, namespace, document["metadata"]["name"], document)
            self._operator.adapt(dask_cluster, least, most)

    def _run(self, resource: Resource, namespace: str, document: Manifest, *, dry: bool) -> None:
        labels = document["metadata"].get("labels") or {}
        if labels.get(COMPONENT) != STAGE:
            raise not_creatable(resource)
        dask_cluster = self._demand_cluster(namespace, str(labels.get(CLUSTER)))
        spec, name = document["spec"], document["metadata"]["name"]
        pod = pods.make(name, namespace, spec, labels, self._view.platform.profile.priority_classes)
        lengths = lengths_of(pods.container_of(spec).get("args") or (), self._random)
        if refusal := self._view.platform.controller.quotas.of(namespace).refusal(pod):
            raise ApiError(403, "Forbidden", refusal, {"name": name, "kind": "pods"})
        if not dry:
            self._operator.run(dask_cluster, pod, spec, lengths)

    def _demand_cluster(self, namespace: str, name: str) -> DaskCluster:
        dask_cluster = self._operator.clusters.get((namespace, name))
        if dask_cluster is None:
            raise ApiError(404, "NotFound", f'{CLUSTERS}.{API} "{name}" not found', {"name": name, "kind": CLUSTERS})
        return dask_cluster

    # --- what the API shows -----------------------------------------------------------------------------------------

    def _type(self, plural: str) -> Resource:
        return next(resource for resource in self._store.resources if resource.plural == plural)

    def _manifest_of(self, plural: str, namespace: str, name: str) -> Manifest:
        stored = self._store.get(self._type(plural), namespace, name)
        assert stored is not None
        return stored.manifest(self._type(plural))

    def _changed(self, found: DaskCluster) -> None:
        """Store a cluster's new state with that of its worker group, or remove all that belongs to it."""
        place, name = found.namespace, found.name
        if self._operator.clusters.get((place, name)) is not found:
            for plural, each in (*self._belonging(found), *self._deployments_of(found)):
                self._store.delete(plural, place, each)
            self._deployments.pop(found, None)
            return
        spec = {**found.manifest["spec"], WORKER: {**found.manifest["spec"][WORKER], "replicas": found.replicas}}
        shown = {**found.manifest, "spec": spec, "status": {"phase": found.phase}}
        self._store.put(CLUSTERS, place, name, shown)
        if found.scheduler is not None:
            group, labels = f"{name}-default", {CLUSTER: name, COMPONENT: "workergroup"}
            created = self._view.calendar.stamp(found.created)
            about = metadata(
                "daskworkergroup", group, created, place, labels=labels, ownerReferences=[_reference(found)]
            )
            self._store.put(GROUPS, place, group, {"metadata": about, "spec": {"cluster": name, WORKER: spec[WORKER]}})
        self._show_deployments(found)

    def _show_deployments(self, found: DaskCluster) -> None:
        """Store the Deployments that are new or changed, and remove those that are gone."""
        kept = dict(self._deployments.get(found, {}))
        now = {name: self._deployment(found, name, pod) for name, pod in found.deployments.items()}
        for name, shown in now.items():
            if shown != kept.pop(name, None):
                self._store.put(DEPLOYMENTS, found.namespace, name, shown)
        for name in kept:
            self._store.delete(DEPLOYMENTS, found.namespace, name)
        self._deployments[found] = now

    def _deployment(self, found: DaskCluster, name: str, pod: Pod) -> Manifest:
        labels, ready = dict(pod.labels), int(pod.started is not None and not pod.over)
        created = self._view.calendar.stamp(pod.created)
        about = metadata(
            "deployment", name, created, found.namespace, labels=labels, ownerReferences=[_reference(found)]
        )
        template = {"metadata": {"labels": labels}, "spec": found.template(labels[COMPONENT])}
        status: Manifest = {"readyReplicas": 1, "availableReplicas": 1} if ready else {"unavailableReplicas": 1}
        if why := found.refusals.get(pod.name):
            status["conditions"] = [
                {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": why}
            ]
        else:
            status |= {"replicas": 1, "updatedReplicas": 1}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return {"metadata": about, "spec": spec, "status": status}

    def _deployments_of(self, found: DaskCluster) -> Iterable[tuple[str, str]]:
        return ((DEPLOYMENTS, deployment) for deployment in self._deployments.get(found, ()))

    def _belonging(self, found: DaskCluster) -> Iterable[tuple[str, str]]:
        """The objects of a cluster in the store, itself first: (plural, name)."""
        yield CLUSTERS, found.name
        for plural in (GROUPS, AUTOSCALERS):
            resource = self._type(plural)
            for stored in tuple(self._store.objects(resource)):
                if stored.namespace == found.namespace and stored.manifest(resource)["spec"]["cluster"] == found.name:
                    yield plural, stored.name


def _reference(found: DaskCluster) -> Manifest:
    its = found.manifest["metadata"]["uid"]
    return {"apiVersion": f"{API}/v1", "kind": "DaskCluster", "name": found.name, "uid": its, "controller": True}


def _owner(found: DaskCluster, template: pods.Template) -> Labels:
    main = {key: value for key, value in pods.container_of(template).items() if key in {"name", "args", "command"}}
    return Labels(dask=found.name, container=main)


def _demand_mapping(given: object, path: str) -> Mapping[str, Any]:
    """What is at the path, which definitions require.

    Raises:
        ValueError: it is missing, or something else.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"{path}: Required value")  # noqa: TRY004  # it is the document's error, not the caller's
    return given


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_WORKERS


def lengths_of(arguments: Iterable[object], random: Random) -> list[float]:
    """How long each task of a stage takes, evenly random around the mean, from the arguments of its pod.

    Raises:
        ValueError: they do not say so, or something impossible.
    """
    given = dict(
        str(argument).removeprefix("--").split("=", 1) for argument in arguments if str(argument).startswith("--")
    )
    tasks, mean_s, variation = int(given["tasks"]), float(given["task-s"]), float(given["variation"])
    if not (0 < tasks <= _MOST_TASKS and 0 <= mean_s <= _MOST_TASK_S and 0 <= variation <= 1):
        raise ValueError("args: the stage's tasks, task-s or variation are out of bounds")
    return [mean_s * (1 + variation * random.uniform(-1.0, 1.0)) for _ in range(tasks)]
