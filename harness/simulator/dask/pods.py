"""Pods from the templates in a cluster's specification."""

from collections.abc import Mapping
from typing import Any

from harness.simulator.cluster import Pod
from harness.simulator.cluster.shapes import amounts_of, shape_of

Template = Mapping[str, Any]
_IDLE_CPU, _MEMORY = 0.02, 200 * 2**20  # in use by a scheduler or a client; what a worker uses is not modelled either


def container_of(template: Template) -> Mapping[str, Any]:
    """The main container of a pod's specification.

    Raises:
        ValueError: there is none with a name.
    """
    containers = template.get("containers")
    if (
        not isinstance(containers, list)
        or not containers
        or not all(isinstance(container, dict) for container in containers)
    ):
        raise ValueError("containers: Required value")
    first: Mapping[str, Any] = containers[0]
    if not isinstance(first.get("name"), str) or not first["name"]:
        raise ValueError("containers[0].name: Required value")
    return first


def make(
    name: str, namespace: str, template: Template, labels: Mapping[str, str], priorities: Mapping[str, int]
) -> Pod:
    """A pod with the requests, images, selector and tolerations of its template; `priorities` are those of classes.

    Raises:
        ConfigError: a quantity can't be read.
        ValueError: the template has no container.
    """
    resources = container_of(template).get("resources") or {}
    limits = amounts_of(resources.get("limits") or {})
    pod = Pod(name, namespace, shape_of(template, [resources], priorities), _images(template))
    pod.limit_cpu, pod.limit_memory = limits[0], limits[1]
    pod.labels = dict(labels)
    pod.usage_cpu, pod.usage_memory = _IDLE_CPU, _MEMORY
    return pod


def _images(template: Template) -> tuple[str, ...]:
    return tuple(str(container.get("image") or "") for container in template["containers"])
