"""Who is told what happens in the cluster: the Kubernetes API in served mode, a recorder in fast mode."""

from typing import Protocol

from harness.simulator.cluster.nodes import Node
from harness.simulator.cluster.pods import Change, Pod


class Witness(Protocol):
    """Is told of every change after it was made. What it is told is mutable: it copies what it wants to keep."""

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """A pod changed; `detail` words what the pod itself does not hold."""
        ...

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """A node changed; `reason` is the Kubernetes event it makes, "" for none."""
        ...


class Nobody:
    """A witness that does not care."""

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """Ignored."""

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """Ignored."""
