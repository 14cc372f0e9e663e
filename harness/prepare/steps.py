"""The tasks of a compiled pipeline, in every component's DAG; and steps that share a component, each by itself."""

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from harness.model.errors import ConfigError, suggestion

Document = dict[str, Any]
# Images of tasks that KFP's driver itself carries out (kfp-kubernetes' CreatePVC and DeletePVC), without a pod.
DRIVER_ONLY = ("argostub/createpvc", "argostub/deletepvc")


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the pipeline, or of one of its components.

    Attributes:
        dag: the component whose DAG has it; "" for the pipeline's root.
        spec: the task itself, part of the document.
        label: its executor's; "" for a nested pipeline, condition or loop.
    """

    dag: str
    name: str
    spec: Document
    label: str

    @property
    def key(self) -> tuple[str, str]:
        """Identifies it in its pipeline."""
        return self.dag, self.name


def tasks_of(spec: Mapping[str, Any]) -> Iterator[Task]:
    """All tasks, each once, also if several tasks refer to the component it is in."""
    components: Mapping[str, Any] = spec.get("components", {})
    for dag, component in (("", spec["root"]), *components.items()):
        for name, task in component.get("dag", {}).get("tasks", {}).items():
            inner = components.get(task.get("componentRef", {}).get("name", ""), {})
            yield Task(dag, str(name), task, str(inner.get("executorLabel", "")))


def container_of(spec: Mapping[str, Any], task: Task) -> Document | None:
    """The container of a task with a pod of its own; none for pipelines, importers and what the driver does itself."""
    if not task.label:
        return None
    container: Document | None = spec["deploymentSpec"]["executors"][task.label].get("container")
    return None if container is None or container.get("image") in DRIVER_ONLY else container


def matching(spec: Mapping[str, Any], patterns: Collection[str]) -> list[Task]:
    """The tasks with a name that any of the patterns matches; all tasks without a pattern.

    Raises:
        ConfigError: a pattern matches no task that runs in a pod.
    """
    tasks = list(tasks_of(spec))
    steps = sorted({task.name for task in tasks if container_of(spec, task) is not None})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in steps):
            raise ConfigError(
                f"--task: '{pattern}' matches no step",
                f"{suggestion(pattern, steps)}its steps: {', '.join(steps) or 'none'}",
            )
    return [task for task in tasks if not patterns or any(fnmatchcase(task.name, each) for each in patterns)]


def separate(spec: Document, platform: Document, chosen: Collection[tuple[str, str]]) -> None:
    """Give the chosen tasks executors of their own where others share them: settings belong to the executor.

    Args:
        spec: the PipelineSpec, changed in place.
        platform: the settings by executor, changed in place.
        chosen: keys of the tasks.
    """
    tasks = [task for task in tasks_of(spec) if task.label]
    shared = {task.label for task in tasks if task.key not in chosen}
    components, executors = spec["components"], spec["deploymentSpec"]["executors"]
    copies: dict[str, str] = {}
    labels: dict[str, str] = {}
    for task in tasks:
        if task.key not in chosen or task.label not in shared:
            continue
        name = task.spec["componentRef"]["name"]
        if task.label not in labels:
            labels[task.label] = label = _unused(task.label, executors)
            executors[label] = deepcopy(executors[task.label])
            if task.label in platform:
                platform[label] = deepcopy(platform[task.label])
        if name not in copies:
            copies[name] = copy = _unused(name, components)
            components[copy] = deepcopy(components[name]) | {"executorLabel": labels[task.label]}
        task.spec["componentRef"]["name"] = copies[name]


def _unused(name: str, taken: Collection[str]) -> str:
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"
