"""Executions queue at one replica, or wait while workers are idle: the load balancer does not spread them evenly."""

from collections.abc import Sequence

import numpy as np

from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.saturation import Saturation, saturation
from harness.analysis.services.service_replicas import ServiceReplicas, service_replicas
from harness.analysis.services.workers import gini
from harness.analysis.timeline import Timeline
from harness.detectors.detector import CannotJudgeError, Capability, by_chance, counted, format_duration, slowed
from harness.detectors.services.replicas import LEAST_EXECUTIONS, LEAST_RUNS, UNNAMED, DrainTail, uneven, unnamed_tail
from harness.model.findings import Evidence, Finding
from harness.model.phases import POD_CPU_CORES, QUEUED

NAME = "lb-imbalance"
NEEDS = (Capability.EXECUTIONS,)
OVERSTATED_EARLY = True  # a replica that got the first executions may be the busiest only for now

_MIN_RATIO = 1.4  # times an equal share
_MAX_CHANCE = 1e-3  # that the busiest replica gets that many of evenly spread executions
_MAX_SHARE_LEFT = 0.5  # of the waits would be left with even load: then what the busiest replica costs shows little
# By default a runtime has one replica: one that did everything is more often alone than favoured.
_CONFIDENCE_OF_ONE_REPLICA = 0.44
_FIX = (
    "Balance by least connections (nginx least_conn, a service mesh) with one worker per replica, so that no busy "
    "worker gets more work. Have the load balancer add the header X-Upstream-Addr to measure imbalance."
)
_COMMANDS = ("kubectl get services,endpointslices -A | grep runtime",)
_UNNAMED_WITHIN = "nothing names the workers of the only replica"
_MIN_WAITING = 0.15  # of the executions' time: shorter waits are none
_MAX_USED = 0.6  # of the workers: with more, nothing is inferred

_MAX_SHARE_USED = 0.3  # of the workers: with fewer, chance hardly explains it
_MIN_REPLICAS = 2  # or workers of one, at least, for one of them to be favoured
_MIN_WORKERS = 3  # workers; of two, one is often alone by chance
_AT_WORK = 0.5  # of the workers had work while executions waited
_CONFIDENCE, _CONFIDENCE_OF_BUSY, _CONFIDENCE_UNMEASURED = 0.9, 0.85, 0.2
# Less than a finding needs to make another one, here a full runtime, less sure.
_CONFIDENCE_UNNAMED, _CONFIDENCE_OF_ONE = 0.44, 0.36  # by default a runtime has one worker
_MIN_AT_ONCE = 1.5  # executions that a replica computes at once: it has several workers


def detect(timeline: Timeline) -> list[Finding]:
    """The replicas' shares of the work, by what the answers name, Kubernetes shows, or only timing suggests."""
    done, shown = executions(timeline), service_replicas(timeline)
    if len(done.replicas) < 2 <= len(shown.pods):
        return _by_cpu(timeline, done, shown)
    if not done.replicas or len(done.replicas) == len(shown.pods) == 1:
        return _inferred(timeline, UNNAMED if not done.replicas else _UNNAMED_WITHIN)
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
            _COMMANDS,
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
    if found.waiting < _MIN_WAITING:
        return in_the_end(timeline, UNNAMED)
    if not shown.cpu_s.size:
        one = [idle(found, f"since {UNNAMED}")] if found.used < _MAX_USED else in_one_replica(found, shown)
        return one or while_idle(found) or in_the_end(timeline, UNNAMED)
    share, equal = float(shown.cpu_s.max() / max(shown.cpu_s.sum(), 1e-9)), 1 / len(shown.pods)
    # So many executions of equal length would scatter as much as these do.
    like = max(1, round(float(done.computing.sum()) ** 2 / max(float((done.computing**2).sum()), 1e-9)))
    chance = float(bdtrc(round(share * like) - 1, like, equal))
    if share < _MIN_RATIO * equal or chance > _MAX_CHANCE:
        return while_idle(found) or in_the_end(timeline, UNNAMED)
    busiest = shown.pods[int(np.argmax(shown.cpu_s))]
    return [
        _finding(
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
            max(gain, 0.1),
        )
    ]  # fmt: skip


def _all_to_one(timeline: Timeline, done: Executions) -> list[Finding]:
    """One replica did everything, and executions waited there: whether others were idle meanwhile does not show."""
    found = saturation(timeline)
    waiting = found.waiting
    if done.row.size < LEAST_EXECUTIONS or waiting < _MIN_WAITING:
        raise CannotJudgeError("only one replica was observed")
    (name,) = done.replicas
    if found.used < _MAX_USED:
        return [idle(found, f"{name} is the only replica that answered")]
    return [
        Finding(
            NAME,
            f"All {done.row.size:,} executions went to one replica, and waited there",
            _CONFIDENCE_OF_ONE_REPLICA,
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
    if len(timeline.runs) >= LEAST_RUNS and found.waiting >= _MIN_WAITING and found.used < _MAX_USED:
        return [idle(found, f"since {unseen}")]
    one_replica = len(service_replicas(timeline).pods) == 1
    return in_the_end(timeline, unseen) or [perhaps(found, unseen, one_replica=one_replica)]


def _finding(title: str, confidence: float, evidence: tuple[Evidence, ...], gain: float, fix: str = _FIX) -> Finding:
    return Finding(NAME, title, confidence, evidence, fix, _COMMANDS, slowed(gain))


def while_idle(found: Saturation) -> list[Finding]:
    """Executions waited while workers were idle, though each replica got its share as far as that shows."""
    gain = found.waiting - found.balanced
    if (
        found.waiting < _MIN_WAITING
        or gain < _MIN_WAITING
        or not found.measured
        or (found.enough and found.covered >= _AT_WORK)
    ):
        return []
    return [
        _finding(
            f"Executions waited for {found.waiting:.0%} of their time, and workers were idle meanwhile",
            _CONFIDENCE,
            (
                waited(found),
                Evidence(
                    f"with {found.most} workers, of which the first free one takes the next execution, they would "
                    f"have waited for {found.balanced:.0%} of their time",
                    found.balanced, "share", "spans",
                ),
            ),
            gain,
        )
    ]  # fmt: skip


def unused(found: Saturation) -> list[Finding]:
    """Executions waited while few of the workers did anything, though each replica got its share of them."""
    if found.waiting - found.balanced < _MIN_WAITING or found.used >= _MAX_USED or not found.measured:
        return []
    return [idle(found, "since each replica got about its share")]


def in_one_replica(found: Saturation, shown: ServiceReplicas) -> list[Finding]:
    """Executions waited, and no more of them computed at once than one of several replicas can."""
    gain = found.waiting - found.balanced
    each = shown.total / max(len(shown.pods), 1)
    if len(shown.pods) < _MIN_REPLICAS or gain < _MIN_WAITING or not found.measured or found.workers > each:
        return []
    return [
        _finding(
            f"The load seems unbalanced: it kept no more workers busy than one of {len(shown.pods)} replicas has",
            _CONFIDENCE_OF_BUSY,
            (
                Evidence(
                    f"{counted(found.workers, 'execution')} computed at once in busy times; {shown.total} workers in "
                    f"{len(shown.pods)} replicas could have",
                    float(found.workers), "workers", "spans", "phase = compute",
                ),
                waited(found),
            ),
            gain,
        )
    ]  # fmt: skip


def idle(found: Saturation, since: str) -> Finding:
    """Few of the workers that there must be computed or loaded while there was work for each."""
    # Spread over all workers, work is done 1 / used times as fast, and the wait shrinks to `used`. Where usually a
    # single one works of several, the load balancer uses only that one, and how many others there are does not show.
    sure = _CONFIDENCE if found.used < _MAX_SHARE_USED else _CONFIDENCE_OF_BUSY
    saved = 1.0 if found.workers == 1 and found.most >= _MIN_WORKERS else 1 - found.used
    return _finding(
        f"The load seems unbalanced: {1 - found.used:.0%} of the workers were idle while executions waited",
        sure if found.measured else _CONFIDENCE_UNMEASURED,
        (
            Evidence(
                f"inferred from timing, {since}: while as many executions were open as once computed at a "
                f"time, only {found.used:.0%} of the workers computed or loaded",
                found.used, "share", "spans", "phase = compute",
            ),
            waited(found),
        ),
        found.waiting * saved,
    )  # fmt: skip


def within_replicas(timeline: Timeline, replicas: Sequence[str]) -> list[Finding]:
    """With evenly loaded replicas: at which of them had some workers work left when most had none, for longest?"""
    tails = [tail for name in replicas if (tail := unnamed_tail(timeline, name)) is not None]
    crowded = [tail for tail in tails if tail.level >= _MIN_AT_ONCE and uneven(tail)]
    if not crowded:
        return []
    worst = max(crowded, key=lambda tail: tail.tail_s)
    return [by_timing(worst, "since replicas are evenly loaded and nothing names the workers within them")]


def in_the_end(timeline: Timeline, unseen: str) -> list[Finding]:
    """Where nothing shows who did the work: did some workers have work left when most had none?"""
    end = unnamed_tail(timeline)
    return [by_timing(end, f"since {unseen}")] if end is not None and uneven(end) else []


def perhaps(found: Saturation, unseen: str, *, one_replica: bool) -> Finding:
    """Executions waited, and nothing shows which of the workers had work: often some get less than their share.

    Args:
        found: how busy workers were.
        unseen: what does not show.
        one_replica: it is known to be the only one.

    Raises:
        CannotJudgeError: hardly any waited, or for the only worker.
    """
    if found.waiting < _MIN_WAITING or not found.measured or found.most < (_MIN_REPLICAS if one_replica else 1):
        raise CannotJudgeError(unseen)
    return _finding(
        "The load may be unbalanced: executions waited, and nothing shows whether all workers had work",
        _CONFIDENCE_UNNAMED if found.most > 1 else _CONFIDENCE_OF_ONE,
        (Evidence(unseen), waited(found)),
        found.waiting / 2,  # with as many workers again to share it, which is the least that there may be
        "See whether all workers have work (kubectl top pods): a kept-alive connection stays with its replica. " + _FIX,
    )


def by_timing(end: DrainTail, since: str) -> Finding:
    """Some workers had executions queued when most had none."""
    share, tail = end.tail_s / max(end.over_s, 1e-9), format_duration(end.tail_s)
    return _finding(
        f"The load seems unbalanced: most workers were idle in the last {tail}",
        _CONFIDENCE_OF_BUSY,
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
        share / 2,  # half of the workers and more are idle in the tail, and only there
    )


def waited(found: Saturation) -> Evidence:
    """How long executions waited."""
    text = f"executions spent {found.waiting:.0%} of their time waiting for a worker"
    return Evidence(text, found.waiting, "share", "spans", f"phase = {QUEUED}")
