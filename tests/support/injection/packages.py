"""Pipelines for tests: the example of three sequential steps, and others made from its steps."""

from typing import Any

import yaml

from harness.targets import kfp

_EXAMPLE = kfp.EXAMPLE.read_bytes()
PACKAGE = _EXAMPLE.replace(b"enableCache: true", b"enableCache: false")
_SPOT = {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}
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


def tolerating_spot() -> bytes:
    """All steps may run on spot machines."""
    spec = _spec()
    executors = {name: {"tolerations": [_SPOT]} for name in spec["deploymentSpec"]["executors"]}
    return _dumped(spec, {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}})


def on_gpus() -> bytes:
    """The training step on a GPU."""
    spec = _spec()
    container = spec["deploymentSpec"]["executors"]["exec-train"]["container"]
    container["resources"]["accelerator"] = {"resourceType": "nvidia.com/gpu", "resourceCount": "1"}
    executors = {"exec-train": {"tolerations": [_GPU]}}
    return _dumped(spec, {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}})
