"""Pipelines for tests: the example of three sequential steps, and others made from its steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from harness.targets import kfp

_EXAMPLE = kfp.EXAMPLE.read_bytes()
PACKAGE = _EXAMPLE.replace(b"enableCache: true", b"enableCache: false")
_GPU = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}


def _spec() -> Any:
    return yaml.safe_load(PACKAGE)


def _dumped(*documents: Any) -> bytes:
    return yaml.safe_dump_all(documents).encode()


def single() -> bytes:
    """A single step."""
    spec = _spec()
    spec["root"]["dag"]["tasks"] = {"prepare": spec["root"]["dag"]["tasks"]["prepare"]}
    return _dumped(spec)


def fan_out(width: int = 4) -> bytes:
    """One data step, and `width` parallel trainings on its output."""
    spec = _spec()
    tasks = spec["root"]["dag"]["tasks"]
    names = [f"train-{k}" for k in range(width)]
    sides = {name: tasks["train"] | {"taskInfo": {"name": name}} for name in names}
    spec["root"]["dag"]["tasks"] = {"prepare": tasks["prepare"], **sides}
    return _dumped(spec)


def on_gpus() -> bytes:
    """The training step on a GPU."""
    spec = _spec()
    container = spec["deploymentSpec"]["executors"]["exec-train"]["container"]
    container["resources"]["accelerator"] = {"resourceType": "nvidia.com/gpu", "resourceCount": "1"}
    executors = {"exec-train": {"tolerations": [_GPU]}}
    return _dumped(spec, {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}})


@dataclass(frozen=True)
class Task:
    """A step of a pipeline: what it waits for, its limits, and its loop.

    Attributes:
        cpu: limit in cores; 0 is none.
        memory: limit in bytes; 0 is none.
        gpus: requested GPUs.
        times: iterations of a loop around it; 1 is no loop.
        at_once: iterations that may run at once; 0 is all.
    """

    name: str
    after: tuple[str, ...] = ()
    cpu: float = 0.0
    memory: float = 0.0
    gpus: int = 0
    times: int = 1
    at_once: int = 0


def pipeline(tasks: Sequence[Task], tolerations: Sequence[Mapping[str, str]] = ()) -> bytes:
    """A pipeline of these steps, without requests; all steps tolerate the same taints."""
    spec: dict[str, Any] = {
        "pipelineInfo": {"name": "drawn"},
        "schemaVersion": "2.1.0",
        "sdkVersion": "kfp-2.16.1",
        "components": {},
        "deploymentSpec": {"executors": {}},
        "root": {"dag": {"tasks": {}}},
    }
    for task in tasks:
        _add(spec, task)
    executors = {f"exec-{task.name}": {"tolerations": list(tolerations)} for task in tasks}
    return _dumped(spec, {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}})


def _add(spec: dict[str, Any], task: Task) -> None:
    step, inner = f"comp-{task.name}", {"componentRef": {"name": f"comp-{task.name}"}}
    spec["components"][step] = {"executorLabel": f"exec-{task.name}"}
    limits = {"resourceCpuLimit": f"{task.cpu:g}"} if task.cpu else {}
    limits |= {"resourceMemoryLimit": f"{task.memory:.0f}"} if task.memory else {}
    gpus = {"accelerator": {"resourceType": "nvidia.com/gpu", "resourceCount": str(task.gpus)}} if task.gpus else {}
    spec["deploymentSpec"]["executors"][f"exec-{task.name}"] = {
        "container": {"image": "python:3.11", "command": ["python"], "resources": limits | gpus}
    }
    outer: dict[str, Any] = inner
    if task.times > 1:
        name = f"comp-for-loop-{task.name}"
        spec["components"][name] = {"dag": {"tasks": {task.name: inner | {"taskInfo": {"name": task.name}}}}}
        outer = {
            "componentRef": {"name": name},
            "parameterIterator": {"items": {"raw": str([*range(task.times)])}, "itemInput": "item"},
            "iteratorPolicy": {"parallelismLimit": task.at_once},
        }
    name = task.name if task.times == 1 else f"for-loop-{task.name}"
    after = {"dependentTasks": [*task.after]} if task.after else {}
    spec["root"]["dag"]["tasks"][name] = outer | after | {"taskInfo": {"name": name}}
