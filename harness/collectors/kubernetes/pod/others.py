"""Pods of other workloads on the nodes that the runs' pods use: they hold room there.

Not counted are the platform's own components, pods of runs (they are observed as such), and what is on every node
anyway: the pods of DaemonSets and the kubelet's own. Other pods are remembered, and recorded once a pod of a run has
been on their node; their number in the records is bounded by that, and not by the size of the cluster.
"""

import threading
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.requests import RecordedRequests, Requests, requests_of
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import Stamp, stamp
from harness.model.phases import RUNNING, workload_name
from harness.model.records import Span

_SYSTEM = "kube-system"
_ON_EVERY_NODE = frozenset({"DaemonSet", "Node"})  # kinds of owners
_ENDED = frozenset({"Succeeded", "Failed"})
_MOST_ENDED = 5000  # remembered of nodes that no run has used yet: they may have kept its pods waiting


@dataclass(frozen=True, slots=True)
class _Other:
    """What a pod holds of its node, and since when."""

    span: Span
    requests: Requests

    @property
    def node(self) -> str:
        return self.span.node or ""


class OtherPods:
    """Takes in pods that belong to no run; `platform` are the namespaces of the platform's components."""

    def __init__(self, journal: Journal, since: int, platform: Collection[str]) -> None:
        self._journal = journal
        self._since = since
        self._apart = {_SYSTEM, *platform}
        self._requests = RecordedRequests()
        self._live: dict[str, _Other] = {}
        self._ended: deque[_Other] = deque(maxlen=_MOST_ENDED)
        self._used: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a pod that is new, changed or gone."""
        uid = str(manifest["metadata"]["uid"])
        over = change == "DELETED" or (manifest.get("status") or {}).get("phase") in _ENDED
        with self._lock:
            known = self._live.get(uid)
            if over and known:
                del self._live[uid]
                self._keep(replace(known, span=replace(known.span, ended_at=self._journal.now())))
            elif not over and not known and (found := self._other(manifest)):
                self._live[uid] = found
                self._write(found)

    def use(self, nodes: Collection[str]) -> None:
        """Pods of runs have been on these nodes: record what others hold of them, and from now on what changes."""
        with self._lock:
            new = frozenset(nodes) - self._used
            if new:
                self._used |= new
                for each in (*self._ended, *self._live.values()):
                    if each.node in new:
                        self._write(each)

    def _keep(self, ended: _Other) -> None:
        if ended.node in self._used:
            self._write(ended)
        else:
            self._ended.append(ended)

    def _write(self, other: _Other) -> None:
        span = other.span
        if other.node not in self._used or (span.ended_at is not None and span.ended_at < self._since):
            return
        for sample in self._requests.samples(span.task, span.step, other.requests, self._journal.now()):
            self._journal.write(sample)
        self._journal.write(span)

    def _other(self, manifest: Manifest) -> _Other | None:
        """None for a pod that does not count, or that has no node yet."""
        metadata, spec = manifest["metadata"], manifest.get("spec") or {}
        owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller", True)]
        within, node = str(metadata.get("namespace") or ""), spec.get("nodeName")
        if not node or within in self._apart or any(owner.get("kind") in _ON_EVERY_NODE for owner in owners):
            return None
        workload = workload_name(within, str((owners[0] if owners else metadata)["name"]))
        pod = workload_name(within, str(metadata["name"]))
        since = next(_scheduled(manifest), None) or stamp(metadata.get("creationTimestamp"))
        at = since.at if since else self._journal.now()
        span = Span(workload, pod, RUNNING, at, None, workload, 0, str(node), "kubernetes", 1.0)
        return _Other(span, requests_of(spec))


def _scheduled(manifest: Manifest) -> Iterator[Stamp | None]:
    for condition in (manifest.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            yield stamp(condition.get("lastTransitionTime"))
