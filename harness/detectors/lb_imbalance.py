"""The load balancer sends one replica far more than its share, and executions queue there."""

from collections.abc import Sequence

import numpy as np

from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.saturation import Saturation, saturation
from harness.analysis.services.service_replicas import ServiceReplicas, service_replicas
from harness.analysis.services.workers import gini
from harness.analysis.timeline import Timeline
from harness.analysis.waits.drain_tail import DrainTail
from harness.detectors.capability import Capability
from harness.detectors.detector import CannotJudgeError, by_chance, slowed
from harness.detectors.replicas import LEAST_EXECUTIONS, LEAST_RUNS, UNNAMED, uneven, unnamed_tail
from harness.model.findings import Evidence, Finding
from harness.model.phases import POD_CPU_CORES, QUEUED
from harness.model.units import format_duration

NAME = "lb-imbalance"
NEEDS = (Capability.EXECUTIONS,)
FAULTS = ("lb-imbalance",)
OVERSTATED_EARLY = True  # a replica that got the first executions may be the busiest only for now

_MORE = 1.4  # times an equal share
_CHANCE = 1e-4
_WAITING = 0.15  # of the executions' time
_USED, _FEW_USED = 0.6, 0.3  # of the workers: with more, nothing is inferred; with fewer, chance hardly explains it
_OF_SEVERAL = 3  # workers; of two, one is often alone by chance
_COVERED = 0.5  # of the workers had work while executions waited
_LEFT = 0.5  # of the waits would be left with even load: then what the busiest replica costs shows little
_SURE, _LIKELY = 0.9, 0.75
_FIX = (
    "Balance by least connections (nginx least_conn, a service mesh) with one worker per replica, so that no busy "
    "worker gets more work. Have the load balancer add the header X-Upstream-Addr to measure imbalance."
)
_COMMANDS = ("kubectl get services,endpointslices -A | grep runtime",)
# By default a runtime has one replica: one that did everything is more often alone than favoured.
_ONLY_ONE = 0.3
_SEVERAL = 1.5  # executions that a replica computes at once: it has several workers


def detect(timeline: Timeline) -> list[Finding]:
    """Executions by replica against an equal share, and how much longer they wait at the busiest."""
    from scipy.stats import binomtest

    done, shown = executions(timeline), service_replicas(timeline)
    if len(done.replicas) < 2 <= len(shown.pods):
        return _among(timeline, done, shown)
    if not done.replicas:
        return _inferred(timeline)
    if len(done.replicas) < 2:
        return _all_to_one(timeline, done)
    named = done.replica >= 0
    counts = np.bincount(done.replica[named], minlength=len(done.replicas))
    busiest, total = int(np.argmax(counts)), int(counts.sum())
    share, equal = float(counts[busiest]) / max(total, 1), 1 / len(done.replicas)
    chance = float(binomtest(int(counts[busiest]), total, equal, alternative="greater").pvalue) if total else 1.0
    if total < LEAST_EXECUTIONS or share < _MORE * equal or chance > _CHANCE:
        return _while_idle(timeline) or _within(timeline, done.replicas)
    here = done.replica == busiest
    rest = named & ~here
    waited, elsewhere = float(done.queued[here].mean()), float(done.queued[rest].mean()) if rest.any() else 0.0
    if waited <= elsewhere:
        return []  # a faster replica rightly gets more
    work = saturation(timeline)
    # Executions elsewhere wait as well, but less; and spread over idle workers, too, all would wait less.
    beyond = done.inside - done.computing
    longer = float(beyond[here].mean() - (beyond[rest].mean() if rest.any() else 0.0))
    lost = longer * int(counts[busiest]) / max(float(done.inside.sum()), 1e-9)
    even = work.waiting - work.balanced
    gain = max(lost if work.balanced < _LEFT * work.waiting else 0.0, work.waiting * (1 - work.used), even)
    return [
        Finding(
            NAME,
            f"The load is unbalanced: {share:.0%} of the executions went to one of {len(done.replicas)} replicas",
            _SURE,
            (
                Evidence(
                    f"{done.replicas[busiest]} ran {counts[busiest]:,} of {total:,} executions, {share / equal:.1f} "
                    f"times an equal share ({by_chance(chance)})",
                    share, "share", "spans", f"node = {done.replicas[busiest]}",
                ),
                Evidence(
                    f"executions waited {format_duration(waited)} in its queue and {format_duration(elsewhere)} in "
                    f"the others' (means); Gini coefficient of the load: {gini(counts.astype(np.float64)):.2f}",
                    waited, "s", "spans", "phase = runtime queue",
                ),
            ),
            "Balance by least connections (nginx least_conn, a service mesh), and let clients open new connections: a "
            "kept-alive connection stays with its replica.",
            ("kubectl get services,endpointslices -A | grep runtime",),
            slowed(max(gain, 0.1)),
        )
    ]  # fmt: skip


def _among(timeline: Timeline, done: Executions, shown: ServiceReplicas) -> list[Finding]:
    """Kubernetes shows the replicas that the answers don't name: did they share the work?"""
    from scipy.stats import binomtest

    found = saturation(timeline)
    gain = max(found.waiting * (1 - found.used), found.waiting - found.balanced)
    if done.row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    if not (shown.total or shown.cpu_s.size):
        raise CannotJudgeError(UNNAMED)
    if found.waiting < _WAITING:
        return _within_even(timeline)
    if not shown.cpu_s.size:
        idle = [_idle(found, f"since {UNNAMED}")] if found.used < _USED else _while_idle(timeline)
        return idle or _within_even(timeline)
    share, equal = float(shown.cpu_s.max() / max(shown.cpu_s.sum(), 1e-9)), 1 / len(shown.pods)
    # So many executions of equal length would scatter as much as these do.
    like = max(1, round(float(done.computing.sum()) ** 2 / max(float((done.computing**2).sum()), 1e-9)))
    chance = float(binomtest(round(share * like), like, equal, alternative="greater").pvalue)
    if share < _MORE * equal or chance > _CHANCE:
        return _while_idle(timeline) or _within_even(timeline)
    busiest = shown.pods[int(np.argmax(shown.cpu_s))]
    return [
        Finding(
            NAME,
            f"The load is unbalanced: one of {len(shown.pods)} replicas used {share:.0%} of their CPU time",
            _SURE,
            (
                Evidence(
                    f"{busiest} used {share / equal:.1f} times an equal share of the replicas' CPU time "
                    f"({by_chance(chance)})",
                    share, "share", "samples", f"metric = {POD_CPU_CORES}",
                ),
                _waited(found),
            ),
            _FIX,
            _COMMANDS,
            slowed(max(gain, 0.1)),
        )
    ]  # fmt: skip


def _while_idle(timeline: Timeline) -> list[Finding]:
    """Executions waited while workers were idle, though each replica got its share as far as that shows."""
    found = saturation(timeline)
    gain = found.waiting - found.balanced
    if found.waiting < _WAITING or gain < _WAITING or (found.enough and found.covered >= _COVERED):
        return []
    return [
        Finding(
            NAME,
            f"Executions waited for {found.waiting:.0%} of their time, and workers were idle meanwhile",
            _LIKELY,
            (
                _waited(found),
                Evidence(
                    f"with {found.most} workers, of which the first free one takes the next execution, they would "
                    f"have waited for {found.balanced:.0%} of their time",
                    found.balanced, "share", "spans",
                ),
            ),
            _FIX,
            _COMMANDS,
            slowed(gain),
        )
    ]  # fmt: skip


def _waited(found: Saturation) -> Evidence:
    text = f"executions spent {found.waiting:.0%} of their time waiting for a worker"
    return Evidence(text, found.waiting, "share", "spans", f"phase = {QUEUED}")


def _all_to_one(timeline: Timeline, done: Executions) -> list[Finding]:
    """One replica did everything, and executions waited there: whether others were idle meanwhile does not show."""
    found = saturation(timeline)
    waiting = found.waiting
    if done.row.size < LEAST_EXECUTIONS or waiting < _WAITING:
        raise CannotJudgeError("only one replica was observed")
    (name,) = done.replicas
    if found.used < _USED:
        return [_idle(found, f"{name} is the only replica that answered")]
    return [
        Finding(
            NAME,
            f"All {done.row.size:,} executions went to one replica, and waited there",
            _ONLY_ONE,
            (
                Evidence(f"{name} is the only replica that answered", 1.0, "replicas", "spans", f"node = {name}"),
                _waited(found),
            ),
            "See whether the runtime has more replicas than this one. If it has, let the load balancer use them: "
            "least connections, and clients that open new connections.",
            ("kubectl get deployments,endpointslices -A | grep runtime",),
            slowed(waiting / 2),  # with a second replica, which is the least that there may be
        )
    ]  # fmt: skip


def _inferred(timeline: Timeline) -> list[Finding]:
    """Without replica names: were workers idle while executions waited, throughout or in the end?"""
    found = saturation(timeline)
    if len(timeline.runs) >= LEAST_RUNS and found.waiting >= _WAITING and found.used < _USED:
        return [_idle(found, f"since {UNNAMED}")]
    end = unnamed_tail(timeline)
    if end is None:
        raise CannotJudgeError(UNNAMED)
    if not uneven(end):
        raise CannotJudgeError(f"{UNNAMED}; the executions' timing shows no imbalance")
    return [_by_timing(end, f"since {UNNAMED}")]


def _idle(found: Saturation, since: str) -> Finding:
    # Spread over all workers, work is done 1 / used times as fast, and the wait shrinks to `used`. Where usually a
    # single one works of several, the load balancer uses only that one, and how many others there are does not show.
    saved = 1.0 if found.workers == 1 and found.most >= _OF_SEVERAL else 1 - found.used
    return Finding(
        NAME,
        f"The load seems unbalanced: {1 - found.used:.0%} of the workers were idle while executions waited",
        _LIKELY if found.used < _FEW_USED else 0.6,
        (
            Evidence(
                f"inferred from timing, {since}: while as many executions were open as once computed at a "
                f"time, only {found.used:.0%} of the workers computed or loaded",
                found.used, "share", "spans", "phase = compute",
            ),
            _waited(found),
        ),
        _FIX,
        _COMMANDS,
        slowed(found.waiting * saved),
    )  # fmt: skip


def _within(timeline: Timeline, replicas: Sequence[str]) -> list[Finding]:
    """With evenly loaded replicas: at which of them had some workers work left when most had none, for longest?"""
    tails = [tail for name in replicas if (tail := unnamed_tail(timeline, name)) is not None]
    crowded = [tail for tail in tails if tail.level >= _SEVERAL and uneven(tail)]
    if not crowded:
        return []
    worst = max(crowded, key=lambda tail: tail.tail_s)
    return [_by_timing(worst, "since replicas are evenly loaded and nothing names the workers within them")]


def _within_even(timeline: Timeline) -> list[Finding]:
    """With replicas that no answer names: did some workers have work left when most had none?"""
    end = unnamed_tail(timeline)
    return [_by_timing(end, f"since {UNNAMED}")] if end is not None and uneven(end) else []


def _by_timing(end: DrainTail, since: str) -> Finding:
    share, tail = end.tail_s / max(end.over_s, 1e-9), format_duration(end.tail_s)
    return Finding(
        NAME,
        f"The load seems unbalanced: most workers were idle in the last {tail}",
        0.6,
        (
            Evidence(
                f"inferred from timing, {since}: {end.level:.0f} executions ran at once, fewer than "
                f"half as many in the last {tail} of {format_duration(end.over_s)}; one execution takes "
                f"{format_duration(end.computing_s)} (p95)",
                share,
                "share",
                "spans",
                "phase = compute",
            ),
        ),
        _FIX,
        _COMMANDS,
        slowed(share / 2),  # half of the workers and more are idle in the tail, and only there
    )
