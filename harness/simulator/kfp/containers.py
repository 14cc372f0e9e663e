"""What a step's container requests, from the compiled pipeline and its platform settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_duration, parse_quantity
from harness.simulator.cluster import Requirement, Shape, Toleration

Spec = Mapping[str, Any]
_ANY = Shape()


@dataclass(frozen=True, slots=True)
class Container:
    """What a step's pod runs and requests. CPU in thousandths of a core, memory in bytes; 0 means not given."""

    image: str = ""
    shape: Shape = _ANY
    limit_cpu: int = 0
    limit_memory: int = 0
    command: tuple[str, ...] = ()
    retries: int = 0
    backoff_s: float = 0.0
    backoff_factor: float = 2.0
    backoff_max_s: float = 3600.0


def read_container(container: Spec, platform: Spec, retry: Spec) -> Container:
    """The container of an executor; `platform` are its kfp-kubernetes settings, `retry` is the task's retry policy."""
    resources: Spec = container.get("resources", {})
    accelerator: Spec = resources.get("accelerator", {})
    gpus = _number(accelerator.get("resourceCount", accelerator.get("count", 0)))
    shape = Shape(
        round(1000 * _amount(resources, "resourceCpuRequest", "cpuRequest", 1.0)),
        int(_amount(resources, "resourceMemoryRequest", "memoryRequest", 1e9)),
        int(gpus),
        _requirements(platform),
        tuple(
            Toleration(t.get("key", ""), t.get("operator", "Equal"), t.get("value", ""), t.get("effect", ""))
            for t in platform.get("tolerations", ())
        ),
    )
    return Container(
        image=str(container.get("image", "")),
        shape=shape,
        limit_cpu=round(1000 * _amount(resources, "resourceCpuLimit", "cpuLimit", 1.0)),
        limit_memory=int(_amount(resources, "resourceMemoryLimit", "memoryLimit", 1e9)),
        command=tuple(map(str, container.get("command", ()))),
        retries=int(retry.get("maxRetryCount", 0)),
        backoff_s=parse_duration(str(retry.get("backoffDuration", "0s"))),
        backoff_factor=float(retry.get("backoffFactor", 2.0)),
        backoff_max_s=parse_duration(str(retry.get("backoffMaxDuration", "3600s"))),
    )


def _amount(resources: Spec, name: str, older: str, older_unit: float) -> float:
    """A resource as a quantity, or as the plain number of older compilers; 0 if it is a run's parameter."""
    if name in resources:
        return _number(resources[name])
    return _number(resources.get(older, 0)) * older_unit


def _number(given: object) -> float:
    try:
        return parse_quantity(given) if isinstance(given, str | int | float) else 0.0
    except ConfigError:
        return 0.0  # "{{$.inputs.parameters[…]}}": known only to the step


def _requirements(platform: Spec) -> tuple[Requirement, ...]:
    labels: Spec = platform.get("nodeSelector", {}).get("labels", {})
    wanted = [Requirement(key, "In", (str(value),)) for key, value in labels.items()]
    for term in platform.get("nodeAffinity", ()):
        if "weight" in term:
            continue  # a preference, not a requirement
        wanted.extend(
            Requirement(each["key"], each["operator"], tuple(map(str, each.get("values", ()))))
            for each in term.get("matchExpressions", ())
        )
    return tuple(wanted)
