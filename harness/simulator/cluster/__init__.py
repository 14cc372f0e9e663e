"""The simulated cluster: nodes, pods, scheduler, kubelets and autoscaler."""

from harness.model.cluster import Requirement
from harness.simulator.cluster.cluster import Cluster
from harness.simulator.cluster.listener import Change, ClusterListener, NullListener
from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.cluster.shapes import Shape, Toleration

__all__ = ["Change", "Cluster", "ClusterListener", "Node", "NullListener", "Pod", "Requirement", "Shape", "Toleration"]
