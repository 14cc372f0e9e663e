"""The resource requests of pods, as samples: one per task, and one more for each pod that differs."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from harness.collectors.kubernetes.nodes import GPUS
from harness.model.phases import REQUESTED_CPU_CORES, REQUESTED_GPUS, REQUESTED_MEMORY_BYTES
from harness.model.records import Sample
from harness.model.units import parse_quantity

_METRICS = (REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, REQUESTED_GPUS)
_ALWAYS = "Always"  # the restart policy of a sidecar among the init containers


@dataclass(frozen=True, slots=True)
class Requests:
    """Requested cores, bytes and GPUs."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)

    def at_least(self, other: "Requests") -> "Requests":
        """The larger one of each resource."""
        return Requests(max(self.cpu, other.cpu), max(self.memory, other.memory), max(self.gpu, other.gpu))


def requests_of(spec: Mapping[str, Any]) -> Requests:
    """What a pod with this spec occupies on its node.

    The sum of its containers or its largest init container, whichever is more, plus the overhead of its runtime class.
    Source: Kubernetes, "Resource Management for Pods and Containers" and "Sidecar Containers".
    """
    concurrent, initial = Requests(), Requests()
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == _ALWAYS:
            concurrent += _requested(each)
            initial = initial.at_least(concurrent)
        else:
            initial = initial.at_least(concurrent + _requested(each))
    for each in spec.get("containers") or ():
        concurrent += _requested(each)
    return concurrent.at_least(initial) + _amounts(spec.get("overhead") or {})


class RecordedRequests:
    """Decides which pods' requests need a record of their own."""

    def __init__(self) -> None:
        self._by_task: dict[str, Requests] = {}
        self._pods: set[str] = set()

    def samples(self, task: str, pod: str, requests: Requests, now_at: int) -> Iterator[Sample]:
        """The samples to write for this pod: none when it requests the same as its task's first pod."""
        if pod in self._pods:
            return
        self._pods.add(pod)
        usual = self._by_task.get(task)
        if usual == requests:
            return
        self._by_task.setdefault(task, requests)
        labels = {"task": task} if usual is None else {"pod": pod}
        for metric, value in zip(_METRICS, astuple(requests), strict=True):
            yield Sample(metric, now_at, value, labels)


def _requested(container: Mapping[str, Any]) -> Requests:
    resources = container.get("resources") or {}
    # A limit without a request is also the request.
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(named: Mapping[str, Any]) -> Requests:
    gpu = sum(parse_quantity(named[name]) for name in GPUS if name in named)
    return Requests(parse_quantity(named.get("cpu", 0)), parse_quantity(named.get("memory", 0)), float(gpu))
