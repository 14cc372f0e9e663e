"""RBAC: which rules give a user which rights, as the objects of ``rbac.authorization.k8s.io`` say.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.simulator.kube_api.resource import Manifest
from harness.simulator.kube_api.store import ObjectStore

GROUP = "rbac.authorization.k8s.io"
AUTHENTICATED, UNAUTHENTICATED, MASTERS = "system:authenticated", "system:unauthenticated", "system:masters"
_ACCOUNT = "system:serviceaccount"
_ALL = "*"
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]
_REVIEWS = (
    ("authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    ("authentication.k8s.io", ["selfsubjectreviews"]),
)
# The roles that every cluster has, of those that matter to a client that reads: name, groups bound to it, rules.
_USUAL: tuple[tuple[str, tuple[str, ...], list[Manifest]], ...] = (
    ("cluster-admin", (MASTERS,), [
        {"verbs": [_ALL], "apiGroups": [_ALL], "resources": [_ALL]}, {"verbs": [_ALL], "nonResourceURLs": [_ALL]},
    ]),
    ("system:basic-user", (AUTHENTICATED,), [
        {"verbs": ["create"], "apiGroups": [group], "resources": plurals} for group, plurals in _REVIEWS
    ]),
    ("system:discovery", (AUTHENTICATED,), [{"verbs": ["get"], "nonResourceURLs": _DISCOVERY}]),
    ("system:public-info-viewer", (AUTHENTICATED, UNAUTHENTICATED), [{"verbs": ["get"], "nonResourceURLs": _PUBLIC}]),
)  # fmt: skip


class User(NamedTuple):
    """Who asks."""

    name: str
    groups: tuple[str, ...]


class Attempt(NamedTuple):
    """What a request would do: a verb on a resource, or on a `path` that is none."""

    verb: str
    group: str = ""
    resource: str = ""  # the plural
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def kind(self) -> str:
        """The resource as rules name it: ``pods``, ``pods/log``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def usual_objects() -> Iterator[tuple[str, Manifest]]:
    """The ClusterRoles and ClusterRoleBindings that every cluster has, by plural."""
    for name, groups, rules in _USUAL:
        yield "clusterroles", {"metadata": {"name": name}, "rules": rules}
        subjects = [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups]
        role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        yield "clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}


def problem(kind: str, document: Manifest) -> str | None:
    """What is wrong with the form of a role or a binding; none if nothing is."""
    if kind.endswith("Role"):
        rules = document.get("rules") or []
        if not _are(dict, rules) or not all(_are(str, values) for rule in rules for values in rule.values()):
            return "rules must be a list of rules, whose fields are lists of texts"
        return None
    role, subjects = document.get("roleRef"), document.get("subjects") or []
    if not isinstance(role, dict) or not all(isinstance(role.get(each), str) for each in ("kind", "name")):
        return "roleRef must name a role by kind and name"
    if not _are(dict, subjects) or not all(_are(str, list(each.values())) for each in subjects):
        return "subjects must be a list of objects, whose fields are texts"
    return None


def _are(kind: type, values: object) -> bool:
    return isinstance(values, list) and all(isinstance(each, kind) for each in values)


def granted(store: ObjectStore, user: User, attempt: Attempt) -> str | None:
    """Why the user may do it, in the words of a real server; none if no rule allows it."""
    grants = _grants(store, user, attempt.namespace)
    return next((each.why for each in grants if any(allows(rule, attempt) for rule in each.rules)), None)


def rules_of(store: ObjectStore, user: User, namespace: str) -> list[Manifest]:
    """All rules that hold for the user in a namespace."""
    return [rule for each in _grants(store, user, namespace) for rule in each.rules]


def allows(rule: Mapping[str, Any], attempt: Attempt) -> bool:
    """Whether one rule covers the attempt."""
    if not _covers(rule.get("verbs"), attempt.verb):
        return False
    if attempt.path:
        return any(_matches_path(each, attempt.path) for each in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    kinds = {attempt.kind, f"{_ALL}/{attempt.subresource}"} if attempt.subresource else {attempt.kind}
    return (
        _covers(rule.get("apiGroups"), attempt.group)
        and any(each == _ALL or each in kinds for each in rule.get("resources") or ())
        and (not names or attempt.name in names)
    )


def _covers(given: Sequence[str] | None, asked: str) -> bool:
    return any(each in (_ALL, asked) for each in given or ())


def _matches_path(given: str, path: str) -> bool:
    return path.startswith(given.removesuffix(_ALL)) if given.endswith(_ALL) else path == given


class _Grant(NamedTuple):
    """The rules of a role that a binding gives to a user."""

    why: str
    rules: list[Manifest]


def _grants(store: ObjectStore, user: User, namespace: str) -> Iterator[_Grant]:
    """What the bindings that name the user give: the cluster's, then the namespace's."""
    places = [("clusterrolebindings", ""), *([("rolebindings", namespace)] if namespace else [])]
    for plural, place in places:
        for binding in _documents(store, plural, place):
            subject = next((each for each in binding.get("subjects") or () if _is(each, user, place)), None)
            if subject is not None:
                role, name = binding["roleRef"], binding["metadata"]["name"]
                its = f'RoleBinding "{name}/{place}"' if place else f'ClusterRoleBinding "{name}"'
                why = f'RBAC: allowed by {its} of {role["kind"]} "{role["name"]}" to {_named(subject)}'
                yield _Grant(why, _rules(store, role, place))


def _rules(store: ObjectStore, reference: Mapping[str, str], namespace: str) -> list[Manifest]:
    """The rules of the role that a binding refers to; none if there is no such role."""
    of_cluster = reference["kind"] == "ClusterRole"
    roles = _documents(store, "clusterroles" if of_cluster else "roles", "" if of_cluster else namespace)
    return next((role.get("rules") or [] for role in roles if role["metadata"]["name"] == reference["name"]), [])


def _is(subject: Mapping[str, str], user: User, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return subject.get("name") == user.name
        case "Group":
            return subject.get("name") in user.groups
        case "ServiceAccount":
            return f"{_ACCOUNT}:{subject.get('namespace') or namespace}:{subject.get('name')}" == user.name
    return False


def _named(subject: Mapping[str, str]) -> str:
    place = f"/{subject['namespace']}" if subject.get("namespace") else ""
    return f'{subject.get("kind")} "{subject.get("name")}{place}"'


def _documents(store: ObjectStore, plural: str, namespace: str) -> Iterator[Manifest]:
    (resource,) = (each for each in store.resources if each.plural == plural and each.group == GROUP)
    for version in store.objects(resource, namespace):
        assert isinstance(version.snapshot, dict)
        yield version.snapshot
