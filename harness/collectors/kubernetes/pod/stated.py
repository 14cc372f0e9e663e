"""What the cluster states about a pod while it waits or runs: conditions, events, and states of its containers."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.collectors.kubernetes.timestamps import Stamp, event_stamps, stamp
from harness.model.phases import RUNNING, SCHEDULING, SIDECARS, STORING, UNSCHEDULABLE
from harness.model.records import Node
from harness.reasons import builtin, stated
from harness.reasons.catalogue import BLOCKS, SCHEDULER, predicates

_KUBELET = "kubelet"
_NORMAL_STATES = frozenset({"ContainerCreating", "PodInitializing"})
_AUTOSCALERS = frozenset({"cluster-autoscaler", "karpenter"})
SCHEDULING_REASONS = frozenset({"FailedScheduling", "SchedulingGated", "Unschedulable"})
_OF_KUBELET = frozenset({"FailedMount", "FailedCreatePodSandBox", "BackOff", "Failed", "Unhealthy", "NetworkNotReady"})
_EXPLAINING = ("autoscaler/", "event/", "pod-condition/")
# Phases whose reasons come from elsewhere: the scheduler, the store, other containers.
_APART = frozenset({SCHEDULING, UNSCHEDULABLE, STORING, SIDECARS})
_MAX_TEXTS = 32  # texts of one pod: events repeat with other numbers
_MAX_CHANGES = 8  # of what the scheduler states about one pod
_VARYING = re.compile(r"\d+")
# From a node's registration until it is ready, at most, and until its first status, as cluster-autoscaler has them:
# its --max-node-startup-time, and MaxStatusSettingDelayAfterCreation.
# Source: https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler (config/flags, clusterstate)
_STARTS_NS, _FIRST_STATUS_NS = 15 * 60 * 10**9, 2 * 60 * 10**9


@dataclass(slots=True)
class Statement:
    """A text, and when it was stated first and last."""

    text: str
    first: Stamp
    last: Stamp


@dataclass(slots=True)
class Statements:
    """What was stated about one pod, in the order of sight."""

    _known: dict[str, Statement] = field(default_factory=dict)

    def see_event(self, event: Mapping[str, Any]) -> None:
        """Take in an event of the pod."""
        text = text_of(event)
        if event.get("type") == "Warning" or builtin().match(text).row is not None:
            self.add(text, *event_stamps(event))

    def see_status(self, status: Mapping[str, Any], containers: Iterable[Mapping[str, Any]], now_at: int) -> None:
        """Take in the conditions of the pod and the states of its containers, seen at `now_at`, UTC ns."""
        for each in status.get("conditions") or ():
            kind, reason, message = (str(each.get(name) or "") for name in ("type", "reason", "message"))
            at = stamp(each.get("lastTransitionTime"))
            if kind == "PodScheduled" and each.get("status") == "False" and at and message:
                self.add(stated(SCHEDULER, reason, message), at, Stamp(now_at, 0.0))
            elif kind == "DisruptionTarget" and each.get("status") == "True" and at:
                self.add(stated("pod-condition", reason, message), at, at)
        for each in containers:
            waiting = (each.get("state") or {}).get("waiting") or {}
            reason = str(waiting.get("reason") or "")
            if reason and reason not in _NORMAL_STATES:
                now = Stamp(now_at, 0.0)
                self.add(stated("waiting", reason, str(waiting.get("message") or "")), now, now)

    def by_scheduler(self) -> list[Statement]:
        """What the scheduler stated, by time; one where only numbers changed."""
        statements: list[Statement] = []
        mine = (each for each in self._known.values() if each.text.startswith(f"{SCHEDULER}/"))
        for each in sorted(mine, key=lambda each: each.first.at):
            words = _VARYING.sub("#", each.text.partition(": ")[2])
            if not statements or _VARYING.sub("#", statements[-1].text.partition(": ")[2]) != words:
                statements.append(each)
        return statements[:_MAX_CHANGES]

    def explained(self, text: str) -> str:
        """What the scheduler stated, or why that is so, as the controller of nodes, volumes or a queue stated it."""
        rank = builtin().match
        rows = [rank(part).row for part, _ in predicates(text)]
        if not all(row is not None and (row.nodes_help or row.general or row.layer == "volumes") for row in rows):
            return text
        others = [each for each in self._known if each.startswith(_EXPLAINING) and rank(each).row is not None]
        best = min(others, key=lambda each: rank(each).rank, default=text)
        row = rank(best).row
        return text if row is None or row.nodes_help else best

    def during(self, phase: str, begun: Stamp, ended: Stamp | None) -> str:
        """What was stated in a phase after the pod was scheduled: the most telling text; "" without any."""
        if phase in _APART or not self._known:
            return ""
        until = ended.latest if ended else None
        statements = [
            each
            for each in self._known.values()
            if not each.text.startswith(f"{SCHEDULER}/")
            and each.last.latest >= begun.at
            # What ends a pod is often stated after its containers have ended.
            and (until is None or each.first.at < until or phase == RUNNING)
        ]
        rank = builtin().match
        return min(statements, key=lambda each: rank(each.text).rank).text if statements else ""

    def block(self, by_scheduler: bool, until_at: int) -> bool:
        """Whether what was stated last blocks the pod for good, and was stated by `until_at`, UTC ns, at the latest.

        Of a pod that is not scheduled the scheduler's words count, of others the rest.
        """
        mine = [each for each in self._known.values() if each.text.startswith(f"{SCHEDULER}/") == by_scheduler]
        last = max(mine, key=lambda each: each.last, default=None)
        return last is not None and last.first.at <= until_at and _blocks(last.text)

    def add(self, text: str, first: Stamp, last: Stamp) -> None:
        """Take in a text that was stated from `first` to `last`."""
        known = self._known.get(text)
        if known is not None:
            known.first, known.last = min(known.first, first), max(known.last, last)
        elif len(self._known) < _MAX_TEXTS:
            self._known[text] = Statement(text, first, last)


@lru_cache(2**12)
def _blocks(text: str) -> bool:
    """Whether all that a text states blocks a pod unless someone intervenes."""
    rows = [builtin().match(part).row for part, _ in predicates(text)]
    return all(row is not None and row.effect == BLOCKS for row in rows)


def text_of(event: Mapping[str, Any]) -> str:
    """What an event states, with its source."""
    reason, message = str(event.get("reason") or ""), str(event.get("message") or event.get("note") or "")
    return stated(_source(event, reason), reason, message)


def of_node(manifest: Mapping[str, Any], node: Node, now_at: int) -> list[tuple[str, Stamp]]:
    """What a node's conditions state that is a known cause, and since when; not what is part of its start."""
    found, starts = [], node.ready_at is None and now_at < node.created_at + _STARTS_NS
    for each in (manifest.get("status") or {}).get("conditions") or ():
        is_bad = each.get("status") != "True" if each.get("type") == "Ready" else each.get("status") == "True"
        text = stated("node-condition", str(each.get("reason") or ""), str(each.get("message") or ""))
        since = stamp(each.get("lastTransitionTime"))
        if not (is_bad and since) or (starts and since.at <= node.created_at + _FIRST_STATUS_NS):
            continue
        if builtin().match(text).row is not None:
            found.append((text, since))
    return found


def _source(event: Mapping[str, Any], reason: str) -> str:
    component = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    component = component or event.get("reportingController") or ""
    if component in _AUTOSCALERS:
        return "autoscaler"
    if reason in SCHEDULING_REASONS:
        return SCHEDULER
    return "kubelet-event" if component == _KUBELET or (not component and reason in _OF_KUBELET) else "event"
