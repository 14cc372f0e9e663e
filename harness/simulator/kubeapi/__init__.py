"""A Kubernetes API over the simulated cluster: discovery, get, list, watch, and the few writes that operators make.

The model calls `ObjectStore.put` and `ObjectStore.delete`; `mount` serves what is stored; `Actions` is how a client's
writes reach the model. `resources` holds the ready-made types.
"""

from harness.simulator.kubeapi.actions import Actions
from harness.simulator.kubeapi.errors import ApiError
from harness.simulator.kubeapi.resource import Column, Manifest, Resource, Since, Snapshot
from harness.simulator.kubeapi.routes import mount
from harness.simulator.kubeapi.store import ObjectStore

__all__ = ["Actions", "ApiError", "Column", "Manifest", "ObjectStore", "Resource", "Since", "Snapshot", "mount"]
