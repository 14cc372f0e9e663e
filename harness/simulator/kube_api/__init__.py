"""A Kubernetes API over the simulated cluster: discovery, get, list, watch, and the few writes that operators make.

The model calls `ObjectStore.put` and `ObjectStore.delete`; `mount` serves what is stored; `Actions` is how a client's
writes reach the model. `resources` holds the ready-made types.
"""

from harness.simulator.kube_api.actions import Actions
from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.resource import Column, Manifest, Resource, Since, Snapshot
from harness.simulator.kube_api.routes import mount
from harness.simulator.kube_api.store import ObjectStore

__all__ = ["Actions", "ApiError", "Column", "Manifest", "ObjectStore", "Resource", "Since", "Snapshot", "mount"]
