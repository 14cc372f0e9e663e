"""A Kubernetes API over the simulated cluster: discovery, get, list, watch, and the writes that operators need.

The model calls `ObjectStore.put` and `ObjectStore.delete`; `mount` serves the stored objects; clients' writes reach
the model through `Actions`. `resources` declares the types.
"""

from harness.simulator.kube_api.actions import Actions
from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.resource import Column, Manifest, Resource, Since, Snapshot
from harness.simulator.kube_api.routes import mount
from harness.simulator.kube_api.store import ObjectStore

__all__ = ["Actions", "ApiError", "Column", "Manifest", "ObjectStore", "Resource", "Since", "Snapshot", "mount"]
