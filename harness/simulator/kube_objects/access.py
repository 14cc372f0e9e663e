"""The accounts of the Kubernetes API, and the objects of RBAC at the beginning."""

from collections.abc import Iterator, Mapping

from harness.simulator.kube_api import Manifest
from harness.simulator.kube_api.rbac import AUTHENTICATED, User, usual_objects
from harness.simulator.kube_objects.installation import NAMESPACES
from harness.simulator.kube_objects.snapshots import metadata
from harness.simulator.profile import Profile

_SERVICE_ACCOUNTS = "system:serviceaccounts"


def users(profile: Profile) -> Mapping[str, User]:
    """The profile's accounts by their token, with the groups that every server adds."""
    return {each.token: User(each.name, (*each.groups, *_added(each.name))) for each in profile.accounts}


def _added(name: str) -> tuple[str, ...]:
    kind, _, place = name.rpartition(":")[0].rpartition(":")
    own = (_SERVICE_ACCOUNTS, f"{_SERVICE_ACCOUNTS}:{place}") if kind == "system:serviceaccount" else ()
    return (*own, AUTHENTICATED)


def first_documents(namespace: str, created: str) -> Iterator[tuple[str, str, Manifest]]:
    """Plural, namespace and manifest of the usual roles, bindings and service accounts."""
    for plural, document in usual_objects():
        yield plural, "", {**document, "metadata": metadata(plural, document["metadata"]["name"], created)}
    for place, name in (*((each, "default") for each in (*NAMESPACES, namespace)), (namespace, "pipeline-runner")):
        yield "serviceaccounts", place, {"metadata": metadata("serviceaccounts", name, created, place)}
