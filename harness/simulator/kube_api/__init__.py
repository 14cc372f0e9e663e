"""A Kubernetes API over the simulated cluster: discovery, get, list, watch, and the writes that operators need.

The model calls `ObjectStore.put` and `ObjectStore.delete`; `routes.mount` serves the stored objects; clients' writes
reach the model through `Actions`. `resources` declares the types. The routes are imported by who serves them: a
simulation without a server does not wait for aiohttp.
"""

from harness.simulator.kube_api.actions import Actions
from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.resource import Manifest, Resource, Snapshot
from harness.simulator.kube_api.store import ObjectStore

__all__ = ["Actions", "ApiError", "Manifest", "ObjectStore", "Resource", "Snapshot"]
