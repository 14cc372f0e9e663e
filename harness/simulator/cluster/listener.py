"""The interface for following the cluster, for the Kubernetes view when served and the recorder in fast mode."""

from enum import StrEnum
from typing import Protocol

from harness.simulator.cluster.objects import Node, Pod


class Change(StrEnum):
    """What happened to a pod."""

    __hash__ = str.__hash__  # Enum's own is slow, and every change of every pod hashes one

    REFUSED = "refused"  # by a quota: no pod was created
    CREATED = "created"
    UNSCHEDULABLE = "unschedulable"
    SCHEDULED = "scheduled"
    PULLING = "pulling"
    PULLED = "pulled"
    STATED = "stated"  # something about it that `Pod.words` holds
    STARTED = "started"
    MAIN_ENDED = "main ended"
    OVER = "over"
    SCALE_UP = "scale up"
    NO_SCALE_UP = "no scale up"
    NODE_NOT_READY = "node not ready"
    PREEMPTED = "preempted"
    TERMINATING = "terminating"
    LABELLED = "labelled"
    GONE = "gone"


class ClusterListener(Protocol):
    """Receives every change after it was made. The objects are mutable: a listener copies what it keeps."""

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """A pod changed; `detail` is the message of the change, if it has one."""
        ...

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """A node changed; `reason` is that of its Kubernetes event, "" for no event."""
        ...


class NullListener:
    """A listener that ignores everything."""

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """Ignore a pod's change."""

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        """Ignore a node's change."""
