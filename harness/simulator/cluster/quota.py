"""A namespace's ResourceQuota: the limit on the total requests of unfinished pods."""

from collections.abc import Callable, Mapping

from harness.simulator.cluster.objects import Pod
from harness.simulator.cluster.shapes import cores, quantity
from harness.simulator.profile import Quota as Limits

NAME = "workflows"
OF_TENANT = "kf-resource-quota"  # as Kubeflow's profile controller calls it


class Quota:
    """Counts requests against limits; a limit of 0 means no limit, and without limits nothing is counted."""

    def __init__(self, limits: Limits, name: str = NAME) -> None:
        self.name = name
        self._inside: set[Pod] = set()
        self.changed: Callable[[], None] | None = None  # called after every change
        self.limit_to(limits)

    def limit_to(self, limits: Limits) -> None:
        """Change the limits; existing pods stay."""
        self.limits = limits
        self._none = limits == Limits()
        self._cpu = self._memory = self._gpu = 0
        for pod in self._inside:
            self._count(pod, 1)
        if self.changed is not None:
            self.changed()

    def refusal(self, pod: Pod) -> str:
        """The error with which kube-apiserver refuses such a pod; "" if the quota allows it."""
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
        return f'pods "{pod.name}" is forbidden: exceeded quota: {self.name}, {", ".join(parts)}'

    def take(self, pod: Pod) -> None:
        """Count a new pod."""
        self._inside.add(pod)
        if not self._none:
            self._count(pod, 1)
            if self.changed is not None:
                self.changed()

    def give_back(self, pod: Pod) -> None:
        """Stop counting a pod that has ended or was deleted."""
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
        """Current use of the limited resources, as in the object's status."""
        written = {
            "pods": str(len(self._inside)),
            "requests.cpu": cores(self._cpu),
            "requests.memory": quantity(self._memory),
            "requests.nvidia.com/gpu": str(self._gpu),
        }
        return {name: written[name] for name in self.hard}

    @property
    def hard(self) -> dict[str, str]:
        """The limits above 0, as in the object's spec."""
        limits = self.limits
        written = {
            "pods": (limits.pods, str(limits.pods)),
            "requests.cpu": (limits.cpu, cores(round(limits.cpu * 1000))),
            "requests.memory": (limits.memory, quantity(int(limits.memory))),
            "requests.nvidia.com/gpu": (limits.gpu, str(limits.gpu)),
        }
        return {name: text for name, (limit, text) in written.items() if limit}


class Quotas:
    """The quota of each tenant's namespace, and the one that all other namespaces of runs share.

    Attributes:
        shared: the installation's.
        of_tenants: by namespace.
    """

    def __init__(self, shared: Limits, of_tenants: Mapping[str, Limits]) -> None:
        self.shared = Quota(shared)
        self.of_tenants = {namespace: Quota(limits, OF_TENANT) for namespace, limits in of_tenants.items()}

    def of(self, namespace: str) -> Quota:
        """The quota on pods of a namespace."""
        return self.of_tenants.get(namespace, self.shared)
