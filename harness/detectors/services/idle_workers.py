"""Uneven load as it shows without counts by replica: workers are idle while executions wait."""

from collections.abc import Sequence

from harness.analysis.services.saturation import Saturation
from harness.analysis.services.service_replicas import ServiceReplicas
from harness.analysis.waits.drain_tail import DrainTail
from harness.detectors.detector import CannotJudgeError, Evidence, Finding, Timeline, counted, format_duration, slowed
from harness.detectors.services.replicas import uneven, unnamed_tail
from harness.model.phases import QUEUED

NAME = "lb-imbalance"
FIX = (
    "Balance by least connections (nginx least_conn, a service mesh) with one worker per replica, so that no busy "
    "worker gets more work. Have the load balancer add the header X-Upstream-Addr to measure imbalance."
)
COMMANDS = ("kubectl get services,endpointslices -A | grep runtime",)
WITHIN = "nothing names the workers of the only replica"
WAITING = 0.15  # of the executions' time: shorter waits are none
USED = 0.6  # of the workers: with more, nothing is inferred

_MAX_SHARE_USED = 0.3  # of the workers: with fewer, chance hardly explains it
_MIN_REPLICAS = 2  # or workers of one, at least, for one of them to be favoured
_MIN_WORKERS = 3  # workers; of two, one is often alone by chance
_AT_WORK = 0.5  # of the workers had work while executions waited
_CONFIDENCE, _CONFIDENCE_OF_BUSY, _CONFIDENCE_UNMEASURED = 0.9, 0.85, 0.2
# Less than a finding needs to make another one, here a full runtime, less sure.
_CONFIDENCE_UNNAMED, _CONFIDENCE_OF_ONE = 0.44, 0.36  # by default a runtime has one worker
_MIN_AT_ONCE = 1.5  # executions that a replica computes at once: it has several workers


def while_idle(found: Saturation) -> list[Finding]:
    """Executions waited while workers were idle, though each replica got its share as far as that shows."""
    gain = found.waiting - found.balanced
    if found.waiting < WAITING or gain < WAITING or not found.measured or (found.enough and found.covered >= _AT_WORK):
        return []
    return [
        Finding(
            NAME,
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
            FIX,
            COMMANDS,
            slowed(gain),
        )
    ]  # fmt: skip


def unused(found: Saturation) -> list[Finding]:
    """Executions waited while few of the workers did anything, though each replica got its share of them."""
    if found.waiting - found.balanced < WAITING or found.used >= USED or not found.measured:
        return []
    return [idle(found, "since each replica got about its share")]


def in_one_replica(found: Saturation, shown: ServiceReplicas) -> list[Finding]:
    """Executions waited, and no more of them computed at once than one of several replicas can."""
    gain = found.waiting - found.balanced
    each = shown.total / max(len(shown.pods), 1)
    if len(shown.pods) < _MIN_REPLICAS or gain < WAITING or not found.measured or found.workers > each:
        return []
    return [
        Finding(
            NAME,
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
            FIX,
            COMMANDS,
            slowed(gain),
        )
    ]  # fmt: skip


def idle(found: Saturation, since: str) -> Finding:
    """Few of the workers that there must be computed or loaded while there was work for each."""
    # Spread over all workers, work is done 1 / used times as fast, and the wait shrinks to `used`. Where usually a
    # single one works of several, the load balancer uses only that one, and how many others there are does not show.
    sure = _CONFIDENCE if found.used < _MAX_SHARE_USED else _CONFIDENCE_OF_BUSY
    saved = 1.0 if found.workers == 1 and found.most >= _MIN_WORKERS else 1 - found.used
    return Finding(
        NAME,
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
        FIX,
        COMMANDS,
        slowed(found.waiting * saved),
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
    if found.waiting < WAITING or not found.measured or found.most < (_MIN_REPLICAS if one_replica else 1):
        raise CannotJudgeError(unseen)
    return Finding(
        NAME,
        "The load may be unbalanced: executions waited, and nothing shows whether all workers had work",
        _CONFIDENCE_UNNAMED if found.most > 1 else _CONFIDENCE_OF_ONE,
        (Evidence(unseen), waited(found)),
        "See whether all workers have work (kubectl top pods): a kept-alive connection stays with its replica. " + FIX,
        COMMANDS,
        slowed(found.waiting / 2),  # with as many workers again to share it, which is the least that there may be
    )


def by_timing(end: DrainTail, since: str) -> Finding:
    """Some workers had executions queued when most had none."""
    share, tail = end.tail_s / max(end.over_s, 1e-9), format_duration(end.tail_s)
    return Finding(
        NAME,
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
        FIX,
        COMMANDS,
        slowed(share / 2),  # half of the workers and more are idle in the tail, and only there
    )


def waited(found: Saturation) -> Evidence:
    """How long executions waited."""
    text = f"executions spent {found.waiting:.0%} of their time waiting for a worker"
    return Evidence(text, found.waiting, "share", "spans", f"phase = {QUEUED}")
