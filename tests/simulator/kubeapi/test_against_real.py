"""The same requests to a real kube-apiserver and to ours: the answers must be the same.

Both hold the same objects: what the real one made of them is copied into ours before each test. Compared are status,
content type and the whole body, but for what can't agree: versions, ages, and field managers. Known differences between
the release in use and the one that is imitated are named in `_normal`.
"""

import base64
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from typing import Any
from urllib.parse import quote

import pytest
import urllib3
from kubernetes import client

from tests.real_kubernetes import RealCluster
from tests.simulator.kubeapi.cluster import Cluster, Server, serve

NAMESPACE = "differ"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io,application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# Where the copied types live: plural → path of a list of ours that holds exactly the copied objects.
COPIED = {
    "namespaces": f"/api/v1/namespaces?fieldSelector=metadata.name%3D{NAMESPACE}",
    "nodes": "/api/v1/nodes?labelSelector=pool%3Ddiffer",
    "pods": PODS,
    "events": f"/api/v1/namespaces/{NAMESPACE}/events",
    "persistentvolumeclaims": f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims",
    "deployments": DEPLOYMENTS,
}

Answer = tuple[int, str, Any]


class Side:
    """One of the two servers, as a client sees it."""

    def __init__(self, url: str, ca: str | None = None, token: str = "any") -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = urllib3.PoolManager(ca_certs=ca, timeout=20.0, retries=False)

    def ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", accept: str = ""
    ) -> Answer:
        """Status, content type and body: JSON, the lines of a watch, or text."""
        headers = {**self._headers, **({"Accept": accept} if accept else {})}
        if body is not None:
            headers["Content-Type"] = content_type
        sent = body if isinstance(body, str) or body is None else json.dumps(body)
        answer = self._http.request(method, self._url + path, body=sent, headers=headers)
        text = answer.data.decode()
        kind = answer.headers.get("Content-Type", "").replace(" ", "")
        if "watch=" in path and answer.status == 200:
            return answer.status, kind, [json.loads(line) for line in text.splitlines()]
        return answer.status, kind, json.loads(text) if "json" in kind else text

    def get(self, path: str, accept: str = "") -> Any:
        status, _, body = self.ask("GET", path, accept=accept)
        assert status == 200, body
        return body


class Pair:
    """The real server and ours, holding the same objects."""

    def __init__(self, real: RealCluster, server: Server) -> None:
        self.cluster = real
        self.server = server
        self.real = Side(real.url, str(real.ca), real.token)
        self.ours = Side(server.url)

    def copy(self) -> None:
        """Make our objects what the real ones are now."""

        def write(cluster: Cluster) -> None:
            for plural, items in found.items():
                resource = next(each for each in cluster.store.resources if each.plural == plural)
                names = {each["metadata"]["name"] for each in items}
                for there in cluster.store.objects(resource):
                    if there.name not in names:
                        cluster.store.delete(plural, there.namespace, there.name)
                for item in items:
                    item["metadata"].pop("managedFields", None)
                    item["metadata"].pop("resourceVersion")
                    cluster.add(plural, item)

        found = {plural: self.real.get(path)["items"] for plural, path in COPIED.items()}
        self.server.do(write)

    def compare(self, method: str, path: str, *arguments: Any, **options: Any) -> Any:
        """Ask both the same; returns our answer's body, as it was sent."""
        theirs, ours = (side.ask(method, path, *arguments, **options) for side in (self.real, self.ours))
        assert_same(ours, theirs)
        return ours[2]


def assert_same(ours: Any, theirs: Any) -> None:
    """Fails with the differing lines when the answers differ in what must agree."""
    mine, real = (json.dumps(_normal(each), indent=1, sort_keys=True).splitlines() for each in (ours, theirs))
    difference = list(unified_diff(real, mine, "real", "ours", lineterm=""))
    assert not difference, "\n".join(difference)


_VERSIONS = {"resourceVersion"}
_TIMES = {"deletionTimestamp", "lastHeartbeatTime"}
_AGE = re.compile(r"(\d+[smhd])+|<unknown>")
# Columns that came, or changed their type, after the oldest release these tests run with.
_YOUNG_COLUMNS = {"Restarts", "VolumeAttributesClass"}


def _normal(value: Any) -> Any:
    """An answer without what can't agree."""
    if isinstance(value, tuple | list):
        return [_normal(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "Table":
        value = _normal_table(value)
    if value.get("kind") == "Status" and value.get("code") in (406, 415):
        return {key: value[key] for key in ("kind", "reason", "code")}  # the formats read and written differ
    normal = {}
    for key, each in value.items():
        if key == "managedFields":
            continue
        if key in _VERSIONS | _TIMES:
            normal[key] = "<version>" if key in _VERSIONS else "<time>"
        elif key == "continue":
            normal[key] = _token(each)
        elif key == "message" and isinstance(each, str):
            normal[key] = re.sub(r"(version: )\d+( \(\d+\)|, current: \d+)", r"\1<version>", each)
        else:
            normal[key] = _normal(each)
    return normal


def _normal_table(table: dict[str, Any]) -> dict[str, Any]:
    definitions = table["columnDefinitions"]
    if definitions is None:
        return {**table, "rows": [{**row, "cells": len(row["cells"]) > 0} for row in table["rows"]]}
    old = [index for index, each in enumerate(definitions) if each["name"] not in _YOUNG_COLUMNS]
    return {
        **table,
        "columnDefinitions": [
            {key: value for key, value in definitions[index].items() if key != "description"} for index in old
        ],
        "rows": [{**row, "cells": [_normal_cell(row["cells"][index]) for index in old]} for row in table["rows"]],
    }


def _normal_cell(cell: object) -> object:
    return "<age>" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell


def _token(text: str) -> object:
    decoded = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return {**decoded, "rv": "latest" if decoded["rv"] == -1 else "<version>"}


def _pod(name: str, index: int) -> dict[str, object]:
    labels = {"app": "x" if index % 2 else "y", "i": str(index)}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], "restartPolicy": "Never", "nodeName": f"differ-{index % 2}"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _furnish(real: RealCluster) -> None:
    core = client.CoreV1Api(real.client())
    core.create_namespace({"metadata": {"name": NAMESPACE, "labels": {"a": "b"}}})
    for index in range(2):
        real.add_node(f"differ-{index}", labels={"pool": "differ"})
    for index in range(5):
        core.create_namespaced_pod(NAMESPACE, _pod(f"p{index}", index))
    real.run_pod(NAMESPACE, "p1")
    real.finish_pod(NAMESPACE, "p2")
    real.finish_pod(NAMESPACE, "p3", exit_code=137, reason="OOMKilled")
    core.create_namespaced_persistent_volume_claim(
        NAMESPACE,
        {
            "metadata": {"name": "store"},
            "spec": {
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "storageClassName": "fast", "volumeName": "pv-1",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )  # fmt: skip
    core.create_namespaced_event(
        NAMESPACE,
        {
            "metadata": {"name": "p0.1"}, "reason": "FailedScheduling", "message": "0/2 nodes are available.",
            "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "p0", "fieldPath": "spec.containers{main}"},
            "type": "Warning", "count": 3, "source": {"component": "default-scheduler", "host": "here"},
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z",
        },
    )  # fmt: skip
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    client.AppsV1Api(real.client()).create_namespaced_deployment(
        NAMESPACE,
        # Paused: no controller acts on it.
        {
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "paused": True, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
    )


@pytest.fixture(scope="module")
def furnished_pair(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    _furnish(real_cluster)
    with serve(Cluster(), tmp_path_factory.mktemp("ours")) as server:
        yield Pair(real_cluster, server)


@pytest.fixture
def pair(furnished_pair: Pair) -> Pair:
    furnished_pair.copy()
    return furnished_pair


@pytest.mark.parametrize(
    "path",
    [
        PODS, f"{PODS}/p0", f"{PODS}/none", f"/api/v1/namespaces/{NAMESPACE}", "/api/v1/namespaces/none",
        "/api/v1/namespaces/none/pods", "/api/v1/nodes/differ-0", "/api/v1/nodes/none", DEPLOYMENTS,
        f"{DEPLOYMENTS}/web", f"{DEPLOYMENTS}/none", f"{DEPLOYMENTS}/web/scale", f"{DEPLOYMENTS}/none/scale",
        f"{PODS}/p0/status", f"{PODS}/p0/eviction", COPIED["nodes"], COPIED["events"], COPIED["persistentvolumeclaims"],
        f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", "/api/v1/foos", "/api/v2", "/apis/none",
        "/apis/none/v1", "/apis/apps/v1/foos", f"/api/v1/namespaces/{NAMESPACE}/foos", "/apis/apps", "/healthz",
        "/readyz", "/livez",
    ],
)  # fmt: skip
def test_what_is_there_and_what_is_not(pair: Pair, path: str) -> None:
    pair.compare("GET", path)


@pytest.mark.parametrize(
    "selector",
    [
        "app=x", "app==y,i!=0", "app in (x, z)", "app notin (x)", "!app", "app,i", "i>2", "i<2", "none!=x", "none=",
        "app in ()", "a b", "a in x", "a in (x", "==x", "a===b", "-a", "a=-b", "!a!", "a>x", ",", "a,,b", "a,",
        "a in (b c)", "(", "a=b=c", "in in (x)", "a notin b",
    ],
)  # fmt: skip
def test_label_selectors(pair: Pair, selector: str) -> None:
    pair.compare("GET", f"{PODS}?labelSelector={quote(selector)}")


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
        "resourceVersion=999999999", "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch=Foo&resourceVersion=3",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1&limit=2", "watch=1&resourceVersion=abc",
        "watch=true&resourceVersionMatch=Exact&resourceVersion=5", "watch=true&labelSelector=a%20b",
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
        answers.append(_normal(side.ask("GET", f"{PODS}?limit=1&resourceVersion=5&continue={token}")))
    assert_same(answers[1], answers[0])
    # Why a token can't be read is told in the words of each one's decoder.
    for side in (pair.real, pair.ours):
        status, _, body = side.ask("GET", f"{PODS}?continue=abc")
        assert (status, body["reason"]) == (400, "BadRequest")
        assert body["message"].startswith("invalid continue token: continue key is not valid: ")


@pytest.mark.parametrize("plural", [*COPIED])
@pytest.mark.parametrize("include", ["", "None", "Object", "Foo"])
def test_tables(pair: Pair, plural: str, include: str) -> None:
    path = COPIED[plural]
    pair.compare("GET", f"{path}{'&' if '?' in path else '?'}includeObject={include}", accept=TABLE)


STAMP = "2026-01-01T00:00:00Z"
RUNNING = {"running": {"startedAt": STAMP}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": STAMP, "finishedAt": STAMP}}


def _ended(**more: object) -> dict[str, object]:
    return {"terminated": {"startedAt": STAMP, "finishedAt": STAMP, **more}}


def _waits(reason: str) -> dict[str, object]:
    return {"waiting": {"reason": reason}}


def _container(state: dict[str, object], *, name: str = "main", **more: object) -> dict[str, object]:
    ready = "running" in state
    return {"name": name, "image": "none", "imageID": "", "ready": ready, "restartCount": 0, "state": state, **more}


def _is_ready(status: str) -> list[dict[str, str]]:
    return [{"type": "Ready", "status": status, "lastTransitionTime": STAMP}]


# Pod statuses as kubelets report them; what `kubectl get pods` makes of each is for the real server to say.
POD_STATES: dict[str, dict[str, object]] = {
    "starts": {"containerStatuses": [_container(_waits("ContainerCreating"))]},
    "no-image": {"containerStatuses": [_container(_waits("ImagePullBackOff"))]},
    "no-reason": {"containerStatuses": [_container({"waiting": {}})]},
    "killed": {"phase": "Failed", "containerStatuses": [_container(_ended(exitCode=137, signal=9))]},
    "exits": {"phase": "Failed", "containerStatuses": [_container(_ended(exitCode=3))]},
    "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
    "half-done": {
        "phase": "Running",
        "conditions": _is_ready("False"),
        "containerStatuses": [_container(DONE), _container(RUNNING, name="side")],
    },
    "half-ready": {
        "phase": "Running",
        "conditions": _is_ready("True"),
        "containerStatuses": [_container(DONE), _container(RUNNING, name="side")],
    },
    "unready": {"phase": "Running", "containerStatuses": [_container(RUNNING, ready=False)]},
    "initializes": {"initContainerStatuses": [_container(RUNNING, name="init", ready=False)]},
    "cannot-initialize": {"initContainerStatuses": [_container(_ended(exitCode=1, reason="Error"), name="init")]},
    "init-exits": {"initContainerStatuses": [_container(_ended(exitCode=2), name="init")]},
    "init-waits": {"initContainerStatuses": [_container(_waits("PodInitializing"), name="init")]},
    "init-has-no-image": {"initContainerStatuses": [_container(_waits("ErrImagePull"), name="init")]},
    "initialized": {
        "initContainerStatuses": [_container(DONE, name="init", ready=True)],
        "containerStatuses": [_container(_waits("PodInitializing"))],
    },
    "nominated": {"nominatedNodeName": "differ-0"},
    "gated": {"conditions": [{"type": "gate", "status": "True"}]},
}


def _pod_in_state(name: str, status: dict[str, Any]) -> dict[str, object]:
    names = [each["name"] for each in status.get("containerStatuses", [])] or ["main"]
    spec: dict[str, object] = {"containers": [{"name": each, "image": "none"} for each in names]}
    if "initContainerStatuses" in status:
        spec["initContainers"] = [{"name": each, "image": "none"} for each in ("init", "init-2")]
    if name == "gated":
        spec["readinessGates"] = [{"conditionType": each} for each in ("gate", "other")]
    # Placed, so that no scheduler says anything.
    return {"metadata": {"name": name}, "spec": {**spec, "nodeName": "differ-0"}}


def test_what_is_printed_of_a_pod_in_each_state(pair: Pair) -> None:
    namespace = "states"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pair.real.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for name, status in POD_STATES.items():
        made, _, body = pair.real.ask("POST", pods, _pod_in_state(name, status))
        assert made == 201, body
        known, _, body = pair.real.ask("PATCH", f"{pods}/{name}/status", {"status": status}, MERGE_PATCH)
        assert known == 200, body
    pair.real.ask("DELETE", f"{pods}/unready", {"gracePeriodSeconds": 600})
    items = pair.real.get(pods)["items"]
    assert len(items) == len(POD_STATES)
    pair.server.do(lambda cluster: [cluster.add("pods", each) for each in items])
    pair.compare("GET", pods, accept=TABLE)


def test_what_is_printed_of_a_node_in_each_state(pair: Pair) -> None:
    states = {
        "control": ({"node-role.kubernetes.io/master": "", "kubernetes.io/role": "boss"}, "True", False),
        "cordoned": ({}, "True", True),
        "broken": ({}, "False", False),
        "lost": ({}, "Unknown", True),
        "new": ({}, None, False),
    }
    for name, (labels, ready, unschedulable) in states.items():
        named = {"name": f"state-{name}", "labels": {**labels, "pool": "states"}}
        node = {"metadata": named, "spec": {"unschedulable": True} if unschedulable else {}}
        made, _, body = pair.real.ask("POST", "/api/v1/nodes", node)
        assert made == 201, body
        if ready:
            machine = {"osImage": "Ubuntu", "kernelVersion": "5", "containerRuntimeVersion": "containerd://1"}
            condition = {"type": "Ready", "status": ready, "reason": "Test", "message": "", "lastTransitionTime": STAMP}
            addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "20.0.0.1"}]
            status = {
                "conditions": [{**condition, "lastHeartbeatTime": STAMP}],
                "addresses": addresses,
                "nodeInfo": {**machine, "kubeletVersion": "v1"},
            }
            pair.real.ask("PATCH", f"/api/v1/nodes/state-{name}/status", {"status": status}, MERGE_PATCH)
    path = "/api/v1/nodes?labelSelector=pool%3Dstates"
    items = pair.real.get(path)["items"]
    for item in items:
        item["metadata"].pop("managedFields")
    pair.server.do(lambda cluster: [cluster.add("nodes", each) for each in items])
    pair.compare("GET", f"{path}&includeObject=None", accept=TABLE)
    for name in states:
        pair.real.ask("DELETE", f"/api/v1/nodes/state-{name}")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        (f"{PODS}/p0", TABLE),
        (f"{PODS}/none", TABLE),
        (f"{PODS}?limit=2", TABLE),
        (f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", TABLE),
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
        pair.real.ask("POST", PODS, _pod(f"gone-{index}", 0))
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
    pair.real.ask("POST", PODS, _pod("evicted", 0))
    pair.copy()
    version = next(
        each["version"] for each in pair.real.get("/api/v1")["resources"] if each["name"] == "pods/eviction"
    )  # the one kind that all releases take
    kind = {"apiVersion": f"policy/{version}", "kind": "Eviction"}
    for named, evicted in (("none", "none"), ("other", "evicted"), ("evicted", "evicted")):
        body = {**kind, "metadata": {"name": named, "namespace": NAMESPACE}}
        pair.compare("POST", f"{PODS}/{evicted}/eviction", body)
    pair.compare("DELETE", f"{PODS}/evicted?gracePeriodSeconds=0")


def _versions(pair: Pair) -> tuple[str, str]:
    theirs, ours = (side.get(PODS)["metadata"]["resourceVersion"] for side in (pair.real, pair.ours))
    return theirs, ours


def _watched(pair: Pair, versions: tuple[str, str], options: str = "", accept: str = "") -> list[Answer]:
    """What the real server and ours tell, from a version of each, in one second's watch of both."""

    def watch(side: Side, version: str) -> Answer:
        path = f"{PODS}?watch=true&timeoutSeconds=1&resourceVersion={version}{options}"
        return side.ask("GET", path, accept=accept)

    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(watch, (pair.real, pair.ours), versions))


def test_watches_see_the_same_changes(pair: Pair) -> None:
    begun = _versions(pair)
    for name in ("v", "w"):
        made = pair.real.ask("POST", PODS, _pod(name, 0))[2]
        made["metadata"] = {
            key: each for key, each in made["metadata"].items() if key not in ("managedFields", "resourceVersion")
        }
        pair.server.do(lambda cluster, made=made: cluster.add("pods", made))
    pair.compare("DELETE", f"{PODS}/v", {"gracePeriodSeconds": 0})
    for labels in ({"app": "z"}, {"n": "1"}, {"app": "y"}):
        pair.compare("PATCH", f"{PODS}/w", {"metadata": {"labels": labels}}, MERGE_PATCH)
    pair.compare("DELETE", f"{PODS}/w", {"gracePeriodSeconds": 20})
    pair.compare("DELETE", f"{PODS}/w", {"gracePeriodSeconds": 0})
    for options in (
        "", "&labelSelector=app%3Dz", "&labelSelector=app%3Dy", "&fieldSelector=metadata.name%3Dw",
        "&labelSelector=none", "&limit=1&continue=abc", "&labelSelector=!n",
    ):  # fmt: skip
        theirs, ours = _watched(pair, begun, options)
        assert_same(ours, theirs)
        if not options:
            assert len(ours[2]) == 10
    for accept in (TABLE, PARTIAL.format("")):
        theirs, ours = _watched(pair, begun, accept=accept)
        assert_same(ours, theirs)


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_without_a_version_begins_with_what_exists(pair: Pair, version: str) -> None:
    theirs, ours = _watched(pair, (version, version))
    for _, _, events in (theirs, ours):
        events.sort(key=lambda each: each["object"]["metadata"]["name"])  # no order is promised
    assert_same(ours, theirs)


def test_a_version_in_the_future_is_waited_for(pair: Pair) -> None:
    theirs, ours = _watched(pair, ("999999999", "999999999"))
    assert_same(ours, theirs)


def _forget(pair: Pair) -> None:
    """Make both forget what was: the real one compacts its etcd, we write more than the history holds."""
    for count in range(3):
        pair.real.ask("PATCH", f"{PODS}/p0", {"metadata": {"labels": {"n": str(count)}}}, MERGE_PATCH)
    pair.cluster.compact()

    def overflow(cluster: Cluster) -> None:
        for plural, name in (("pods", "p0"), ("events", "p0.1")):
            kept = cluster.manifest(plural, NAMESPACE, name)
            for count in range(70_000):
                cluster.store.put(plural, NAMESPACE, name, {**kept, "count": count})
            cluster.store.put(plural, NAMESPACE, name, kept)

    pair.server.do(overflow)
    pair.copy()


def test_what_is_forgotten_is_gone(pair: Pair) -> None:
    sides = (pair.real, pair.ours)
    begun = _versions(pair)
    tokens = [side.get(f"{PODS}?limit=2")["metadata"]["continue"] for side in sides]
    _forget(pair)
    expired = [side.ask("GET", f"{PODS}?limit=2&continue={token}") for side, token in zip(sides, tokens, strict=True)]
    assert_same(expired[1], expired[0])
    assert expired[1][0] == 410
    # The token in the refusal continues where the first page ended, with what is there now.
    rest = [
        side.get(f"{PODS}?limit=2&continue={answer[2]['metadata']['continue']}")
        for side, answer in zip(sides, expired, strict=True)
    ]
    assert_same(rest[1], rest[0])
    assert [each["metadata"]["name"] for each in rest[1]["items"]] == ["p2", "p3"]
    exact = "resourceVersionMatch=Exact&resourceVersion="
    theirs, ours = (side.ask("GET", f"{PODS}?{exact}{version}") for side, version in zip(sides, begun, strict=True))
    assert_same(ours, theirs)
    # Watches of events are not cached by a real server: they are read from etcd, and are forgotten with it.
    path = f"{COPIED['events']}?watch=1&timeoutSeconds=1&resourceVersion="
    watched = [side.ask("GET", f"{path}{version}") for side, version in zip(sides, begun, strict=True)]
    for _, _, (event,) in watched:
        event["object"].pop("message")  # a cache and etcd say it in other words
    assert_same(watched[1], watched[0])
    assert watched[1][2][0]["object"]["code"] == 410


def test_our_types_are_described_as_the_real_ones(pair: Pair) -> None:
    assert pair.ours.get("/api")["versions"] == pair.real.get("/api")["versions"]
    assert pair.ours.get("/version").keys() == pair.real.get("/version").keys()
    groups = {each["name"]: each for each in pair.real.get("/apis")["groups"]}
    assert groups["apps"] in pair.ours.get("/apis")["groups"]
    for path in ("/api/v1", "/apis/apps/v1", "/apis/events.k8s.io/v1"):
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
