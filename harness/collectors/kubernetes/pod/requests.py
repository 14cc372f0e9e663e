"""The resource requests of pods, as samples: one per task, and one more for each pod that differs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from harness.collectors.kubernetes.nodes import GPUS
from harness.model.forgetting import Ids
from harness.model.phases import (
    CPU_LIMIT_CORES,
    POD_PRIORITY,
    REQUESTED_CPU_CORES,
    REQUESTED_EPHEMERAL_BYTES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
)
from harness.model.records import Sample
from harness.model.units import parse_quantity

_METRICS = (
    REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, REQUESTED_GPUS, REQUESTED_EPHEMERAL_BYTES, CPU_LIMIT_CORES,
    POD_PRIORITY,
)  # fmt: skip
_MAIN = "main"  # the step's container in Argo's pods
_ALWAYS = "Always"  # the restart policy of a sidecar among the init containers


@dataclass(frozen=True, slots=True)
class Requests:
    """Requested cores, bytes of memory, GPUs, bytes of ephemeral storage; the step's CPU limit (0: none); priority."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    ephemeral: float = 0.0
    cpu_limit: float = 0.0
    priority: float = 0.0

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def at_least(self, other: "Requests") -> "Requests":
        """The larger one of each resource."""
        return Requests(*map(max, astuple(self), astuple(other)))


def requests_of(spec: Mapping[str, Any]) -> Requests:
    """What a pod with this spec occupies on its node.

    The sum of its containers or its largest init container, whichever is more, plus the overhead of its runtime class.
    Source: Kubernetes, "Resource Management for Pods and Containers" and "Sidecar Containers".
    """
    concurrent, initial = Requests(), Requests()
    for initcontainer in spec.get("initContainers") or ():
        if initcontainer.get("restartPolicy") == _ALWAYS:
            concurrent += _requested(initcontainer)
            initial = initial.at_least(concurrent)
        else:
            initial = initial.at_least(concurrent + _requested(initcontainer))
    for container in spec.get("containers") or ():
        concurrent += _requested(container)
    requests = concurrent.at_least(initial) + _amounts(spec.get("overhead") or {})
    limit = _cpu_limit(spec.get("containers") or ())
    return replace(requests, cpu_limit=limit, priority=float(spec.get("priority") or 0))


class RecordedRequests:
    """Decides which pods' requests need a record of their own."""

    def __init__(self) -> None:
        self._by_task: dict[str, Requests] = {}
        self._differing = Ids()

    def samples(self, task: str, pod: str, requests: Requests, now_at: int) -> Iterator[Sample]:
        """The samples to write for this pod: none when it requests the same as its task's first pod."""
        usual = self._by_task.get(task)
        if usual == requests or pod in self._differing:
            return
        if usual is None:
            self._by_task[task], labels = requests, {"task": task}
        else:
            self._differing.add(pod)
            labels = {"pod": pod}
        for metric, value in zip(_METRICS, astuple(requests), strict=True):
            yield Sample(metric, now_at, value, labels)


def _requested(container: Mapping[str, Any]) -> Requests:
    resources = container.get("resources") or {}
    # A limit without a request is also the request.
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _cpu_limit(containers: Sequence[Mapping[str, Any]]) -> float:
    """Cores that the step may use; 0 without a limit."""
    step = (
        containers
        if len(containers) == 1
        else [container for container in containers if container.get("name") == _MAIN]
    )
    limits = ((each.get("resources") or {}).get("limits") or {} for each in step)
    return next((parse_quantity(limit.get("cpu", 0)) for limit in limits), 0.0)


def _amounts(named: Mapping[str, Any]) -> Requests:
    gpu = sum(parse_quantity(named[name]) for name in GPUS if name in named)
    cpu, memory, ephemeral = (parse_quantity(named.get(name, 0)) for name in ("cpu", "memory", "ephemeral-storage"))
    return Requests(cpu, memory, float(gpu), ephemeral)
