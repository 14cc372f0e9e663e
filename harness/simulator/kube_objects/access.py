"""Whom a KFP of several users lets do what, and the service accounts at the beginning."""

from collections.abc import Iterator

from aiohttp import web

from harness.simulator.kfp.tenancy import Review, Verdict, Wanted, everybody
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.installation import NAMESPACES
from harness.simulator.kube_objects.snapshots import metadata
from harness.simulator.profile import Profile

# What Kubeflow's profile controller makes in the namespace of a profile.
_OF_PROFILES = ("default-editor", "default-viewer")


def reviewer(profile: Profile) -> Review:
    """The user of a request's token, who may do everything in the namespaces that it owns; all without accounts."""
    users = {f"Bearer {each.token}": each.name for each in profile.accounts}
    owners = {each.namespace: each.owner for each in profile.tenants}

    def review(request: web.Request, wanted: Wanted) -> Verdict:
        user = users.get(request.headers.get("Authorization", ""), "")
        return Verdict(user, allowed=bool(user) and owners.get(wanted.namespace) == user)

    return review if users else everybody


def service_accounts(profile: Profile, created: str) -> Iterator[tuple[str, str, Manifest]]:
    """Plural, namespace and manifest of those that the installation and the tenants have."""
    named = [*((each, "default") for each in (*NAMESPACES, profile.namespace)), (profile.namespace, "pipeline-runner")]
    named += [(each.namespace, name) for each in profile.tenants for name in ("default", *_OF_PROFILES)]
    for namespace, name in named:
        yield "serviceaccounts", namespace, {"metadata": metadata("serviceaccounts", name, created, namespace)}
