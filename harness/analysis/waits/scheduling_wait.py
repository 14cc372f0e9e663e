"""Unschedulable pods: how much of the runs' time they cost, what was missing, and what the autoscaler did."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.capacity.autoscaling import NOT_TRIGGERED_SCALE_UP, provisioning_times, requests, scale_ups
from harness.analysis.timeline import Timeline, floats, remembered
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.stated import unstated
from harness.analysis.waits.waits import waits_so_far
from harness.model.phases import CLAIM_FAILED, PROVISIONING, UNSCHEDULABLE
from harness.reasons import parsed, stated
from harness.reasons.catalogue import SCHEDULER, predicates

FAILED_SCHEDULING = "FailedScheduling"
# Reasons and messages of cluster-autoscaler (its scale-up events, and its reasons for skipping a node group) and of
# Karpenter (events of pods and of NodeClaims), as their public sources word them.
_FAILED_SCALE_UP = frozenset(
    {
        "FailedToScaleUpGroup", "ScaleUpFailed", "ScaleUpTimedOut", "FailedScaleUp", "InsufficientCapacityError",
        CLAIM_FAILED,
    }
)  # fmt: skip
_MAY_SAY_MAX = frozenset({NOT_TRIGGERED_SCALE_UP, FAILED_SCHEDULING, "MaxNodesTotalReached"})
_BACKS_OFF, _AT_MAX = "autoscaler-failing", "autoscaler-at-max"  # rows of the catalogue


@dataclass(frozen=True, slots=True)
class SchedulingWait:
    """Observations of pods that found no node.

    Attributes:
        unschedulable: share of all runs' time spent waiting with no new node on its way, without what the scheduler
            stated that more nodes would not end; in fan-outs, by the chain of pods that the run's end waited for.
        provisioning: share spent waiting while a new node was on its way.
        lacks: the resources that the scheduler reported missing ("Insufficient cpu"), with the number of reports.
        at_max: evidence that it was at its maximum; "" without any.
        grew: it added nodes during the test.
        refused: evidence that it could not get a machine; "" without any.
        coming_s: median seconds from its decision to a ready node; none without new nodes.
    """

    unschedulable: float
    provisioning: float
    lacks: tuple[tuple[str, int], ...]
    at_max: str
    grew: bool
    refused: str
    coming_s: float | None

    @property
    def share(self) -> float:
        """Share of all runs' time spent waiting for a node."""
        return self.unschedulable + self.provisioning


@remembered
def scheduling_wait(timeline: Timeline) -> SchedulingWait:
    """Combine phases and events; computed once per timeline."""
    shares, chain = waits_so_far(timeline).shares(), critical_path(timeline).shares
    if _waiting(chain) > _waiting(shares):
        shares = {**shares, **{phase: chain[phase] for phase in (UNSCHEDULABLE, PROVISIONING)}}
    left = unstated(timeline)[UNSCHEDULABLE]  # the scheduler's words count for both phases
    shares = {**shares, **{phase: left * shares[phase] for phase in (UNSCHEDULABLE, PROVISIONING)}}
    events = timeline.events
    reasons = events["reason"]
    not_triggered = events[reasons == NOT_TRIGGERED_SCALE_UP]
    failed = [str(message) for message in events["message"][reasons.isin(_FAILED_SCALE_UP)].fillna("")]
    failed += _said(timeline, not_triggered, _BACKS_OFF)
    coming = provisioning_times(timeline)
    requested = requests(timeline)
    return SchedulingWait(
        unschedulable=shares[UNSCHEDULABLE],
        provisioning=shares[PROVISIONING],
        lacks=_lacks(timeline),
        at_max=_at_max(timeline),
        grew=bool(requested.size),
        refused=failed[0] if failed else "",
        coming_s=float(np.median(coming)) if coming.size else None,
    )


def _said(timeline: Timeline, events: pd.DataFrame, row: str) -> list[str]:
    """The messages that match this row of the catalogue as an autoscaler's words."""
    found = []
    for reason, message in zip(events["reason"], events["message"], strict=True):
        match = timeline.catalogue.match(stated("autoscaler", str(reason), str(message)))
        if match.row is not None and match.row.name == row:
            found.append(str(message))
    return found


def _waiting(shares: Mapping[str, float]) -> float:
    return shares[UNSCHEDULABLE] + shares[PROVISIONING]


def _lacks(timeline: Timeline) -> tuple[tuple[str, int], ...]:
    events = timeline.events[timeline.events["reason"] == FAILED_SCHEDULING]
    found: Counter[str] = Counter()
    for message, count in zip(events["message"], floats(events, "count").tolist(), strict=True):
        for lack in {part for part, _ in predicates(stated(SCHEDULER, "", str(message)))}:
            row = timeline.catalogue.match(lack).row
            if row is not None and row.nodes_help:
                found[parsed(lack)[2]] += int(count)
    return tuple(found.most_common())


def _at_max(timeline: Timeline) -> str:
    """Evidence that the autoscaler was at its maximum: its own message, or its last decision; "" without any."""
    events = timeline.events[timeline.events["reason"].isin(_MAY_SAY_MAX)]
    if said := _said(timeline, events, _AT_MAX):
        return said[0]
    full = [d for d in scale_ups(timeline) if d.after >= d.limit]
    if full:
        last = full[-1]
        return f"{last.group} scaled from {last.before} to {last.after} nodes, maximum {last.limit}"
    return ""
