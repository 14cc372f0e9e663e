"""A namespace's ResourceQuota: what the pods that are not over may request together."""

from collections.abc import Callable

from harness.simulator.cluster.objects import Pod
from harness.simulator.cluster.shapes import cores, quantity
from harness.simulator.profile import Quota as Limits

NAME = "workflows"


class Quota:
    """Counts requests against limits. A limit of 0 is none; with all of them 0 nothing is refused, nor counted."""

    def __init__(self, limits: Limits) -> None:
        self._inside: set[Pod] = set()
        self.changed: Callable[[], None] | None = None  # called after every change
        self.limit_to(limits)

    def limit_to(self, limits: Limits) -> None:
        """Change the limits; pods that are there stay."""
        self.limits = limits
        self._none = limits == Limits()
        self._cpu = self._memory = self._gpu = 0
        for pod in self._inside:
            self._count(pod, 1)
        if self.changed is not None:
            self.changed()

    def refusal(self, pod: Pod) -> str:
        """Why kube-apiserver would not let such a pod in, in its words; "" when it would."""
        if self._none:
            return ""
        shape, limits = pod.shape, self.limits
        asked = (
            ("pods", 1, len(self._inside), limits.pods, str),
            ("requests.cpu", shape.cpu, self._cpu, round(limits.cpu * 1000), cores),
            ("requests.memory", shape.memory, self._memory, int(limits.memory), quantity),
            ("requests.nvidia.com/gpu", shape.gpu, self._gpu, limits.gpu, str),
        )
        over = [each for each in asked if each[3] and each[1] and each[2] + each[1] > each[3]]
        if not over:
            return ""
        parts = [
            f"{word}: " + ",".join(f"{name}={written(amounts[column])}" for name, *amounts, written in over)
            for column, word in enumerate(("requested", "used", "limited"))
        ]
        return f'pods "{pod.name}" is forbidden: exceeded quota: {NAME}, {", ".join(parts)}'

    def take(self, pod: Pod) -> None:
        """The pod is there."""
        self._inside.add(pod)
        if not self._none:
            self._count(pod, 1)
            if self.changed is not None:
                self.changed()

    def give_back(self, pod: Pod) -> None:
        """The pod is over, or gone."""
        self._inside.remove(pod)
        if not self._none:
            self._count(pod, -1)
            if self.changed is not None:
                self.changed()

    def _count(self, pod: Pod, sign: int) -> None:
        shape = pod.shape
        self._cpu += sign * shape.cpu
        self._memory += sign * shape.memory
        self._gpu += sign * shape.gpu

    @property
    def used(self) -> dict[str, str]:
        """What is requested now of what is limited, as the object's status shows it."""
        written = {
            "pods": str(len(self._inside)),
            "requests.cpu": cores(self._cpu),
            "requests.memory": quantity(self._memory),
            "requests.nvidia.com/gpu": str(self._gpu),
        }
        return {name: written[name] for name in self.hard}

    @property
    def hard(self) -> dict[str, str]:
        """The limits that there are, as the object's spec shows them."""
        limits = self.limits
        written = {
            "pods": (limits.pods, str(limits.pods)),
            "requests.cpu": (limits.cpu, cores(round(limits.cpu * 1000))),
            "requests.memory": (limits.memory, quantity(int(limits.memory))),
            "requests.nvidia.com/gpu": (limits.gpu, str(limits.gpu)),
        }
        return {name: text for name, (limit, text) in written.items() if limit}
