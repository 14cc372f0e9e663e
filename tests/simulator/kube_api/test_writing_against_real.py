"""Patches, replacements, scales, deletions and evictions, and their refusals, as the real server does them."""

from tests.support.kube_pair import (
    DEPLOYMENTS,
    JSON_PATCH,
    MERGE_PATCH,
    NAMESPACE,
    PODS,
    STRATEGIC_PATCH,
    Pair,
    a_pod,
    assert_same,
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


def test_annotations_are_set_changed_and_removed(pair: Pair) -> None:
    for path in (f"{PODS}/p0", f"{DEPLOYMENTS}/web", "/api/v1/nodes/differ-0"):
        for annotations in ({"a/b": "1", "c": "2"}, {"a/b": "3"}, {"c": None}, {"none": None}, {"a/b": None}):
            for side in (pair.real, pair.ours):
                body = {"metadata": {"annotations": annotations}}
                status, _, answer = side.ask("PATCH", path, body, MERGE_PATCH)
                if side is pair.real:
                    theirs = status, answer["metadata"].get("annotations")
            assert (status, answer["metadata"].get("annotations")) == theirs
    for side in (pair.real, pair.ours):
        status, _, _ = side.ask("PATCH", f"{PODS}/p0", {"metadata": {"annotations": {"a": 1}}}, MERGE_PATCH)
        assert status in {400, 422}, "annotations are texts"


def test_a_dry_run_answers_with_the_change_and_keeps_nothing(pair: Pair) -> None:
    labels = {"metadata": {"labels": {"dry": "yes"}, "annotations": {"dry": "run"}}}
    for path in (f"{PODS}/p0", f"{DEPLOYMENTS}/web"):
        changed = pair.compare("PATCH", f"{path}?dryRun=All", labels, MERGE_PATCH)
        assert changed["metadata"]["labels"]["dry"] == "yes"
        kept = pair.compare("GET", path)
        assert "dry" not in kept["metadata"].get("labels", {})
    scaled = pair.compare("PATCH", f"{DEPLOYMENTS}/web/scale?dryRun=All", {"spec": {"replicas": 7}}, MERGE_PATCH)
    assert scaled["spec"]["replicas"] == 7
    pair.compare("PATCH", f"{DEPLOYMENTS}/web?dryRun=All", {"spec": {"replicas": 7}}, MERGE_PATCH)
    pair.compare("GET", f"{DEPLOYMENTS}/web/scale")


def test_replacements_and_their_refusals(pair: Pair) -> None:
    for path in (f"{PODS}/p0", f"{DEPLOYMENTS}/web"):
        for change in ({"labels": {"replaced": "yes"}}, {"resourceVersion": "1"}, {"name": "q"}, {"namespace": "q"}):
            for side in (pair.real, pair.ours):
                document = side.get(path)
                document["metadata"] |= change
                seen = side.ask("PUT", path, document)
                if side is pair.real:
                    theirs = seen
            assert_same(seen, theirs)
    pair.compare("PUT", f"{PODS}/none", {"metadata": {"name": "none"}})


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
    pair.compare("DELETE", "/api/v1/nodes/differ-0?dryRun=All")
    pair.compare("DELETE", f"{DEPLOYMENTS}/web?dryRun=All")
    pair.compare("DELETE", f"{PODS}?labelSelector=i%3D1&dryRun=All")
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
