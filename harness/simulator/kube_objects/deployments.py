"""Deployments and their pods, which are replaced when lost; a change of the template replaces them, too."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.simulator.cluster import Change, Pod, Shape, Toleration
from harness.simulator.cluster.shapes import quantity
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest, ObjectStore
from harness.simulator.kube_objects.components import Component
from harness.simulator.kube_objects.installation import SYSTEM_CLASSES
from harness.simulator.kube_objects.snapshots import Labels, metadata, uid
from harness.simulator.platform import Platform

RESTARTED = "kubectl.kubernetes.io/restartedAt"  # template annotation; a change makes a new revision
_MI = 2**20
_CRITICAL = SYSTEM_CLASSES["system-cluster-critical"]  # for the cluster's own components
_EVERYWHERE = (Toleration("CriticalAddonsOnly", "Exists"),)
_LEAST_CPU, _LEAST_MEMORY = 0.002, 30 * _MI  # usage of a component without requests
_SURGE = 0.25  # share of additional pods during a rollout
_STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment at one resource version.

    Attributes:
        replicas: desired pods.
        updated: pods of the newest revision.
        old: pods of older revisions.
        ready: ready pods of all revisions.
        restarted: the restart annotation in the pod template.
        container: the container in the pod template, without its requests.
    """

    component: Component
    namespace: str
    container: Manifest
    replicas: int = 0
    updated: int = 0
    old: int = 0
    ready: int = 0
    generation: int = 1
    revision: int = 1
    restarted: str = ""

    @property
    def rolled_out(self) -> bool:
        """Whether all desired pods run, in the newest revision."""
        return self.ready >= self.replicas and not self.old


class Deployments:
    """The deployments of one installation. `changed` is called whenever a deployment's pods change."""

    def __init__(self, platform: Platform, store: ObjectStore, changed: Callable[[Deployment], None]) -> None:
        self._platform = platform
        self._store = store
        self._changed = changed
        self._made: Counter[str] = Counter()  # pods created so far
        self._shown: dict[str, Deployment] = {}
        self._written: dict[str, Deployment] = {}
        self.pods: dict[str, list[Pod]] = {}  # of the newest revision, by deployment
        self._old: dict[str, list[Pod]] = {}

    def __getitem__(self, name: str) -> Deployment:
        """The deployment of that name."""
        return self._shown[name]

    def install(self, component: Component, namespace: str, replicas: int) -> None:
        """Add a deployment of a component with its pods."""
        self.pods[component.name], self._old[component.name] = [], []
        self._shown[component.name] = Deployment(component, namespace, component.manifest())
        self.scale(component.name, replicas)

    def scale(self, name: str, replicas: int) -> None:
        """Scale a deployment to this many pods."""
        before, pods = self._shown[name], self.pods[name]
        self._shown[name] = replace(before, replicas=replicas, generation=before.generation + 1)
        while len(pods) > replicas:
            self._platform.cluster.kubelet.delete(pods.pop())
        while len(pods) < replicas:
            self._add(name)
        self._count(name)

    def renew(self, name: str, restarted: str, container: Manifest) -> None:
        """Roll out a new revision, some pods at a time."""
        before = self._shown[name]
        self._shown[name] = replace(
            before,
            generation=before.generation + 1,
            revision=before.revision + 1,
            restarted=restarted,
            container=container,
        )
        self._old[name] += self.pods[name]
        self.pods[name].clear()
        self._roll(name)
        self._count(name)

    def _roll(self, name: str) -> None:
        """Create as many new pods as the surge allows, and delete an old pod for each running new one."""
        wanted, pods, old = self._shown[name].replicas, self.pods[name], self._old[name]
        running = sum(pod.started is not None for pod in pods)
        while old and running + len(old) > wanted:
            self._platform.cluster.kubelet.delete(old.pop())
        while len(pods) < wanted and len(pods) + len(old) < wanted + max(1, math.ceil(_SURGE * wanted)):
            self._add(name)

    def _add(self, name: str) -> None:
        """Add a pod: at time 0 it already runs, later it has to be scheduled and started."""
        deployment, cluster = self._shown[name], self._platform.cluster
        self._made[name] += 1
        pod = _pod(deployment, self._made[name])
        self.pods[name].append(pod)
        if self._platform.loop.now > 0 or not cluster.place_system_pod(pod, spread=deployment.component.spread):
            cluster.create(pod)

    def _count(self, name: str) -> None:
        """Update the shown counts if they changed."""
        before, pods, old = self._shown[name], self.pods[name], self._old[name]
        ready = sum(map(_is_ready, (*pods, *old)))
        after = replace(before, updated=len(pods), old=len(old), ready=ready)
        if after == self._written.get(name):
            return
        self._shown[name] = self._written[name] = after
        self._store.put("deployments", after.namespace, name, after)
        self._changed(after)

    def pod_changed(self, pod: Pod, name: str, change: Change) -> None:
        """Count a pod that has started; replace one that is deleted."""
        pods, old = self.pods[name], self._old[name]
        if change in {Change.TERMINATING, Change.GONE}:
            if pod in old:
                old.remove(pod)
            elif pod in pods:
                pods.remove(pod)
                self._add(name)
        if old:
            self._roll(name)
        self._count(name)


def _is_ready(pod: Pod) -> bool:
    return pod.started is not None and (pod.node is None or pod.node.unreachable is None)


def _pod(deployment: Deployment, number: int) -> Pod:
    """The deployment's pod with this number."""
    component = deployment.component
    pod = Pod(
        f"{_replica_set_name(deployment)}-{uid(component.name, str(number))[:5]}",
        deployment.namespace,
        Shape(
            component.cpu, component.memory, tolerations=_EVERYWHERE, priority=_CRITICAL if component.namespace else 0
        ),
        (component.image,),
        owner=Labels(
            app=component.name,
            deployment=component.name,
            template=_template_hash(deployment),
            claim=component.claim,
            container=deployment.container,
        ),
    )
    pod.usage_cpu = max(component.cpu / 4000, _LEAST_CPU)
    pod.usage_memory = max(component.memory * 0.6, _LEAST_MEMORY)
    return pod


# --- manifests --------------------------------------------------------------------------------------------------


def _template_hash(deployment: Deployment) -> str:
    revision = () if deployment.revision == 1 else (str(deployment.revision),)
    return uid("template", deployment.component.name, *revision)[:10].replace("-", "7")


def _replica_set_name(deployment: Deployment) -> str:
    return f"{deployment.component.name}-{_template_hash(deployment)}"


def _labels(deployment: Deployment) -> dict[str, str]:
    return {"app": deployment.component.name, "application-crd-id": "kubeflow-pipelines"}


def render_template(deployment: Deployment) -> Manifest:
    """The pod template."""
    component = deployment.component
    requests = {"cpu": f"{component.cpu}m", "memory": quantity(component.memory)} if component.cpu else {}
    container = {**deployment.container, "resources": {"requests": requests} if requests else {}}
    restarted = {RESTARTED: deployment.restarted}
    annotations = {"annotations": restarted} if deployment.restarted else {}
    return {"metadata": {"labels": _labels(deployment), **annotations}, "spec": {"containers": [container]}}


def render_deployment(deployment: Deployment, stamp: Stamp) -> Manifest:
    """The manifest of a deployment."""
    labels, wanted = _labels(deployment), deployment.replicas
    pods, available = deployment.updated + deployment.old, deployment.ready >= wanted
    minimum = {
        "type": "Available",
        "status": str(available),
        "reason": f"MinimumReplicas{'Available' if available else 'Unavailable'}",
        "message": f"Deployment {'has' if available else 'does not have'} minimum availability.",
    }
    complete = available and not deployment.old
    done, name = "has successfully progressed" if complete else "is progressing", _replica_set_name(deployment)
    progressing = {
        "type": "Progressing",
        "status": "True",
        "reason": "NewReplicaSetAvailable" if complete else "ReplicaSetUpdated",
        "message": f'ReplicaSet "{name}" {done}.',
    }
    stamps = {"lastTransitionTime": stamp(0.0), "lastUpdateTime": stamp(0.0)}
    counts = {
        "replicas": pods, "updatedReplicas": deployment.updated, "readyReplicas": deployment.ready,
        "availableReplicas": deployment.ready, "unavailableReplicas": max(pods, wanted) - deployment.ready,
    }  # fmt: skip
    return {
        "metadata": metadata(
            "deployment",
            deployment.component.name,
            stamp(0.0),
            deployment.namespace,
            generation=deployment.generation,
            annotations={"deployment.kubernetes.io/revision": str(deployment.revision)},
            labels=labels,
        ),
        "spec": {
            "replicas": wanted,
            "selector": {"matchLabels": labels},
            "strategy": _STRATEGY,
            "template": render_template(deployment),
        },
        "status": {
            "observedGeneration": deployment.generation,
            **{name: count for name, count in counts.items() if count > 0},
            "conditions": [{**each, **stamps} for each in (minimum, progressing)],
        },
    }
