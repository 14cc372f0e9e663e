"""A fixed number of nodes for experiments: surplus nodes of a pool are cordoned, so that no new pod is put on them."""

import time
from collections.abc import Sequence
from typing import Protocol

from harness.model.cluster import PoolNode
from harness.model.errors import ConfigError
from harness.model.units import counted

_POLL_S = 2.0


class Cordoning(Protocol):
    """A cluster whose nodes can be cordoned."""

    def nodes(self) -> Sequence[PoolNode]:
        """All nodes of the cluster, of every pool."""
        ...

    def cordon(self, node: str, *, cordoned: bool) -> None:
        """Keep new pods off a node, or allow them again."""
        ...


def set_nodes(cluster: Cordoning, pool: str, count: int, timeout_s: float) -> None:
    """Leave the `count` oldest ready nodes of `pool` schedulable and cordon the rest.

    Raises:
        ConfigError: the pool has fewer ready nodes, even after `timeout_s`.
        TargetUnreachableError: the cluster does not answer.
    """
    until = time.monotonic() + timeout_s
    while True:
        nodes = [node for node in cluster.nodes() if node.node.pool == pool]
        nodes.sort(key=lambda node: (node.node.created_at, node.node.name))
        ready = [node.node.name for node in nodes if node.node.ready_at is not None]
        if len(ready) >= count:
            break
        if time.monotonic() > until:
            raise ConfigError(
                f"pool '{pool}' has {counted(len(ready), 'ready node')}, the experiment needs {count}",
                "enlarge the pool: nodes are only cordoned, never added",
            )
        time.sleep(_POLL_S)
    for node in nodes:
        cordoned = node.node.name not in ready[:count]
        if node.cordoned != cordoned:
            cluster.cordon(node.node.name, cordoned=cordoned)
