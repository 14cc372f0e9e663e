"""Replicas of the service that executes the runs: the pods of hetida designer's runtime, and their workers."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.reflector import Manifest
from harness.model.phases import REPLICA_WORKERS
from harness.model.records import Node, Sample
from harness.targets.target import RunsInService, Target

_FEWEST = 2  # workers that gunicorn's image starts by default, on however few cores


def is_replica(target: Target, pod: str) -> bool:
    """Whether a pod of this name belongs to the service that executes the target's runs."""
    return isinstance(target, RunsInService) and target.replica_pods in pod


def workers_of(spec: Mapping[str, Any], cores: float | None) -> int | None:
    """Worker processes of a replica with this pod spec on a machine with that many cores; none where that is not known.

    WEB_CONCURRENCY is their number. Without it there are WORKERS_PER_CORE (1) times the cores, at least two, and at
    most MAX_WORKERS; the cores are the machine's, whatever the container's limit. Source: the start script of the
    image that hetida's runtime is built on (tiangolo/uvicorn-gunicorn).
    """
    container: Mapping[str, Any] = next(iter(spec.get("containers") or ()), {})
    given = {str(each.get("name")): each.get("value") for each in container.get("env") or ()}
    number, most = _number(given.get("WEB_CONCURRENCY")), _number(given.get("MAX_WORKERS"))
    if number:
        return int(number)
    if most and most <= _FEWEST:
        return int(most)
    if not cores:
        return None
    per_core = _number(given.get("WORKERS_PER_CORE")) or 1.0
    by_cores = max(_FEWEST, int(per_core * ceil(cores)))
    return int(min(most, by_cores)) if most else by_cores


def _number(text: object) -> float | None:
    try:
        number = float(str(text))
    except ValueError:
        return None
    return number if 0 < number < 1e6 else None


class Replicas:
    """Takes in the pods of the target's service; records how many workers each has: 0 once it runs no longer."""

    def __init__(self, journal: Journal, target: Target, nodes: Mapping[str, Node]) -> None:
        self._journal = journal
        self._target = target
        self._nodes = nodes
        self._known: dict[str, int] = {}

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a pod that is new, changed or gone; those of others are ignored."""
        name, spec = str(manifest["metadata"]["name"]), manifest.get("spec") or {}
        if not is_replica(self._target, name):
            return
        home = str(spec.get("nodeName") or "")
        node = self._nodes.get(home)
        runs = change != "DELETED" and (manifest.get("status") or {}).get("phase") == "Running"
        workers = workers_of(spec, node.cpu if node else None) if runs else 0
        if workers is not None and self._known.get(name, 0) != workers:
            self._known[name] = workers
            self._journal.write(
                Sample(REPLICA_WORKERS, self._journal.now(), float(workers), {"pod": name, "node": home})
            )
