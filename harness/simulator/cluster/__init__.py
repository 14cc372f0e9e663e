"""The simulated cluster: nodes, scheduler, kubelets, autoscaler."""

from harness.simulator.cluster.cluster import Cluster
from harness.simulator.cluster.nodes import Node
from harness.simulator.cluster.pods import Change, Pod, Requirement, Shape, Toleration
from harness.simulator.cluster.witness import Nobody, Witness

__all__ = ["Change", "Cluster", "Nobody", "Node", "Pod", "Requirement", "Shape", "Toleration", "Witness"]
