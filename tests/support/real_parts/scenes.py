"""What is rehearsed: the load, the cluster it meets, what is planted there, and which findings that must give."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.support.real_parts.argo import NODE_NAME
from tests.support.real_parts.kube import Manifest
from tests.support.real_parts.kubelet import OOM_KILLED, Fate

_DRIVER_S, _TRAIN_S = 0.2, 4.0
_STORE_S = 0.8  # the last part of `train`


@dataclass(frozen=True)
class Scene:
    """A load test against a cluster of its own nodes.

    Attributes:
        name: of the scene, its namespace and its run folder.
        runs: sent at once.
        nodes: their cores.
        killed: how many of the pods of `train` are killed for memory.
        quota: most pods at once in the namespace; None without a quota.
        rights: resources that the observer's account may list and watch in the namespace; None for an administrator.
        findings: that the report must name.
    """

    name: str
    runs: int
    nodes: tuple[str, ...] = ("8", "8")
    killed: int = 0
    quota: int | None = None
    rights: tuple[str, ...] | None = None
    findings: tuple[str, ...] = ()

    def fate(self) -> Callable[[Manifest], Fate]:
        """How each pod will end; the first pods of `train` to start are those that are killed."""
        left = self.killed

        def decide(pod: Manifest) -> Fate:
            nonlocal left
            node = pod["metadata"]["annotations"][NODE_NAME]
            if "-driver" in node:
                return Fate(_DRIVER_S)
            if left:
                left -= 1
                return Fate(_TRAIN_S / 2, exit_code=137, reason=OOM_KILLED)
            return Fate(_TRAIN_S, _STORE_S)

        return decide


FULL_NODES = Scene("full-nodes", runs=6, nodes=("1.2", "1.2"), killed=1, findings=("nodes-exhausted", "oom"))
QUOTA = Scene("quota", runs=6, quota=2, findings=("quota",))
RESTRICTED = Scene("restricted", runs=3, rights=("pods",))
ALL = (FULL_NODES, QUOTA, RESTRICTED)
