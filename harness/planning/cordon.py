"""So many nodes of a pool through the cluster's own API: the others are cordoned, and nothing new is put on them."""

import time

from harness.collectors.kubernetes.nodes import node_of, ready_since
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.units import counted

_LOOK_S = 2.0


def set_nodes(pool: str, count: int, timeout_s: float) -> None:
    """Leave `count` ready nodes of `pool` schedulable, the oldest ones, and cordon the rest.

    Raises:
        ConfigError: the pool has fewer nodes.
        TargetUnreachableError: the cluster does not answer.
    """
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    from harness.planning.node_pool_trial import connect, listed

    core = connect(None)
    until = time.monotonic() + timeout_s
    while True:
        nodes = sorted(
            (node_of(n).created_at, n["metadata"]["name"], n) for n in listed(core.list_node) if node_of(n).pool == pool
        )
        ready = [(name, node) for _, name, node in nodes if ready_since(node) is not None]
        if len(ready) >= count:
            break
        if time.monotonic() > until:
            raise ConfigError(
                f"pool '{pool}' has {counted(len(ready), 'ready node')}, needed are {count}",
                "enlarge it: nodes are only cordoned",
            )
        time.sleep(_LOOK_S)
    kept = {name for name, _ in ready[:count]}
    try:
        for _, name, node in nodes:
            if bool(node["spec"].get("unschedulable")) != (name not in kept):
                core.patch_node(name, {"spec": {"unschedulable": name not in kept}})
    except (ApiException, HTTPError) as error:
        raise TargetUnreachableError(f"node {name} can't be cordoned: {error}", "is 'patch nodes' allowed?") from error
