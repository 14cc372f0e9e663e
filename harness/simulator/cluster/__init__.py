"""The simulated cluster: nodes, scheduler, kubelets, autoscaler."""

from harness.simulator.cluster.cluster import Cluster
from harness.simulator.cluster.listener import Change, ClusterListener, Nobody
from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.cluster.shapes import Requirement, Shape, Toleration

__all__ = ["Change", "Cluster", "ClusterListener", "Nobody", "Node", "Pod", "Requirement", "Shape", "Toleration"]
