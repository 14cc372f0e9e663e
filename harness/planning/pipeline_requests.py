"""What a compiled pipeline (KFP IR) requests: per task, and at most at once in one run."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from typing import Any

from harness import reading
from harness.analysis.cost.resources import Resources
from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.planning.jobs_per_node import RunRequests
from harness.prepare.settings import RESOURCE_KEYS

_PACKAGE = "the pipeline"
_DRIVER = (0.1, 64 * 2**20)  # what KFP requests for a driver pod: cores, bytes


def requests_by_task(package: bytes) -> dict[str, Resources]:
    """Requests and limits by task.

    Raises:
        ConfigError: it is not compiled IR, or a quantity in it can't be parsed.
    """
    with reading.structured(_PACKAGE):
        return _by_task(_spec(package))


def run_requests(package: bytes) -> RunRequests:
    """The most that one run requests at once: tasks that depend on as many others, one after the other, overlap.

    Raises:
        ConfigError: it is not compiled IR, or a quantity in it can't be parsed.
    """
    with reading.structured(_PACKAGE):
        return _run_requests(_spec(package))


def _run_requests(spec: Mapping[str, Any]) -> RunRequests:
    requested = _by_task(spec)
    tasks: dict[str, Any] = spec.get("root", {}).get("dag", {}).get("tasks", {})
    dependencies = {name: task.get("dependentTasks", ()) for name, task in tasks.items()}
    level: dict[str, int] = {}
    pods: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for name in TopologicalSorter(dependencies).static_order():
        level[name] = 1 + max((level[other] for other in dependencies[name]), default=-1)
        needs = requested.get(name, Resources())
        pods[level[name]].append(
            (max(needs.cpu_request or 0.0, _DRIVER[0]), max(needs.memory_request or 0.0, _DRIVER[1]))
        )
    levels = pods.values() or [[_DRIVER]]
    return RunRequests(
        max(sum(cpu for cpu, _ in each) for each in levels),
        max(sum(memory for _, memory in each) for each in levels),
        max(map(len, levels)),
    )


def _spec(package: bytes) -> dict[str, Any]:
    spec = next(iter(reading.parse_yaml(package, _PACKAGE)), None)
    if not isinstance(spec, dict):
        raise ConfigError(f"{_PACKAGE} is not compiled", "give its IR YAML")
    return spec


def _by_task(spec: Mapping[str, Any]) -> dict[str, Resources]:
    executors = spec.get("deploymentSpec", {}).get("executors", {})
    found = {}
    for task, label in _tasks(spec, spec.get("root", {})):
        given = executors.get(label, {}).get("container", {}).get("resources", {})
        found[task] = Resources(**{name: _quantity(given, *keys) for name, keys in RESOURCE_KEYS.items()})
    return found


def _tasks(spec: Mapping[str, Any], component: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each task that runs a container, with its executor's label; in nested pipelines too."""
    for name, task in component.get("dag", {}).get("tasks", {}).items():
        inner = spec.get("components", {}).get(task.get("componentRef", {}).get("name", ""), {})
        if "executorLabel" in inner:
            yield str(name), str(inner["executorLabel"])
        else:
            yield from _tasks(spec, inner)


def _quantity(given: Mapping[str, Any], text: str, number: str, unit: float) -> float | None:
    if text in given:
        return parse_quantity(str(given[text]))
    return float(given[number]) * unit if number in given else None
