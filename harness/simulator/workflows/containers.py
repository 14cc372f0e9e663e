"""What a step's container requests, from the compiled pipeline and its platform settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_duration, parse_quantity
from harness.simulator.cluster import Requirement, Shape
from harness.simulator.cluster.shapes import HOSTNAME, tolerations_of

Spec = Mapping[str, Any]
_ANY = Shape()
_LABELS = {"metadata.name": HOSTNAME}  # by the only field that terms can match


@dataclass(frozen=True, slots=True)
class Container:
    """What a step's pod runs and requests. CPU in thousandths of a core, memory in bytes; 0 means not given.

    `labels` are the pod's own; `deadline_s` is its longest time on a node; `more_images` are those of the user's other
    containers. One that `serves` ends with what it serves. `parts` are the names of containers that compute one after
    another, and of those before each.
    """

    image: str = ""
    shape: Shape = _ANY
    limit_cpu: int = 0
    limit_memory: int = 0
    command: tuple[str, ...] = ()
    retries: int = 0
    backoff_s: float = 0.0
    backoff_factor: float = 2.0
    backoff_max_s: float = 3600.0
    labels: tuple[tuple[str, str], ...] = ()
    deadline_s: int = 0
    more_images: tuple[str, ...] = ()
    serves: bool = False
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()


def read_container(container: Spec, platform: Spec, retry: Spec) -> Container:
    """The container of an executor; `platform` are its kfp-kubernetes settings, `retry` is the task's retry policy."""
    resources: Spec = container.get("resources", {})
    accelerator: Spec = resources.get("accelerator", {})
    gpus = _number(accelerator.get("resourceCount", accelerator.get("count", 0)))
    shape = Shape(
        round(1000 * _amount(resources, "resourceCpuRequest", "cpuRequest", 1.0)),
        int(_amount(resources, "resourceMemoryRequest", "memoryRequest", 1e9)),
        int(gpus),
        _pairs(platform.get("nodeSelector", {})),
        tolerations_of(platform.get("tolerations", ())),
        affinity=_required(platform),
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
        labels=_pairs(platform.get("podMetadata", {})),
        deadline_s=int(platform.get("activeDeadlineSeconds", 0)),
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


def _pairs(holder: Spec) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in holder.get("labels", {}).items())


def _required(platform: Spec) -> tuple[tuple[Requirement, ...], ...]:
    """The required terms of the node affinity; one with a weight is a preference, and the driver skips an empty one."""
    return tuple(
        tuple(
            Requirement(
                _LABELS.get(each["key"], each["key"]), each["operator"], tuple(map(str, each.get("values", ())))
            )
            for each in (*term.get("matchExpressions", ()), *term.get("matchFields", ()))
        )
        for term in platform.get("nodeAffinity", ())
        if "weight" not in term and (term.get("matchExpressions") or term.get("matchFields"))
    )
