"""Trials on a node pool: what is refused before anything is sent to the platform."""

import pytest

from harness.model.cluster import PoolNode
from harness.model.errors import ConfigError
from harness.model.records import Node
from harness.planning.node_pool_trial import NodePoolTrials, TrialSettings


class Nodes:
    """A cluster with one machine and one virtual node."""

    def nodes(self):
        machine = Node("m0", "steps", 0, 1, None, 4.0, 2.0**34)
        virtual = Node("aci", "virtual-node", 0, 1, None, 1e4, 2.0**50, virtual=True)
        return [PoolNode(machine, tainted=True, cordoned=False), PoolNode(virtual, tainted=False, cordoned=False)]


@pytest.mark.parametrize(
    ("pool", "says"), [("virtual-node", "is a virtual node"), ("", "the cluster has no free node")]
)
def test_a_virtual_node_has_no_number_of_jobs(pool, says):
    with pytest.raises(ConfigError, match=says):
        NodePoolTrials(TrialSettings(pool, None, 1.0, 1.0), Nodes(), None, print)
