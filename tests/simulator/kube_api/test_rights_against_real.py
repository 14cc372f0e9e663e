"""Roles, bindings and reviews of a real API server and of ours: the same users may do the same."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from harness.simulator.kube_api.rbac import MASTERS, User
from tests.support.e2e import wait_for
from tests.support.kube_cluster import Cluster, serve
from tests.support.real_kubernetes import RealCluster

NAMESPACE = "rights"
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
HERE = f"{RBAC}/namespaces/{NAMESPACE}"
READER = ("reader", ())
MEMBER = ("member", ("team",))
OBSERVER = (f"system:serviceaccount:{NAMESPACE}:observer", ("system:serviceaccounts",))
NOBODY = ("nobody", ())


def role(kind: str, name: str, *rules: dict[str, list[str]]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": {"name": name}, "rules": list(rules)}


def binding(kind: str, name: str, of: str, *subjects: dict[str, str]) -> dict[str, Any]:
    reference = {"apiGroup": GROUP, "kind": of, "name": name}
    named = {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": {"name": name}}
    return {**named, "roleRef": reference, "subjects": list(subjects)}


def rule(verbs: str, group: str, resources: str, names: str = "") -> dict[str, list[str]]:
    limited = {"resourceNames": names.split()} if names else {}
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split(), **limited}


MADE = (
    (f"{HERE}/roles", role("Role", "see", rule("get list", "", "pods pods/log"), rule("get", "", "configmaps", "known"))),
    (f"{RBAC}/clusterroles", role("ClusterRole", "rights-nodes", rule("get list watch", "", "nodes"),
                                  {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]})),
    (f"{RBAC}/clusterroles", role("ClusterRole", "rights-all", rule("*", "apps", "*"), rule("get", "", "*/proxy"))),
    (f"{HERE}/rolebindings", binding("RoleBinding", "see", "Role", {"apiGroup": GROUP, "kind": "User", "name": "reader"},
                                     {"kind": "ServiceAccount", "name": "observer", "namespace": NAMESPACE})),
    (f"{RBAC}/clusterrolebindings", binding("ClusterRoleBinding", "rights-nodes", "ClusterRole",
                                            {"apiGroup": GROUP, "kind": "Group", "name": "team"})),
    (f"{HERE}/rolebindings", binding("RoleBinding", "rights-all", "ClusterRole",
                                     {"apiGroup": GROUP, "kind": "User", "name": "reader"})),
)  # fmt: skip
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ASKED = [
    (user, method, path)
    for user in (READER, MEMBER, OBSERVER, NOBODY)
    for method, path in (
        ("GET", PODS), ("GET", f"{PODS}?watch=1&timeoutSeconds=1"), ("GET", "/api/v1/pods"), ("DELETE", PODS),
        ("GET", f"{PODS}/one/log"), ("POST", f"{PODS}/one/eviction"), ("PATCH", f"{PODS}/one"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/known"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/other"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}"), ("GET", "/api/v1/nodes"), ("DELETE", "/api/v1/nodes/one"),
        ("GET", "/api/v1/nodes/one/proxy/stats/summary"), ("GET", "/metrics"), ("GET", "/version"),
        ("GET", "/api"), ("GET", "/apis/apps/v1"), ("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"),
        ("PUT", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web/scale"), ("GET", "/apis/apps/v1/deployments"),
        ("GET", f"{HERE}/roles"), ("POST", f"{RBAC}/clusterroles"),
    )
]  # fmt: skip
REVIEWED = [
    (user, attributes)
    for user in (READER, MEMBER, OBSERVER, NOBODY)
    for attributes in (
        {"resourceAttributes": {"namespace": NAMESPACE, "verb": "list", "resource": "pods"}},
        {"resourceAttributes": {"namespace": NAMESPACE, "verb": "get", "resource": "pods", "subresource": "log"}},
        {"resourceAttributes": {"verb": "list", "resource": "pods"}},
        {"resourceAttributes": {"verb": "watch", "resource": "nodes"}},
        {"resourceAttributes": {"namespace": NAMESPACE, "verb": "get", "resource": "configmaps", "name": "known"}},
        {"resourceAttributes": {"namespace": NAMESPACE, "verb": "patch", "group": "apps", "resource": "deployments"}},
        {"nonResourceAttributes": {"path": "/logs/x", "verb": "get"}},
        {"nonResourceAttributes": {"path": "/openapi/v2", "verb": "get"}},
    )
]


class Side:
    """One of the two servers."""

    def __init__(self, url: str, token: str, ca: str | None) -> None:
        self._url, self._token = url, token
        self._http = urllib3.PoolManager(ca_certs=ca, timeout=20.0, retries=False)

    def ask(self, method: str, path: str, body: Any = None, user: tuple[str, tuple[str, ...]] | None = None) -> Any:
        """Status and JSON, as an administrator or as a user whom they impersonate."""
        headers = urllib3.HTTPHeaderDict({"Authorization": f"Bearer {self._token}"})
        if user is not None:
            headers.add("Impersonate-User", user[0])
            for group in user[1]:
                headers.add("Impersonate-Group", group)
        if body is not None:
            headers.add("Content-Type", "application/json")
        answer = self._http.request(
            method, self._url + path, headers=headers, **({} if body is None else {"json": body})
        )
        kind = answer.headers.get("Content-Type", "")
        text = answer.data.decode().strip()
        return answer.status, answer.json() if "json" in kind and "watch=" not in path else text


Sides = tuple[Side, Side]


@pytest.fixture(scope="module")
def sides(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    accounts = {"admin": User("admin", (MASTERS,))}
    with serve(Cluster(), tmp_path_factory.mktemp("ours"), accounts) as server:
        both = (Side(server.url, "admin", None), Side(real_cluster.url, real_cluster.token, str(real_cluster.ca)))
        both[1].ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for path, document in MADE:
            ours, theirs = (side.ask("POST", path, document) for side in both)
            assert ours[0] == theirs[0] == 201, (ours, theirs)
            assert _comparable(ours[1]) == _comparable(theirs[1])
        yield both
        for path, document in MADE:
            both[1].ask("DELETE", f"{path}/{document['metadata']['name']}")


def _comparable(document: dict[str, Any]) -> dict[str, Any]:
    own = {"creationTimestamp", "managedFields", "resourceVersion", "uid"}
    kept = {key: value for key, value in document["metadata"].items() if key not in own}
    return {**document, "metadata": kept}


def test_the_same_requests_are_refused_in_the_same_words(sides: Sides) -> None:
    refused = 0
    for user, method, path in ASKED:
        (ours, said), (theirs, told) = (side.ask(method, path, user=user) for side in sides)
        assert (ours == 403) == (theirs == 403), (user, method, path, ours, theirs, told)
        if theirs == 403:
            refused += 1
            assert said == told, (user, method, path)
    assert refused > len(ASKED) / 2


def test_reviews_say_the_same(sides: Sides) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    allowed = set()
    for user, spec in REVIEWED:
        (ours, said), (theirs, told) = (side.ask("POST", path, {"spec": spec}, user) for side in sides)
        assert (ours, said["status"]) == (theirs, told["status"]), (user, spec)
        allowed.add(said["status"]["allowed"])
    assert allowed == {True, False}


@pytest.mark.parametrize("user", [READER, MEMBER, NOBODY])
def test_the_rules_of_a_user_are_the_same_but_for_those_of_every_cluster(sides: Sides, user: Any) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    found = []
    for side in sides:
        _, answer = side.ask("POST", path, {"spec": {"namespace": NAMESPACE}}, user)
        rules = [each for each in answer["status"]["resourceRules"] if "create" not in each["verbs"]]
        found.append(sorted(map(str, map(sorted, map(dict.items, rules)))))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{HERE}/roles", MADE[0][1]),
        ("DELETE", f"{HERE}/roles/none", None),
        ("POST", f"{HERE}/roles", {**MADE[0][1], "metadata": {"name": "x", "namespace": "other"}}),
        ("POST", f"{HERE}/roles", {**MADE[0][1], "metadata": {}}),
        ("POST", f"{HERE}/roles", {**MADE[0][1], "metadata": {"name": "a/b"}}),
    ],
    ids=["taken", "absent", "another-namespace", "nameless", "ill-named"],
)
def test_wrong_writes_are_refused_in_the_same_words(sides: Sides, method: str, path: str, body: Any) -> None:
    ours, theirs = (side.ask(method, path, body) for side in sides)
    assert ours == theirs


def test_a_role_is_changed_and_deleted_as_on_a_real_server(sides: Sides) -> None:
    for side in sides:
        wider = {**role("Role", "see", rule("get list delete", "", "pods")), "metadata": {"name": "see"}}
        assert side.ask("DELETE", f"{PODS}/one", user=READER)[0] == 403
        assert side.ask("PUT", f"{HERE}/roles/see", wider)[0] == 200
        # A real authorizer sees the change a moment later.
        wait_for(lambda side=side: side.ask("DELETE", f"{PODS}/one", user=READER)[0] == 404, 10)
        assert side.ask("PUT", f"{HERE}/roles/see", {**MADE[0][1]})[0] == 200
