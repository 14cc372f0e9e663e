"""Who asks, and what a request would do."""

import pytest
from aiohttp import encode_basic_auth
from aiohttp.test_utils import make_mocked_request

from harness.simulator.kube_api.access import EVERYBODY, Access, attempt
from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.rbac import AUTHENTICATED, MASTERS, Attempt, User, allows, problem
from tests.support.kube_cluster import Cluster

ADMIN = User("admin", (MASTERS, AUTHENTICATED))


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/api/v1/pods", Attempt("list", resource="pods")),
        ("GET", "/api/v1/namespaces/a/pods", Attempt("list", resource="pods", namespace="a")),
        ("GET", "/api/v1/namespaces/a/pods?watch=true", Attempt("watch", resource="pods", namespace="a")),
        ("GET", "/api/v1/namespaces/a/pods?watch=false", Attempt("list", resource="pods", namespace="a")),
        ("HEAD", "/api/v1/namespaces/a/pods/p", Attempt("get", "", "pods", "", "a", "p")),
        ("GET", "/api/v1/namespaces/a/pods/p/log", Attempt("get", "", "pods", "log", "a", "p")),
        ("DELETE", "/api/v1/namespaces/a/pods", Attempt("deletecollection", resource="pods", namespace="a")),
        ("POST", "/apis/g/v1/namespaces/a/things", Attempt("create", "g", "things", "", "a")),
        ("PUT", "/apis/g/v1/namespaces/a/things/t/scale", Attempt("update", "g", "things", "scale", "a", "t")),
        ("PATCH", "/apis/g/v1/things/t", Attempt("patch", "g", "things", name="t")),
        ("GET", "/api/v1/namespaces", Attempt("list", resource="namespaces")),
        ("GET", "/api/v1/namespaces/a", Attempt("get", resource="namespaces", namespace="a", name="a")),
        ("GET", "/api/v1/namespaces/a/status", Attempt("get", "", "namespaces", "status", "a", "a")),
        ("POST", "/api/v1/namespaces/a/services/http:s:80/proxy/x/y", Attempt("create", "", "services", "proxy", "a", "http:s:80")),
        ("GET", "/apis/g/v1", Attempt("get", path="/apis/g/v1")),
        ("GET", "/api", Attempt("get", path="/api")),
        ("GET", "/metrics", Attempt("get", path="/metrics")),
        ("HEAD", "/healthz", Attempt("head", path="/healthz")),
        ("POST", "/healthz", Attempt("post", path="/healthz")),
    ],
)  # fmt: skip
def test_a_request_is_an_attempt(method: str, target: str, expected: Attempt) -> None:
    request = make_mocked_request(method, target)
    assert attempt(method, request.path, request.query) == expected


def user(access: Access, **headers: str) -> User:
    return access.user(
        make_mocked_request("GET", "/api", {name.replace("_", "-"): each for name, each in headers.items()})
    )


def test_without_accounts_everybody_may_do_everything() -> None:
    access = Access(Cluster().store, {})
    assert user(access) == user(access, Authorization="Bearer any") == EVERYBODY
    access.check(EVERYBODY, Attempt("delete", resource="nodes", name="n"))


def test_a_token_tells_the_user_and_none_is_anonymous() -> None:
    access = Access(Cluster().store, {"secret": ADMIN})
    assert user(access, Authorization="Bearer secret") == ADMIN
    assert user(access) == User("system:anonymous", ("system:unauthenticated",))
    assert user(access, Authorization=encode_basic_auth("any", "secret")) == ADMIN
    for wrong in ("Bearer other", "Basic secret", "Bearer", encode_basic_auth("secret", "other")):
        with pytest.raises(ApiError) as refused:
            user(access, Authorization=wrong)
        assert (refused.value.code, refused.value.message) == (401, "Unauthorized")


def test_only_who_may_can_impersonate() -> None:
    access = Access(Cluster().store, {"admin": ADMIN, "other": User("other", (AUTHENTICATED,))})
    someone = user(access, Authorization="Bearer admin", Impersonate_User="someone", Impersonate_Group="team")
    assert someone == User("someone", ("team", AUTHENTICATED))
    with pytest.raises(ApiError, match='users "someone" is forbidden: User "other" cannot impersonate'):
        user(access, Authorization="Bearer other", Impersonate_User="someone")


def test_everybody_may_see_the_version_and_only_accounts_the_types() -> None:
    access = Access(Cluster().store, {"admin": ADMIN})
    anonymous, someone = user(access), User("someone", (AUTHENTICATED,))
    access.check(anonymous, Attempt("get", path="/version"))
    access.check(someone, Attempt("get", path="/apis/apps/v1"))
    with pytest.raises(ApiError, match='forbidden: User "system:anonymous" cannot get path "/api"'):
        access.check(anonymous, Attempt("get", path="/api"))


@pytest.mark.parametrize(
    ("rule", "attempt", "allowed"),
    [
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, Attempt("get", "g", "things", "scale"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Attempt("get", "", "pods", "log"), False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, Attempt("get", "", "pods", "log"), True),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, Attempt("get", "", "pods"), False),
        ({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*"]}, Attempt("get", "", "pods"), False),
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Attempt("watch", "", "pods"), False),
        ({"verbs": ["get"], "resources": ["pods"]}, Attempt("get", "", "pods"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}, Attempt("get", path="/a/b"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/a"]}, Attempt("get", path="/a/b"), False),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}, Attempt("get", "", "pods"), False),
    ],
)  # fmt: skip
def test_a_rule_covers_what_it_names(rule: dict[str, list[str]], attempt: Attempt, allowed: bool) -> None:
    assert allows(rule, attempt) is allowed


@pytest.mark.parametrize(
    ("kind", "document", "wrong"),
    [
        ("Role", {"rules": None}, None),
        ("Role", {"rules": "all"}, "rules must be"),
        ("ClusterRole", {"rules": [{"verbs": "get"}]}, "rules must be"),
        ("RoleBinding", {"roleRef": {"kind": "Role", "name": "r"}}, None),
        ("RoleBinding", {}, "roleRef must name"),
        ("ClusterRoleBinding", {"roleRef": {"kind": "ClusterRole", "name": 3}}, "roleRef must name"),
        ("RoleBinding", {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": 3}]}, "subjects must be"),
    ],
)
def test_roles_and_bindings_have_a_form(kind: str, document: dict[str, object], wrong: str | None) -> None:
    found = problem(kind, document)
    assert found is None if wrong is None else found is not None and wrong in found
