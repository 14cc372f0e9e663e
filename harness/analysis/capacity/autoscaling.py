"""What the autoscaler decided (cluster-autoscaler or Karpenter), and how long it took to provision nodes."""

import math
import re
from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.requested import requested_cpu
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Floats, Timeline, floats, merged, remembered
from harness.analysis.waits.waits import waits
from harness.model.phases import CLAIM_CREATED, CLAIM_FAILED, OF_CLAIM, PULLING, RUNNING, SCHEDULING, STARTING, STORING

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


# The cluster autoscaler's own scale-down delay; a node that is needed again sooner was removed too early.
SOON_S = 600.0
_LONGEST_KEEP_S = 3600.0
_ALWAYS = 0.05  # of the windows may need fewer nodes than the minimum


@dataclass(frozen=True, slots=True)
class ScaleAdvice:
    """For the pools that the runs' pods ran on.

    Attributes:
        coming_s: median seconds from the autoscaler's decision to a ready node; none when no node was added.
        early: nodes that were removed too early: their pool added another one within ten minutes.
        keep_s: how long to keep unneeded nodes to avoid that; none when it did not happen.
        minimum: nodes that are needed nearly all the time.
        maximum: nodes beyond which one more would work for less time than its provisioning or a single run takes.
    """

    coming_s: float | None
    early: int
    keep_s: float | None
    minimum: int
    maximum: int


def scale_advice(timeline: Timeline) -> ScaleAdvice | None:
    """Advice from requests, waits and nodes; none when nodes or requests were not observed, or no run ended."""
    cpu = requested_cpu(timeline)
    sizes = floats(timeline.run_nodes, "cpu")
    split = waits(timeline)
    if cpu is None or not sizes.size or not split.row.size or cpu.held_hours <= 0:
        return None
    size = float(np.median(sizes))
    coming = provisioning_times(timeline)
    coming_s = float(np.median(coming)) if coming.size else None
    worked = sum(split.of(name) for name in (SCHEDULING, PULLING, STARTING, RUNNING, STORING))
    alone_s = max(float(np.median(np.asarray(worked))), coming_s or 0.0, 1e-9)
    over = np.searchsorted(throughput(timeline).edges_s, throughput(timeline).makespan_s)
    wanted = cpu.wanted[: max(int(over), 1)]
    useful = math.ceil(3600 * cpu.held_hours / (size * alone_s))
    gaps = _gaps(timeline)
    return ScaleAdvice(
        coming_s=coming_s,
        early=int(gaps.size),
        keep_s=min(float(gaps.max()) + SOON_S, _LONGEST_KEEP_S) if gaps.size else None,
        minimum=max(0, math.floor(float(np.quantile(wanted, _ALWAYS)) / size)),
        maximum=max(1, min(useful, math.ceil(float(wanted.max()) / size))),
    )


def _gaps(timeline: Timeline) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Seconds from the removal of a node to the creation of the next one of its pool, up to `SOON_S`.

    Reclaimed machines are left out: the autoscaler did not remove those.
    """
    taken = set(
        timeline.events["object"][(timeline.events["kind"] == "Node") & timeline.events["reason"].isin(TAKEN_BACK)]
    )
    found: list[float] = []
    for _, nodes in timeline.run_nodes.groupby("pool"):
        kept = ~nodes["name"].isin(taken).to_numpy(dtype=bool)
        gone, came = floats(nodes, "gone_s")[kept], np.sort(floats(nodes, "created_s"))
        gone = np.sort(gone[np.isfinite(gone) & (gone > 0) & (gone < timeline.end_s)])
        after = np.searchsorted(came, gone, side="right")
        gaps = came[after[after < came.size]] - gone[after < came.size]
        found += gaps[gaps <= SOON_S].tolist()
    return np.array(found, dtype=np.float64)
