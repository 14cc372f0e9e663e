"""Waiting for room: how much of the runs' time, for what, and what the autoscaler did about it."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.autoscaling import NOT_TRIGGERED_SCALE_UP, provisioning_times, scale_ups
from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.waits import waits_so_far
from harness.model.phases import (
    PROVISIONING,
    PULLING,
    RUNNING,
    STARTING,
    STORING,
    UNSCHEDULABLE,
)

FAILED_SCHEDULING = "FailedScheduling"
_FAILED_SCALE_UP = frozenset({"FailedToScaleUpGroup", "ScaleUpFailed", "ScaleUpTimedOut", "FailedScaleUp"})
# As cluster-autoscaler and Karpenter word it.
_AT_MAX = re.compile(
    r"max(?:imum)? (?:node group |cluster |nodes? |limit |size )*(?:size |limit )?reached"
    r"|exceeds? (?:the )?limits? for (?:nodepool|provisioner)",
    re.IGNORECASE,
)
_LACKS = re.compile(r"\d+ (Insufficient [\w/-]+(?:\.[\w/-]+)*|Too many pods)")


@dataclass(frozen=True, slots=True)
class SchedulingWait:
    """What was seen of pods that found no node.

    Attributes:
        unschedulable: share of all runs' time spent waiting with no node on its way.
        provisioning: share spent waiting while a node was on its way.
        lacks: what the scheduler missed, by how often it said so ("Insufficient cpu").
        scaled: the autoscaler acted or said why it did not.
        at_max: what shows that it was at its maximum; "" when nothing does.
        grew: it brought nodes during the test.
        refused: what shows that it could not get a machine; "" when nothing does.
        pulling: share of the time that the runs' pods had a node in which they pulled their images.
        storing: the same, in which they stored outputs.
        coming_s: median seconds from its decision to a ready node; none when no node came.
    """

    unschedulable: float
    provisioning: float
    lacks: tuple[tuple[str, int], ...]
    scaled: bool
    at_max: str
    grew: bool
    refused: str
    pulling: float
    storing: float
    coming_s: float | None

    @property
    def share(self) -> float:
        """Share of all runs' time spent waiting for room."""
        return self.unschedulable + self.provisioning

    @property
    def working(self) -> float:
        """Share of the time that pods had a node in which they started and ran, and did not wait for data."""
        return 1.0 - self.pulling - self.storing


@remembered
def scheduling_wait(timeline: Timeline) -> SchedulingWait:
    """Fold phases and events."""
    shares = waits_so_far(timeline).shares()
    events = timeline.events
    reasons = events["reason"]
    unwilling = events[reasons == NOT_TRIGGERED_SCALE_UP]
    failed = events[reasons.isin(_FAILED_SCALE_UP)]
    coming = provisioning_times(timeline)
    decisions = scale_ups(timeline)
    on_node = {phase: _seconds(timeline, phase) for phase in (PULLING, STARTING, RUNNING, STORING)}
    held = max(sum(on_node.values()), 1e-9)
    return SchedulingWait(
        unschedulable=shares[UNSCHEDULABLE],
        provisioning=shares[PROVISIONING],
        lacks=_lacks(timeline),
        scaled=bool(len(decisions) or len(unwilling) or len(failed)),
        at_max=_at_max(timeline),
        grew=bool(decisions),
        refused=str(failed["message"].iloc[0]) if len(failed) else "",
        pulling=on_node[PULLING] / held,
        storing=on_node[STORING] / held,
        coming_s=float(np.median(coming)) if coming.size else None,
    )


def _seconds(timeline: Timeline, phase: str) -> float:
    """That pods of the runs spent in a phase; what goes on counts to the end of the observation."""
    mine = timeline.of_runs(phase)
    end = np.nan_to_num(floats(timeline.pods, "end_s")[mine], nan=timeline.end_s)
    return float(np.maximum(end - floats(timeline.pods, "start_s")[mine], 0.0).sum())


def _lacks(timeline: Timeline) -> tuple[tuple[str, int], ...]:
    events = timeline.events[timeline.events["reason"] == FAILED_SCHEDULING]
    found: Counter[str] = Counter()
    for message, count in zip(events["message"].fillna(""), floats(events, "count").tolist(), strict=True):
        for lack in set(_LACKS.findall(message)):
            found[lack] += int(count)
    return tuple(found.most_common())


def _at_max(timeline: Timeline) -> str:
    """Its last decision went to the maximum, or it said so itself."""
    events = timeline.events[timeline.events["reason"].isin({NOT_TRIGGERED_SCALE_UP, FAILED_SCHEDULING})]
    for message in events["message"].fillna(""):
        if _AT_MAX.search(message):
            return str(message)
    full = [d for d in scale_ups(timeline) if d.after >= d.limit]
    if full:
        last = full[-1]
        return f"{last.group} went from {last.before} to {last.after} nodes, its maximum is {last.limit}"
    return ""
