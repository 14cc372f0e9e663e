"""What pods ask the scheduler to set aside for them, as samples: one a task, and one more for each pod that differs."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from harness.collectors.kubernetes.nodes import GPUS
from harness.model.phases import REQUESTED_CPU_CORES, REQUESTED_GPUS, REQUESTED_MEMORY_BYTES
from harness.model.records import Sample
from harness.model.units import parse_quantity

_METRICS = (REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, REQUESTED_GPUS)
_ALWAYS = "Always"  # the restart policy of an init container that goes on beside the others (a sidecar)


@dataclass(frozen=True, slots=True)
class Requests:
    """Cores, bytes and GPUs."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)

    def most(self, other: "Requests") -> "Requests":
        """The larger of each."""
        return Requests(max(self.cpu, other.cpu), max(self.memory, other.memory), max(self.gpu, other.gpu))


def requests_of(spec: Mapping[str, Any]) -> Requests:
    """What a pod with this spec occupies on its node.

    Its containers together, or the init container that asks for most, whichever is more; and the overhead of its
    runtime class (Kubernetes, "Resource Management for Pods and Containers" and "Sidecar Containers").
    """
    beside, first = Requests(), Requests()
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == _ALWAYS:
            beside += _asked(each)
            first = first.most(beside)
        else:
            first = first.most(beside + _asked(each))
    for each in spec.get("containers") or ():
        beside += _asked(each)
    return beside.most(first) + _amounts(spec.get("overhead") or {})


class RequestsSeen:
    """What has been told of pods' requests so far."""

    def __init__(self) -> None:
        self._by_task: dict[str, Requests] = {}
        self._told: set[str] = set()

    def tell(self, task: str, pod: str, spec: Mapping[str, Any], now_at: int) -> Iterator[Sample]:
        """The samples to write for this pod: none when its task's say it all."""
        if pod in self._told:
            return
        self._told.add(pod)
        asked = requests_of(spec)
        usual = self._by_task.get(task)
        if usual == asked:
            return
        self._by_task.setdefault(task, asked)
        labels = {"task": task} if usual is None else {"pod": pod}
        for metric, value in zip(_METRICS, astuple(asked), strict=True):
            yield Sample(metric, now_at, value, labels)


def _asked(container: Mapping[str, Any]) -> Requests:
    resources = container.get("resources") or {}
    # A limit without a request is a request, too.
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(named: Mapping[str, Any]) -> Requests:
    gpu = sum(parse_quantity(named[name]) for name in GPUS if name in named)
    return Requests(parse_quantity(named.get("cpu", 0)), parse_quantity(named.get("memory", 0)), float(gpu))
