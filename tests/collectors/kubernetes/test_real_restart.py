"""The cluster collector during and after an outage of a real API server."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.model.phases import GAP, SCHEDULING
from tests.support.real_cluster_runs import (
    last_spans,
    observing,
    of_ourselves,
    placed,
    reasons,
    step,
    through,
)
from tests.support.real_kubernetes import RealCluster, start_cluster
from tests.support.servers import proxied, until


@pytest.fixture
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A control plane for this test only: other tests would have to wait for its scheduler to reconnect."""
    with ExitStack() as stack:
        cluster = start_cluster(stack, tmp_path_factory.mktemp("own"))
        cluster.add_node("node", labels={"scene": "default"})
        yield cluster


def test_everything_is_listed_again_after_an_unobserved_restart_of_the_api_server(
    own_cluster: RealCluster, tmp_path: Path
) -> None:
    """A restarted server has no earlier changes, and after a compaction neither has etcd: 410 Gone."""
    from kubernetes import client

    core = client.CoreV1Api(own_cluster.client())
    with (
        proxied(int(own_cluster.url.rpartition(":")[2])) as proxy,
        observing(tmp_path, kubeconfig=through(proxy, own_cluster, tmp_path)) as (_, folder),
    ):
        step(own_cluster, "default", "before")
        until(lambda: placed(folder, "default", "before"), "the first pod")
        proxy.refuses = True
        proxy.cut()
        core.delete_namespaced_pod("before", "default", grace_period_seconds=0)
        own_cluster.stop_api()
        own_cluster.start_api()
        step(own_cluster, "default", "meanwhile")
        own_cluster.compact()
        proxy.refuses = False
        until(lambda: placed(folder, "default", "meanwhile"), "the pod of the outage")
        until(lambda: last_spans(folder, "default")["before", SCHEDULING].ended_at, "the end of the first pod")
        step(own_cluster, "default", "after")
        until(lambda: placed(folder, "default", "after"), "the pod after it")
    assert GAP in reasons(folder)
    assert any("expired" in event.message for event in of_ourselves(folder))
