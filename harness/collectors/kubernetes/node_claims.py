"""Karpenter's NodeClaims: machines on their way, and why one did not come.

A claim's conditions become True in this order: Launched (the cloud has the machine), Registered (its node is there),
Initialized (pods may run on it). A launch that fails leaves Launched unknown, with the reason; a claim that is not
registered after 15 minutes, or for which the cloud has no capacity, is deleted.
Source: https://karpenter.sh/docs/concepts/nodeclaims/
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.events import BEFORE_NS
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import stamp
from harness.model.phases import CLAIM_CREATED, CLAIM_FAILED, COMING_NODES, OF_CLAIM
from harness.model.records import Event, Sample

VERSIONS = ("/apis/karpenter.sh/v1", "/apis/karpenter.sh/v1beta1")  # the newer one first
_LAUNCHED, _REGISTERED, _INITIALIZED = _STAGES = ("Launched", "Registered", "Initialized")
_TO_DO = frozenset({"", "AwaitingReconciliation"})  # reasons of a condition that no controller has handled yet
_POOL = "karpenter.sh/nodepool"


@dataclass(slots=True)
class _Claim:
    """Which conditions are True, and what the last one that is not says."""

    reached: set[str] = field(default_factory=set)
    waits_for: str = ""


class NodeClaims:
    """Records claims as events (kind NodeClaim) and their number on the way; `recorded` is from an earlier observer."""

    def __init__(self, journal: Journal, since: int, recorded: Iterable[Event] = ()) -> None:
        self._journal = journal
        self._since = since - BEFORE_NS
        self._written = {(e.object, e.reason, e.message) for e in recorded if e.kind == OF_CLAIM}
        self._claims: dict[str, _Claim] = {}
        self._coming = 0

    @property
    def coming(self) -> int:
        """Machines that were claimed and take no pods yet."""
        return sum(_INITIALIZED not in claim.reached for claim in self._claims.values())

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a claim that is new, changed or gone."""
        metadata = manifest["metadata"]
        name = str(metadata["name"])
        if change == "DELETED":
            self._see_deleted(name)
        else:
            claim = self._claims.setdefault(name, _Claim())
            created = stamp(metadata.get("creationTimestamp"))
            if created:
                pool = (metadata.get("labels") or {}).get(_POOL, "")
                self._write(created.at, name, CLAIM_CREATED, f"for node pool {pool}" if pool else "")
            for condition in (manifest.get("status") or {}).get("conditions") or ():
                self._see_condition(name, claim, condition)
        if self.coming != self._coming:
            self._coming = self.coming
            self._journal.write(Sample(COMING_NODES, self._journal.now(), float(self._coming)))

    def _see_condition(self, name: str, claim: _Claim, condition: Mapping[str, Any]) -> None:
        kind, reason = str(condition.get("type")), str(condition.get("reason") or "")
        if kind not in _STAGES:
            return
        since = stamp(condition.get("lastTransitionTime"))
        at = since.at if since else self._journal.now()
        if condition.get("status") == "True":
            claim.reached.add(kind)
            self._write(at, name, kind)
        elif reason not in _TO_DO:
            claim.waits_for = f"{reason}: {condition.get('message') or kind}"
            if kind == _LAUNCHED:
                self._write(at, name, CLAIM_FAILED, claim.waits_for)

    def _see_deleted(self, name: str) -> None:
        """A claim that goes before its node was registered has failed."""
        claim = self._claims.pop(name, None)
        if claim is not None and _REGISTERED not in claim.reached:
            stage = "registered" if _LAUNCHED in claim.reached else "launched"
            why = f": {claim.waits_for}" if claim.waits_for else ""
            self._write(self._journal.now(), name, CLAIM_FAILED, f"deleted before it was {stage}{why}")

    def _write(self, at: int, name: str, reason: str, message: str = "") -> None:
        if at >= self._since and (name, reason, message) not in self._written:
            self._written.add((name, reason, message))
            severity = "Warning" if reason == CLAIM_FAILED else "Normal"
            self._journal.write(Event(at, OF_CLAIM, name, reason, message, "kubernetes", type=severity))
