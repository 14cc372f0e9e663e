"""The accounts of the Kubernetes API, and the objects of RBAC at the beginning."""

from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from harness.simulator.kfp.tenancy import GROUP, Review, Verdict, Wanted
from harness.simulator.kube_api import ApiError, Manifest
from harness.simulator.kube_api.access import Access
from harness.simulator.kube_api.rbac import AUTHENTICATED, Attempt, User, usual_objects
from harness.simulator.kube_api.rbac import GROUP as RBAC
from harness.simulator.kube_objects.installation import NAMESPACES
from harness.simulator.kube_objects.snapshots import metadata
from harness.simulator.profile import Profile

_SERVICE_ACCOUNTS = "system:serviceaccounts"
# What Kubeflow's profile controller makes in the namespace of a profile.
_OF_PROFILES = ("default-editor", "default-viewer")
_OWNERS = "kubeflow-admin"
_EVERYTHING: dict[str, Any] = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}


def users(profile: Profile) -> Mapping[str, User]:
    """The profile's accounts by their token, with the groups that every server adds."""
    return {each.token: User(each.name, (*each.groups, *_added(each.name))) for each in profile.accounts}


def _added(name: str) -> tuple[str, ...]:
    kind, _, place = name.rpartition(":")[0].rpartition(":")
    own = (_SERVICE_ACCOUNTS, f"{_SERVICE_ACCOUNTS}:{place}") if kind == "system:serviceaccount" else ()
    return (*own, AUTHENTICATED)


def reviewer(access: Access) -> Review:
    """Whom a KFP for several users takes a client for, and what it lets them do: all without accounts.

    KFP asks for the rights of a user name, so that what is granted to a group counts for nothing.
    """

    def review(request: web.Request, wanted: Wanted) -> Verdict:
        try:
            user = User(access.user(request).name, ())
        except ApiError:
            return Verdict("", allowed=False)
        attempt = Attempt(wanted.verb, GROUP, wanted.resource, namespace=wanted.namespace, name=wanted.name)
        anonymous = "Authorization" not in request.headers and access.guarded
        return Verdict("" if anonymous else user.name, allowed=access.why(user, attempt) is not None)

    return review


def first_documents(profile: Profile, created: str) -> Iterator[tuple[str, str, Manifest]]:
    """Plural, namespace and manifest of the usual roles, bindings and service accounts."""
    namespace = profile.namespace
    for plural, document in usual_objects():
        yield plural, "", {**document, "metadata": metadata(plural, document["metadata"]["name"], created)}
    for place, name in (*((each, "default") for each in (*NAMESPACES, namespace)), (namespace, "pipeline-runner")):
        yield "serviceaccounts", place, {"metadata": metadata("serviceaccounts", name, created, place)}
    if profile.tenants:
        yield "clusterroles", "", {"metadata": metadata("clusterroles", _OWNERS, created), "rules": [_EVERYTHING]}
    for tenant in profile.tenants:
        place = tenant.namespace
        for name in ("default", *_OF_PROFILES):
            yield "serviceaccounts", place, {"metadata": metadata("serviceaccounts", name, created, place)}
        if tenant.owner:
            yield (
                "rolebindings",
                place,
                {
                    "metadata": metadata("rolebindings", "namespaceAdmin", created, place),
                    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": _OWNERS},
                    "subjects": [{"apiGroup": RBAC, "kind": "User", "name": tenant.owner}],
                },
            )
