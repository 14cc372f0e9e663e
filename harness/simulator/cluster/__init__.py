"""The simulated cluster: nodes, scheduler, kubelets, autoscaler."""

from harness.simulator.cluster.cluster import Cluster
from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.cluster.shapes import Requirement, Shape, Toleration
from harness.simulator.cluster.witness import Change, Nobody, Witness

__all__ = ["Change", "Cluster", "Nobody", "Node", "Pod", "Requirement", "Shape", "Toleration", "Witness"]
