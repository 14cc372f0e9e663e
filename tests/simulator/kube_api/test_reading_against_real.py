"""Lists, pages, selectors, representations and the description of the types, as the real server answers them."""

from urllib.parse import quote

import pytest

from tests.support.kube_pair import (
    COPIED,
    DEPLOYMENTS,
    NAMESPACE,
    PARTIAL,
    PODS,
    TABLE,
    Pair,
    assert_same,
    comparable,
)


@pytest.mark.parametrize(
    "path",
    [
        PODS, f"{PODS}/p0", f"{PODS}/none", f"/api/v1/namespaces/{NAMESPACE}", "/api/v1/namespaces/none",
        "/api/v1/namespaces/none/pods", "/api/v1/nodes/differ-0", "/api/v1/nodes/none", DEPLOYMENTS,
        f"{DEPLOYMENTS}/web", f"{DEPLOYMENTS}/none", f"{DEPLOYMENTS}/web/scale", f"{DEPLOYMENTS}/none/scale",
        f"{PODS}/p0/eviction", COPIED["nodes"], COPIED["events"], COPIED["persistentvolumeclaims"],
        "/api/v1/foos", "/api/v2", "/apis/none",
        "/apis/none/v1", "/apis/apps/v1/foos", f"/api/v1/namespaces/{NAMESPACE}/foos", "/apis/apps", "/healthz",
        "/readyz", "/livez",
    ],
)  # fmt: skip
def test_known_and_unknown_paths(pair: Pair, path: str) -> None:
    pair.compare("GET", path)


@pytest.mark.parametrize(
    "selector",
    [
        "app=x", "app==y,i!=0", "app in (x, z)", "app notin (x)", "!app", "app,i", "none!=x", "none=",
        "app in ()", "in in (x)",
    ],
)  # fmt: skip
def test_label_selectors(pair: Pair, selector: str) -> None:
    pair.compare("GET", f"{PODS}?labelSelector={quote(selector)}")


@pytest.mark.parametrize(
    "selector",
    [
        "a b", "a in x", "a in (x", "==x", "a===b", "-a", "a=-b", "!a!", "a>x", ",", "a,,b", "a,", "a in (b c)", "(",
        "a=b=c", "a notin b",
    ],
)  # fmt: skip
def test_label_selectors_that_can_t_be_read(pair: Pair, selector: str) -> None:
    path = f"{PODS}?labelSelector={quote(selector)}"
    assert [side.ask("GET", path)[0] for side in (pair.real, pair.ours)] == [400, 400]


@pytest.mark.parametrize(
    "selector",
    [
        "metadata.name=p0", "metadata.name!=p0", "status.phase=Running", "status.phase!=Running,spec.nodeName=differ-1",
        "spec.nodeName=", "status.phase==Failed", "foo=bar", "spec.foo=1,status.phase=Pending", "status.phase",
        "status.phase>5", ",,", "spec.restartPolicy=Never", "metadata.namespace=other",
    ],
)  # fmt: skip
def test_field_selectors(pair: Pair, selector: str) -> None:
    pair.compare("GET", f"{PODS}?fieldSelector={quote(selector)}")


@pytest.mark.parametrize(
    "query",
    [
        "limit=2", "limit=2&labelSelector=app%3Dx", "limit=5", "limit=-1", "limit=x", "timeoutSeconds=abc",
        "resourceVersion=x", "resourceVersion=-1",
        "resourceVersion=999999999", "resourceVersionMatch=NotOlderThan&resourceVersion=1&limit=2",
        "watch=1&resourceVersion=abc",
        "watch=0&limit=1", "watch=false", "fieldSelector=", "labelSelector=",
    ],
)  # fmt: skip
def test_list_options(pair: Pair, query: str) -> None:
    pair.compare("GET", f"{PODS}?{query}")


@pytest.mark.parametrize("query", ["resourceVersion=0", "resourceVersion=0&limit=2"])
def test_a_list_of_any_version_has_no_pages(pair: Pair, query: str) -> None:
    theirs, ours = (side.ask("GET", f"{PODS}?{query}") for side in (pair.real, pair.ours))
    theirs[2]["items"].sort(key=lambda each: each["metadata"]["name"])  # a cache promises no order
    assert_same(ours, theirs)


@pytest.mark.parametrize("limit", [1, 2, 4])
@pytest.mark.parametrize("selector", ["", "app=y", "i>1"])
def test_pages(pair: Pair, limit: int, selector: str) -> None:
    query = f"{PODS}?limit={limit}&labelSelector={quote(selector)}"
    theirs, ours = pair.real.get(query), pair.ours.get(query)
    while theirs["metadata"].get("continue"):
        assert_same(ours, theirs)
        theirs = pair.real.get(f"{query}&continue={theirs['metadata']['continue']}")
        ours = pair.ours.get(f"{query}&continue={ours['metadata']['continue']}")
    assert_same(ours, theirs)


def test_a_continue_token_excludes_a_version(pair: Pair) -> None:
    answers = []
    for side in (pair.real, pair.ours):
        token = side.get(f"{PODS}?limit=1")["metadata"]["continue"]
        answers.append(comparable(side.ask("GET", f"{PODS}?limit=1&resourceVersion=5&continue={token}")))
    assert_same(answers[1], answers[0])
    # The reason for an unreadable token is in the words of each decoder.
    for side in (pair.real, pair.ours):
        status, _, body = side.ask("GET", f"{PODS}?continue=abc")
        assert (status, body["reason"]) == (400, "BadRequest")
        assert body["message"].startswith("invalid continue token: continue key is not valid: ")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        (f"{PODS}/none", TABLE),
        (PODS, PARTIAL.format("List")),
        (f"{PODS}/p0", PARTIAL.format("")),
        (PODS, "*/*"),
        (PODS, "application/json;as=Foo;v=v1;g=meta.k8s.io,application/json"),
        (PODS, "application/json;as=Foo;v=v1;g=meta.k8s.io"),
        (PODS, "text/plain"),
    ],
)
def test_representations(pair: Pair, path: str, accept: str) -> None:
    pair.compare("GET", path, accept=accept)


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/api/v1/pods"), ("POST", "/api/v1/nodes/differ-0"), ("PATCH", "/api/v1/pods"), ("DELETE", "/api/v1/pods"),
     ("DELETE", "/api/v1"), ("POST", "/version")],
)  # fmt: skip
def test_verbs_that_there_are_not(pair: Pair, method: str, path: str) -> None:
    pair.compare(method, path, {})


def test_our_types_are_described_as_the_real_ones(pair: Pair) -> None:
    assert pair.ours.get("/api")["versions"] == pair.real.get("/api")["versions"]
    assert pair.ours.get("/version").keys() == pair.real.get("/version").keys()
    groups = {each["name"]: each for each in pair.real.get("/apis")["groups"]}
    assert groups["apps"] in pair.ours.get("/apis")["groups"]
    for path in ("/api/v1", "/apis/apps/v1"):
        theirs = pair.real.get(path)
        real = {each["name"]: each for each in theirs["resources"]}
        ours = pair.ours.get(path)
        assert {key: ours[key] for key in ours if key != "resources"} == {
            key: theirs[key] for key in theirs if key != "resources"
        }
        for entry in ours["resources"]:
            known = real[entry["name"]]
            for key in ("namespaced", "kind", "shortNames", "categories", "group"):
                assert entry.get(key) == known.get(key)
            assert set(entry["verbs"]) <= set(known["verbs"])


ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    "spec",
    [
        {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": NAMESPACE}},
        {"resourceAttributes": {"verb": "delete", "resource": "nodes"}},
        {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}},
    ],
)
def test_every_permission_is_granted(pair: Pair, spec: dict[str, object]) -> None:
    review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
    pair.compare("POST", ACCESS, review)
