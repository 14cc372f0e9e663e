"""The load balancer sends one replica far more than its share, and executions queue there."""

import numpy as np

from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.saturation import saturation
from harness.analysis.services.service_replicas import ServiceReplicas, service_replicas
from harness.analysis.services.workers import gini
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, by_chance, format_duration, slowed
from harness.detectors.services.idle_workers import (
    COMMANDS,
    FIX,
    NAME,
    USED,
    WAITING,
    WITHIN,
    idle,
    in_one_replica,
    in_the_end,
    perhaps,
    unused,
    waited,
    while_idle,
    within_replicas,
)
from harness.detectors.services.replicas import LEAST_EXECUTIONS, LEAST_RUNS, UNNAMED
from harness.model.findings import Evidence, Finding
from harness.model.phases import POD_CPU_CORES

__all__ = ["NAME", "NEEDS", "detect"]

NEEDS = (Capability.EXECUTIONS,)
FAULTS = ("lb-imbalance",)
OVERSTATED_EARLY = True  # a replica that got the first executions may be the busiest only for now

_MIN_RATIO = 1.4  # times an equal share
_MAX_CHANCE = 1e-3  # that the busiest replica gets that many of evenly spread executions
_MAX_SHARE_LEFT = 0.5  # of the waits would be left with even load: then what the busiest replica costs shows little
_CONFIDENCE = 0.9
# By default a runtime has one replica: one that did everything is more often alone than favoured.
_CONFIDENCE_OF_ONE = 0.44


def detect(timeline: Timeline) -> list[Finding]:
    """The replicas' shares of the work, by what the answers name, Kubernetes shows, or only timing suggests."""
    done, shown = executions(timeline), service_replicas(timeline)
    if len(done.replicas) < 2 <= len(shown.pods):
        return _by_cpu(timeline, done, shown)
    if not done.replicas or len(done.replicas) == len(shown.pods) == 1:
        return _inferred(timeline, UNNAMED if not done.replicas else WITHIN)
    if len(done.replicas) < 2:
        return _all_to_one(timeline, done)
    return _by_name(timeline, done)


def _by_name(timeline: Timeline, done: Executions) -> list[Finding]:
    """Executions by replica against an equal share, and how much longer they wait at the busiest."""
    from scipy.special import bdtrc

    work, named = saturation(timeline), done.replica >= 0
    counts = np.bincount(done.replica[named], minlength=len(done.replicas))
    busiest, total = int(np.argmax(counts)), int(counts.sum())
    share, equal = float(counts[busiest]) / max(total, 1), 1 / len(done.replicas)
    chance = float(bdtrc(int(counts[busiest]) - 1, total, equal)) if total else 1.0
    if total < LEAST_EXECUTIONS or share < _MIN_RATIO * equal or chance > _MAX_CHANCE:
        return while_idle(work) or unused(work) or within_replicas(timeline, done.replicas)
    here = done.replica == busiest
    rest = named & ~here
    here_s, elsewhere_s = float(done.queued[here].mean()), float(done.queued[rest].mean()) if rest.any() else 0.0
    if here_s <= elsewhere_s:
        return []  # a faster replica rightly gets more
    # Executions elsewhere wait as well, but less; and spread over idle workers, too, all would wait less.
    beyond = done.inside - done.computing
    longer = float(beyond[here].mean() - (beyond[rest].mean() if rest.any() else 0.0))
    lost = longer * int(counts[busiest]) / max(float(done.inside.sum()), 1e-9)
    even = work.waiting - work.balanced
    gain = max(lost if work.balanced < _MAX_SHARE_LEFT * work.waiting else 0.0, work.waiting * (1 - work.used), even)
    return [
        Finding(
            NAME,
            f"The load is unbalanced: {share:.0%} of the executions went to one of {len(done.replicas)} replicas",
            _CONFIDENCE,
            (
                Evidence(
                    f"{done.replicas[busiest]} ran {counts[busiest]:,} of {total:,} executions, {share / equal:.1f} "
                    f"times an equal share ({by_chance(chance)})",
                    share, "share", "spans", f"node = {done.replicas[busiest]}",
                ),
                Evidence(
                    f"executions waited {format_duration(here_s)} in its queue and {format_duration(elsewhere_s)} in "
                    f"the others' (means); Gini coefficient of the load: {gini(counts.astype(np.float64)):.2f}",
                    here_s, "s", "spans", "phase = runtime queue",
                ),
            ),
            "Balance by least connections (nginx least_conn, a service mesh), and let clients open new connections: a "
            "kept-alive connection stays with its replica.",
            COMMANDS,
            slowed(max(gain, 0.1)),
        )
    ]  # fmt: skip


def _by_cpu(timeline: Timeline, done: Executions, shown: ServiceReplicas) -> list[Finding]:
    """Kubernetes shows the replicas that the answers don't name: did they share the work?"""
    from scipy.special import bdtrc

    found = saturation(timeline)
    gain = max(found.waiting * (1 - found.used), found.waiting - found.balanced)
    if done.row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    if not (shown.total or shown.cpu_s.size):
        return [perhaps(found, UNNAMED, one_replica=False)]
    if found.waiting < WAITING:
        return in_the_end(timeline, UNNAMED)
    if not shown.cpu_s.size:
        one = [idle(found, f"since {UNNAMED}")] if found.used < USED else in_one_replica(found, shown)
        return one or while_idle(found) or in_the_end(timeline, UNNAMED)
    share, equal = float(shown.cpu_s.max() / max(shown.cpu_s.sum(), 1e-9)), 1 / len(shown.pods)
    # So many executions of equal length would scatter as much as these do.
    like = max(1, round(float(done.computing.sum()) ** 2 / max(float((done.computing**2).sum()), 1e-9)))
    chance = float(bdtrc(round(share * like) - 1, like, equal))
    if share < _MIN_RATIO * equal or chance > _MAX_CHANCE:
        return while_idle(found) or in_the_end(timeline, UNNAMED)
    busiest = shown.pods[int(np.argmax(shown.cpu_s))]
    return [
        Finding(
            NAME,
            f"The load is unbalanced: one of {len(shown.pods)} replicas used {share:.0%} of their CPU time",
            _CONFIDENCE,
            (
                Evidence(
                    f"{busiest} used {share / equal:.1f} times an equal share of the replicas' CPU time "
                    f"({by_chance(chance)})",
                    share, "share", "samples", f"metric = {POD_CPU_CORES}",
                ),
                waited(found),
            ),
            FIX,
            COMMANDS,
            slowed(max(gain, 0.1)),
        )
    ]  # fmt: skip


def _all_to_one(timeline: Timeline, done: Executions) -> list[Finding]:
    """One replica did everything, and executions waited there: whether others were idle meanwhile does not show."""
    found = saturation(timeline)
    waiting = found.waiting
    if done.row.size < LEAST_EXECUTIONS or waiting < WAITING:
        raise CannotJudgeError("only one replica was observed")
    (name,) = done.replicas
    if found.used < USED:
        return [idle(found, f"{name} is the only replica that answered")]
    return [
        Finding(
            NAME,
            f"All {done.row.size:,} executions went to one replica, and waited there",
            _CONFIDENCE_OF_ONE,
            (
                Evidence(f"{name} is the only replica that answered", 1.0, "replicas", "spans", f"node = {name}"),
                waited(found),
            ),
            "See whether the runtime has more replicas than this one. If it has, let the load balancer use them: "
            "least connections, and clients that open new connections.",
            ("kubectl get deployments,endpointslices -A | grep runtime",),
            slowed(waiting / 2),  # with a second replica, which is the least that there may be
        )
    ]  # fmt: skip


def _inferred(timeline: Timeline, unseen: str) -> list[Finding]:
    """Where nothing shows who did the work: were workers idle while executions waited, throughout or in the end?"""
    found = saturation(timeline)
    if executions(timeline).row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    if len(timeline.runs) >= LEAST_RUNS and found.waiting >= WAITING and found.used < USED:
        return [idle(found, f"since {unseen}")]
    one_replica = len(service_replicas(timeline).pods) == 1
    return in_the_end(timeline, unseen) or [perhaps(found, unseen, one_replica=one_replica)]
