"""Objects of the simulated cluster as they are sent by themselves."""

from harness.simulator.kube_api import Manifest, Resource
from harness.simulator.kube_api.store import ObjectVersion


def whole(found: ObjectVersion, resource: Resource) -> Manifest:
    """The manifest with its kind and version, which a list has once for all its items."""
    return {"kind": resource.kind, "apiVersion": resource.api_version, **found.manifest(resource)}
