import json

import pytest
from kubernetes import client, config

from harness.collectors.kubernetes.node_pools import NodePools
from harness.model.errors import ConfigError
from harness.planning.experiment_tests import set_nodes

POOLS = """
pools:
  - {name: system, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1, taints: [{key: CriticalAddonsOnly, value: "true"}]}
  - {name: steps, cpu: 4, memory: 16Gi, initial: 4, min: 4, max: 4}
"""


@pytest.fixture
def schedulable(serve, monkeypatch):
    """Names of the schedulable nodes of a served cluster that KUBECONFIG names."""
    served = serve(profile=POOLS)
    monkeypatch.setenv("KUBECONFIG", served.kubeconfig)
    core = client.CoreV1Api(config.new_client_from_config(served.kubeconfig))

    def names():
        nodes = json.loads(core.list_node(_preload_content=False).data)["items"]
        return sorted(n["metadata"]["name"] for n in nodes if not n["spec"].get("unschedulable"))

    return names


def test_the_pool_keeps_that_many_schedulable_nodes_and_other_pools_are_unchanged(schedulable):
    everything = schedulable()
    assert len(everything) == 5
    set_nodes(NodePools(), "steps", 1, 5.0)
    assert len(schedulable()) == 2
    assert sum("system" in name for name in schedulable()) == 1
    set_nodes(NodePools(), "steps", 3, 5.0)
    assert len(schedulable()) == 4
    set_nodes(NodePools(), "steps", 4, 5.0)
    assert schedulable() == everything


def test_more_nodes_than_the_pool_has_is_an_error(schedulable):
    before = schedulable()
    with pytest.raises(ConfigError, match="has 4 ready nodes, the experiment needs 9"):
        set_nodes(NodePools(), "steps", 9, 0.0)
    assert schedulable() == before
