"""The same requests to a real kube-apiserver and to ours, whose answers must be the same.

Both hold the same objects: what the real one made of them is copied into ours before each test. Compared are status,
content type and the whole body, but for what can't agree: versions, ages, and field managers. Known differences between
the release in use and the one that is imitated are named in `comparable`.
"""

import base64
import json
import re
from difflib import unified_diff
from typing import Any

import urllib3
from kubernetes import client

from tests.support.kube_cluster import Cluster, Server
from tests.support.real_kubernetes import RealCluster

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
    "services": f"/api/v1/namespaces/{NAMESPACE}/services",
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


# Changes of one type that our side remembers: few enough that a test can outrun them.
HISTORY = 1_000


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
    mine, real = (json.dumps(comparable(each), indent=1, sort_keys=True).splitlines() for each in (ours, theirs))
    difference = list(unified_diff(real, mine, "real", "ours", lineterm=""))
    assert not difference, "\n".join(difference)


_VERSIONS = {"resourceVersion"}
_TIMES = {"deletionTimestamp", "lastHeartbeatTime"}
_AGE = re.compile(r"(\d+[smhd])+|<unknown>")
# Columns that came, or changed their type, after the oldest release these tests run with.
_YOUNG_COLUMNS = {"PreemptionPolicy", "Restarts", "VolumeAttributesClass"}


def comparable(value: Any) -> Any:
    """An answer without what can't agree."""
    if isinstance(value, tuple | list):
        return [comparable(each) for each in value]
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
            normal[key] = comparable(each)
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
    start = decoded["start"].removeprefix("/")  # one from the cache has it, one from etcd hasn't
    return {**decoded, "start": start, "rv": "latest" if decoded["rv"] == -1 else "<version>"}


def a_pod(name: str, index: int) -> dict[str, object]:
    labels = {"app": "x" if index % 2 else "y", "i": str(index)}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"containers": [container], "restartPolicy": "Never", "nodeName": f"differ-{index % 2}"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def furnish(real: RealCluster) -> None:
    core = client.CoreV1Api(real.client())
    core.create_namespace({"metadata": {"name": NAMESPACE, "labels": {"a": "b"}}})
    for index in range(2):
        real.add_node(f"differ-{index}", labels={"pool": "differ"})
    for index in range(5):
        core.create_namespaced_pod(NAMESPACE, a_pod(f"p{index}", index))
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
    core.create_namespaced_event(
        NAMESPACE,
        {
            "metadata": {"name": "p1.1"}, "reason": "Started", "message": "Container started", "type": "Normal",
            "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "p1"}, "source": {"component": "kubelet"},
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
    labels = {"matchLabels": {"a": "b", "c": "d"}}
    client.AppsV1Api(real.client()).create_namespaced_replica_set(
        NAMESPACE,
        {
            "metadata": {"name": "web-1"},
            "spec": {
                "replicas": 0,
                "selector": labels,
                "template": {**template, "metadata": {"labels": labels["matchLabels"]}},
            },
        },
    )
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    for name, spec in (
        ("web", {"ports": ports, "selector": {"a": "b", "c": "d"}}),
        ("alone", {"ports": ports[:1]}),
        ("headless", {"clusterIP": "None", "ports": ports[:1], "selector": {"a": "b"}}),
    ):
        core.create_namespaced_service(NAMESPACE, {"metadata": {"name": name}, "spec": spec})
