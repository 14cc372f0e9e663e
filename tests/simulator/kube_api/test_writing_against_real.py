"""Patches, scales, deletions and evictions, and their refusals, as the real server does them."""

from tests.support.kube_pair import (
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE_PATCH,
    NAMESPACE,
    PODS,
    STRATEGIC_PATCH,
    Pair,
    a_pod,
)


def test_patches_and_their_refusals(pair: Pair) -> None:
    path = f"{PODS}/p0"
    for content_type, patch in (
        (MERGE_PATCH, {"metadata": {"labels": {"n": "1", "app": None}}}),
        (STRATEGIC_PATCH, {"metadata": {"labels": {"n": "2"}, "annotations": {"a": "b"}}}),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}]),
        (JSON_PATCH, []),
        (MERGE_PATCH, {}),
        (MERGE_PATCH, {"status": {"phase": "Failed"}}),
        (MERGE_PATCH, {"metadata": {"name": "b"}}),
        (MERGE_PATCH, {"metadata": {"namespace": "b"}}),
        (MERGE_PATCH, {"metadata": {"resourceVersion": "1"}}),
        (JSON_PATCH, {}),
        (JSON_PATCH, [{"op": "replace", "path": "/spec/nope/x", "value": 1}]),
        (JSON_PATCH, [{"op": "test", "path": "/metadata/name", "value": "x"}]),
        (JSON_PATCH, [{"op": "remove", "path": "/metadata/labels/none"}]),
        ("application/json", {}),
    ):
        pair.compare("PATCH", path, patch, content_type)
    pair.compare("PATCH", f"{PODS}/none", {}, MERGE_PATCH)
    pair.compare("GET", path)


def test_a_node_is_cordoned(pair: Pair) -> None:
    for unschedulable in (True, None):
        for side in (pair.real, pair.ours):
            status, _, node = side.ask(
                "PATCH", "/api/v1/nodes/differ-0", {"spec": {"unschedulable": unschedulable}}, STRATEGIC_PATCH
            )
            assert (status, node["spec"].get("unschedulable")) == (200, unschedulable)


def test_scales(pair: Pair) -> None:
    path = f"{DEPLOYMENTS}/web/scale"
    about = {"name": "web", "namespace": NAMESPACE}
    kind = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    pair.compare("PATCH", path, {"spec": {"replicas": 3}}, MERGE_PATCH)
    pair.compare("PUT", path, {**kind, "metadata": about, "spec": {"replicas": 4}})
    pair.compare("PUT", path, {**kind, "metadata": {**about, "resourceVersion": "1"}, "spec": {"replicas": 5}})
    pair.compare("PUT", path, {**kind, "metadata": {**about, "name": "e"}, "spec": {"replicas": 5}})
    pair.compare("PATCH", path, {"spec": {"replicas": -3}}, MERGE_PATCH)
    pair.compare("PATCH", path, {"spec": {"replicas": 0}}, MERGE_PATCH)
    pair.compare("GET", path)


def test_deletions(pair: Pair) -> None:
    for index in range(2):
        pair.real.ask("POST", PODS, a_pod(f"gone-{index}", 0))
    pair.copy()
    path = f"{PODS}/gone-0"
    pair.compare("DELETE", f"{PODS}/none")
    pair.compare("DELETE", path, {"preconditions": {"uid": "abc"}})
    pair.compare("DELETE", path, {"propagationPolicy": "Foo"})
    pair.compare("DELETE", f"{path}?gracePeriodSeconds=x")
    pair.compare("DELETE", path, "foo", "text/plain")
    pair.compare("DELETE", path, {"gracePeriodSeconds": 20})
    pair.compare("GET", path)
    pair.compare("DELETE", path, {"gracePeriodSeconds": 0})
    pair.compare("GET", path)
    pair.compare("DELETE", f"{PODS}/gone-1?gracePeriodSeconds=0")


def test_evictions(pair: Pair) -> None:
    pair.real.ask("POST", PODS, a_pod("evicted", 0))
    pair.copy()
    version = next(
        each["version"] for each in pair.real.get("/api/v1")["resources"] if each["name"] == "pods/eviction"
    )  # the one kind that all releases take
    kind = {"apiVersion": f"policy/{version}", "kind": "Eviction"}
    for named, evicted in (("none", "none"), ("other", "evicted"), ("evicted", "evicted")):
        body = {**kind, "metadata": {"name": named, "namespace": NAMESPACE}}
        pair.compare("POST", f"{PODS}/{evicted}/eviction", body)
    pair.compare("DELETE", f"{PODS}/evicted?gracePeriodSeconds=0")
