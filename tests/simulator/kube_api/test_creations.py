"""New objects of clients that nobody could read are refused."""

from typing import Any

import pytest

from harness.simulator.kube_api import ApiError, resource
from harness.simulator.kube_api.resource import shown
from harness.simulator.kube_api.writing import Creations
from tests.support.kube_cluster import Cluster

WORKFLOWS = resource.workflows(**shown(dict))


def creations() -> tuple[Cluster, Creations]:
    cluster = Cluster()
    return cluster, Creations(cluster.store, cluster, lambda: 10**18)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": "r"},
        {"kind": "Pod", "metadata": {"name": "r"}},
        {"metadata": {"name": 3}},
        {"metadata": {"name": "a/b"}},
        {"metadata": {"name": "r", "namespace": "b"}},
        {"metadata": {"name": "r", "labels": ["a"]}},
        {"metadata": {"name": "r", "annotations": {"a": 3}}},
    ],
)
def test_another_form_is_refused_and_not_stored(body: dict[str, Any]) -> None:
    cluster, made = creations()
    with pytest.raises(ApiError) as refused:
        made.create(WORKFLOWS, "a", body)
    assert refused.value.code in (400, 422)
    assert cluster.store.objects(WORKFLOWS, "a") == []


def test_a_dry_run_stores_nothing_and_a_name_is_taken_once() -> None:
    cluster, made = creations()
    assert made.create(WORKFLOWS, "a", {"metadata": {"name": "r"}}, dry=True).name == "r"
    assert cluster.store.objects(WORKFLOWS, "a") == []
    made.create(WORKFLOWS, "a", {"metadata": {"generateName": "r-"}})
    made.create(WORKFLOWS, "a", {"metadata": {"name": "r"}})
    with pytest.raises(ApiError) as refused:
        made.create(WORKFLOWS, "a", {"metadata": {"name": "r"}})
    assert refused.value.code == 409
    assert len(cluster.store.objects(WORKFLOWS, "a")) == 2
