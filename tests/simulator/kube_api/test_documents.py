"""Documents of clients that nobody could read are refused."""

from typing import Any

import pytest

from harness.simulator.kube_api import ApiError, resources
from harness.simulator.kube_api.documents import Documents
from harness.simulator.kube_api.resources import shown
from tests.support.kube_cluster import Cluster

ROLE = resources.roles(**shown(dict))


def documents() -> tuple[Cluster, Documents]:
    cluster = Cluster()
    return cluster, Documents(cluster.store, cluster, lambda: 10**18)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": "r"},
        {"kind": "Pod", "metadata": {"name": "r"}},
        {"metadata": {"name": 3}},
        {"metadata": {"name": "a/b"}},
        {"metadata": {"name": "r", "labels": ["a"]}},
        {"metadata": {"name": "r", "annotations": {"a": 3}}},
        {"metadata": {"name": "r"}, "rules": "all"},
    ],
)
def test_another_form_is_refused_and_not_stored(body: dict[str, Any]) -> None:
    cluster, made = documents()
    with pytest.raises(ApiError) as refused:
        made.create(ROLE, "a", body)
    assert refused.value.code in (400, 422)
    assert cluster.store.objects(ROLE, "a") == []


def test_a_dry_run_stores_nothing_and_a_change_is_checked() -> None:
    cluster, made = documents()
    assert made.create(ROLE, "a", {"metadata": {"name": "r"}}, dry=True).name == "r"
    assert cluster.store.objects(ROLE, "a") == []
    made.create(ROLE, "a", {"metadata": {"name": "r"}, "rules": []})
    with pytest.raises(ApiError, match="rules must be"):
        made.patch("roles", "a", "r", {"rules": {"verbs": []}})
    made.patch("roles", "a", "r", {"rules": [{"verbs": ["get"]}]}, dry=True)
    (unchanged,) = cluster.store.objects(ROLE, "a")
    assert unchanged.manifest(ROLE)["rules"] == []
    made.patch("roles", "a", "r", {"rules": [{"verbs": ["get"]}]})
    (changed,) = cluster.store.objects(ROLE, "a")
    assert changed.manifest(ROLE)["rules"] == [{"verbs": ["get"]}]
    made.delete("roles", "a", "r", None)
    assert cluster.store.objects(ROLE, "a") == []
