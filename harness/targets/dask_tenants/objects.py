"""The Kubernetes objects of a tenant's session: a cluster, its autoscaler, and the pod that computes on it.

The first two are those of the Dask Kubernetes operator (kubernetes.dask.org/v1), with the fields that its own client
writes (`dask_kubernetes.operator.make_cluster_spec`). The third is the tenant's client, where a notebook would be.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_quantity

GROUP_VERSION = "kubernetes.dask.org/v1"
CLUSTER, COMPONENT = "dask.org/cluster-name", "dask.org/component"
SCHEDULER, WORKER, STAGE = "scheduler", "worker", "stage"
TEST_LABEL = "pipeswarm.io/test"  # the plan's id: which clusters are this test's
_GPU = re.compile(r"[a-z0-9.-]+/[A-Za-z0-9._-]+")  # of a vendor: its nodes usually carry a taint of this name
_RESOURCE = re.compile(r"[A-Za-z0-9./_-]{1,100}")
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")
_MOST_IN_NAME = 40  # with its random digits it is shorter than the 53 characters that the operator allows
_PORTS = (("tcp-comm", 8786), ("http-dashboard", 8787))
_CLIENT_NEEDS = {"cpu": "100m", "memory": "256Mi"}
_WORK = Path(__file__).with_name("stage.py")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What all clusters of a test have in common. `resources` are the limits of each scheduler and worker."""

    image: str
    resources: Mapping[str, str]
    worker_command: tuple[str, ...]
    test: str
    idle_timeout_s: int


def resources_of(text: str) -> dict[str, str]:
    """Parse ``cpu=1,memory=2Gi,nvidia.com/gpu=1``.

    Raises:
        ConfigError: it is something else.
    """
    hint = "write it as cpu=1,memory=2Gi,nvidia.com/gpu=1"
    found = {}
    for each in filter(None, map(str.strip, text.split(","))):
        name, _, amount = (part.strip() for part in each.partition("="))
        if not _RESOURCE.fullmatch(name) or name in found:
            raise ConfigError(f"--resources: '{each[:60]}' names no resource, or one twice", hint)
        try:
            positive = parse_quantity(amount) > 0
        except ConfigError as error:
            raise ConfigError(f"--resources, {name}: {error.message}", hint) from None
        if not positive:
            raise ConfigError(f"--resources, {name}: '{amount}' is not above 0", hint)
        found[name] = amount
    return found


def cluster_name(run_name: str) -> str:
    """A name for a new cluster: that of the run as far as the operator allows, and 10 random digits."""
    readable = _NOT_IN_NAME.sub("-", run_name.lower())[:_MOST_IN_NAME].strip("-") or "run"
    return f"{readable}-{secrets.token_hex(5)}"


def dask_cluster(recipe: Recipe, namespace: str, name: str) -> dict[str, Any]:
    """A cluster without workers: an autoscaler brings it to its width.

    The operator closes it where nobody else does, when its scheduler has been idle for as long as a session may take.
    """
    ports = [{"name": each, "containerPort": port, "protocol": "TCP"} for each, port in _PORTS]
    service_ports = [{"name": each, "port": port, "targetPort": each, "protocol": "TCP"} for each, port in _PORTS]
    health = {"httpGet": {"port": "http-dashboard", "path": "/health"}}
    scheduler = _container(recipe, SCHEDULER, ["dask-scheduler"]) | {
        "ports": ports,
        "readinessProbe": health | {"periodSeconds": 1, "timeoutSeconds": 300},
        "livenessProbe": health | {"initialDelaySeconds": 15, "periodSeconds": 20},
    }
    worker = _container(recipe, WORKER, [*recipe.worker_command, "--name", "$(DASK_WORKER_NAME)"])
    selector = {CLUSTER: name, COMPONENT: SCHEDULER}
    spec = {
        "idleTimeout": recipe.idle_timeout_s,
        WORKER: {"replicas": 0, "spec": _pod_spec(recipe, worker)},
        SCHEDULER: {
            "spec": _pod_spec(recipe, scheduler),
            "service": {"type": "ClusterIP", "selector": selector, "ports": service_ports},
        },
    }
    return _object("DaskCluster", namespace, name, recipe, spec)


def dask_autoscaler(recipe: Recipe, namespace: str, name: str, width: int) -> dict[str, Any]:
    """The autoscaler that brings a cluster to its width, and keeps it there."""
    return _object("DaskAutoscaler", namespace, name, recipe, {"cluster": name, "minimum": width, "maximum": width})


def stage_pod(
    recipe: Recipe, namespace: str, cluster: Mapping[str, Any], width: int, values: Mapping[str, float]
) -> dict[str, Any]:
    """The pod that computes on a cluster (as the API shows it) and ends when the stage is over.

    `values`: tasks, task_s, variation. It belongs to the cluster, so that Kubernetes deletes it with the cluster.
    """
    name = str(cluster["metadata"]["name"])
    address = f"tcp://{name}-scheduler.{namespace}.svc.cluster.local:8786"
    words = {"width": width, "tasks": values["tasks"], "task-s": values["task_s"], "variation": values["variation"]}
    container = {
        "name": STAGE,
        "image": recipe.image,
        "command": ["python", "-c", _WORK.read_text(encoding="utf-8")],
        "args": [f"--{word}={value}" for word, value in words.items()],
        "env": [{"name": "DASK_SCHEDULER_ADDRESS", "value": address}],
        "resources": {"requests": _CLIENT_NEEDS, "limits": {"memory": "1Gi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    owner = {
        "apiVersion": GROUP_VERSION, "kind": "DaskCluster", "name": name, "uid": str(cluster["metadata"]["uid"]),
    }  # fmt: skip
    found = _object("Pod", namespace, f"{name}-{STAGE}", recipe, {"restartPolicy": "Never", "containers": [container]})
    found["apiVersion"] = "v1"
    found["metadata"]["labels"] |= {CLUSTER: name, COMPONENT: STAGE, "sidecar.istio.io/inject": "false"}
    found["metadata"]["ownerReferences"] = [owner]
    return found


def _object(kind: str, namespace: str, name: str, recipe: Recipe, spec: Mapping[str, Any]) -> dict[str, Any]:
    labels = {TEST_LABEL: recipe.test} if recipe.test else {}
    about = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": GROUP_VERSION, "kind": kind, "metadata": about, "spec": dict(spec)}


def _container(recipe: Recipe, name: str, args: list[str]) -> dict[str, Any]:
    limits = dict(recipe.resources)
    resources = {"resources": {"limits": limits, "requests": limits}} if limits else {}
    return {"name": name, "image": recipe.image, "args": args, **resources}


def _pod_spec(recipe: Recipe, container: Mapping[str, Any]) -> dict[str, Any]:
    """With a toleration of the taint that keeps other pods off nodes with GPUs, as some clouds add it themselves."""
    tolerations = [{"key": name, "operator": "Exists"} for name in recipe.resources if _GPU.fullmatch(name)]
    return {"containers": [dict(container)], **({"tolerations": tolerations} if tolerations else {})}
