"""Who is told what happens in the cluster: the Kubernetes API in served mode, a recorder in fast mode."""

from enum import StrEnum
from typing import Protocol

from harness.simulator.cluster.objects import Node, Pod


class Change(StrEnum):
    """What happened to a pod, as listeners are told."""

    __hash__ = str.__hash__  # Enum's own is slow, and these are looked up with every change of every pod

    REFUSED = "refused"  # by a quota: the pod does not exist
    CREATED = "created"
    UNSCHEDULABLE = "unschedulable"
    SCHEDULED = "scheduled"
    PULLING = "pulling"
    PULLED = "pulled"
    STARTED = "started"
    MAIN_ENDED = "main ended"
    OVER = "over"
    SCALE_UP = "scale up"
    NO_SCALE_UP = "no scale up"
    PREEMPTED = "preempted"
    TERMINATING = "terminating"
    LABELLED = "labelled"
    GONE = "gone"


class ClusterListener(Protocol):
    """Is told of every change after it was made. What it is told is mutable: it copies what it wants to keep."""

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """A pod changed; `detail` words what the pod itself does not hold."""
        ...

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """A node changed; `reason` is the Kubernetes event it makes, "" for none."""
        ...


class NullListener:
    """A listener that does not care."""

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """Ignored."""

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """Ignored."""
