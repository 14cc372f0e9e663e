"""What the autoscaler decided (cluster-autoscaler or Karpenter), and how long it took to provision nodes."""

import re
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats, merged, remembered
from harness.model.phases import CLAIM_CREATED, CLAIM_FAILED, OF_CLAIM

TRIGGERED_SCALE_UP = "TriggeredScaleUp"
NOT_TRIGGERED_SCALE_UP = "NotTriggerScaleUp"
# What is announced on a node that its cloud reclaims (AKS, the node termination handlers of EKS and GKE, Karpenter).
TAKEN_BACK = (
    "PreemptScheduled", "SpotInterruption", "PreemptionScheduled", "TerminationNotice", "SpotInterrupted",
    "TerminatingOnInterruption",
)  # fmt: skip

# As the autoscaler words it: pod triggered scale-up: [{pool-a 3->5 (max: 12)} {pool-b 0->1 (max: 4)}]
_DECISION = re.compile(r"\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}")
# As Karpenter words it, of a machine that it has requested: Pod should schedule on: nodeclaim/default-tn8fg
_NOMINATED, _REQUESTED = "Nominated", re.compile(r"nodeclaim/([a-z0-9.-]+)")
_CAME = "Registered"  # of a claim: its node is there
# A machine that is not ready after this time will not come.
LONGEST_PROVISIONING_S = 1800.0


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """One decision of the autoscaler: at `at_s`, `group` shall grow from `before` to `after` of `limit` machines."""

    at_s: float
    group: str
    before: int
    after: int
    limit: int


@remembered
def scale_ups(timeline: Timeline) -> tuple[ScaleUp, ...]:
    """The decisions in order of time; one decision is reported in an event of each pod that it helps."""
    events = timeline.events[timeline.events["reason"] == TRIGGERED_SCALE_UP]
    decisions: dict[tuple[str, ...], ScaleUp] = {}
    for at_s, message in sorted(zip(floats(events, "at_s").tolist(), events["message"], strict=True)):
        for found in _DECISION.findall(message):
            group, before, after, limit = found
            decisions.setdefault(found, ScaleUp(at_s, group, int(before), int(after), int(limit)))
    return tuple(decisions.values())


@remembered
def requests(timeline: Timeline) -> Floats:
    """When the autoscaler asked for a machine, s: once per machine, in order of time; not those that it did not get."""
    claims = timeline.events[(timeline.events["kind"] == OF_CLAIM).to_numpy(dtype=bool)]
    of_reason = {str(reason): each for reason, each in claims.groupby("reason", sort=True)}
    claimed: dict[str, float] = {}
    if CLAIM_CREATED in of_reason:
        created = of_reason[CLAIM_CREATED]
        claimed = dict(zip(created["object"].astype(str), floats(created, "at_s").tolist(), strict=True))
    failed, came = (set(of_reason[name]["object"]) if name in of_reason else set() for name in (CLAIM_FAILED, _CAME))
    events = timeline.events[timeline.events["reason"] == _NOMINATED]
    for at_s, message in sorted(zip(floats(events, "at_s").tolist(), events["message"], strict=True)):
        for name in _REQUESTED.findall(message):  # one machine is announced to each pod that it is for
            claimed.setdefault(name, at_s)
    asked = [decision.at_s for decision in scale_ups(timeline) for _ in range(decision.after - decision.before)]
    got = [at_s for name, at_s in claimed.items() if name not in failed - came]
    return np.sort(np.array([*asked, *got], dtype=np.float64))


def provisioning(timeline: Timeline) -> tuple[Floats, Floats]:
    """The disjoint intervals in which a node was being provisioned: from the decision until ready.

    Machines come in the order of their requests. One that was requested and never appeared counts until the end of the
    observation, for half an hour at most; one without an observed request counts from its creation.
    """
    ready = floats(timeline.machines, "ready_s")
    created = np.minimum(floats(timeline.machines, "created_s"), np.where(np.isfinite(ready), ready, np.inf))
    came = created > 0
    created, ready = created[came], ready[came]
    order = np.argsort(created, kind="stable")
    created, ready = created[order], np.where(np.isfinite(ready[order]), ready[order], timeline.end_s)
    asked = requests(timeline)
    matched = min(asked.size, created.size)
    starts, ends = created.copy(), ready
    starts[:matched] = np.minimum(starts[:matched], asked[:matched])
    pending = asked[matched:]
    starts = np.concatenate((starts, pending))
    ends = np.concatenate((ends, np.minimum(pending + LONGEST_PROVISIONING_S, max(timeline.end_s, 0.0))))
    return merged(starts, np.maximum(starts, ends))


def provisioning_times(timeline: Timeline) -> Floats:
    """Seconds from the decision until ready, by machine, in order of creation."""
    ready, created = floats(timeline.machines, "ready_s"), floats(timeline.machines, "created_s")
    came = np.isfinite(ready) & (created > 0)
    order = np.argsort(created[came], kind="stable")
    ready = ready[came][order]
    asked = requests(timeline)
    matched = min(asked.size, ready.size)
    return np.asarray(ready[:matched] - asked[:matched], dtype=np.float64)
