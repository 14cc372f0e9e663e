"""The load balancer gives one replica far more than its share, and executions queue there."""

import numpy as np

from harness.analysis.services.executions import executions
from harness.analysis.services.workers import gini
from harness.analysis.timeline import Timeline
from harness.analysis.waits.drain_tail import drain_tail
from harness.detectors.detector import SERVICE, CannotJudgeError, by_chance, slowed
from harness.detectors.slow_worker import LEAST, UNNAMED
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "lb-imbalance"
NEEDS = (SERVICE,)

_MORE = 1.4  # times an equal share
_CHANCE = 1e-4
_LEAST_UNNAMED = 50  # runs
_LONG_TAIL = 6.0  # times one execution's computing (p95): the last executions alone are up to so long
_TAIL = 0.1  # of the whole time


def detect(timeline: Timeline) -> list[Finding]:
    """Executions by replica against an equal share, and how much longer they wait at the busiest."""
    from scipy.stats import binomtest

    done = executions(timeline)
    if not done.replicas:
        return _inferred(timeline)
    named = done.replica >= 0
    counts = np.bincount(done.replica[named], minlength=len(done.replicas))
    if len(done.replicas) < 2:
        raise CannotJudgeError("only one replica was seen: none other took a share")
    busiest, total = int(np.argmax(counts)), int(counts.sum())
    share, equal = float(counts[busiest]) / max(total, 1), 1 / len(done.replicas)
    chance = float(binomtest(int(counts[busiest]), total, equal, alternative="greater").pvalue) if total else 1.0
    if total < LEAST or share < _MORE * equal or chance > _CHANCE:
        return []
    here = done.replica == busiest
    rest = named & ~here
    waited, elsewhere = float(done.queued[here].mean()), float(done.queued[rest].mean()) if rest.any() else 0.0
    if waited <= elsewhere:
        return []  # it is the quicker one, and gets more for it
    whole = float(done.inside.sum())
    lost = (waited - elsewhere) * int(counts[busiest]) / max(whole, 1e-9)
    return [
        Finding(
            NAME,
            f"The load is not balanced: {share:.0%} of the executions went to one of {len(done.replicas)} replicas",
            0.9,
            (
                Evidence(
                    f"{done.replicas[busiest]} did {counts[busiest]:,} of {total:,} executions, {share / equal:.1f} "
                    f"times an equal share ({by_chance(chance)})",
                    share, "share", "spans", f"node = {done.replicas[busiest]}",
                ),
                Evidence(
                    f"executions waited {format_duration(waited)} in its queue and {format_duration(elsewhere)} in "
                    f"the others' (means); Gini of the work: {gini(counts.astype(np.float64)):.2f}",
                    waited, "s", "spans", "phase = runtime queue",
                ),
            ),
            "Balance by least connections (nginx least_conn, a service mesh), and let clients open new connections: "
            "one that is kept open stays with its replica.",
            ("kubectl get services,endpointslices -A | grep runtime",),
            slowed(max(lost, 0.1)),
        )
    ]  # fmt: skip


def _inferred(timeline: Timeline) -> list[Finding]:
    """Without names: did some workers have executions left when most had none?"""
    end = drain_tail(timeline)
    if end is None or len(timeline.runs) < _LEAST_UNNAMED:
        raise CannotJudgeError(UNNAMED)
    share = end.tail_s / max(end.over_s, 1e-9)
    if end.tail_s < _LONG_TAIL * end.computing_s or share < _TAIL:
        raise CannotJudgeError(f"{UNNAMED}; the executions' times don't show any that were left to few workers")
    tail = format_duration(end.tail_s)
    return [
        Finding(
            NAME,
            f"The load seems not to be balanced: in the last {tail} most workers were idle",
            0.6,
            (
                Evidence(
                    f"inferred from times, since {UNNAMED}: {end.level:.0f} executions computed at once, and "
                    f"fewer than half as many in the last {tail} of {format_duration(end.over_s)}, where one takes "
                    f"{format_duration(end.computing_s)} (p95)",
                    share, "share", "spans", "phase = compute",
                ),
            ),
            "Balance by least connections (nginx least_conn, a service mesh), with one worker a replica: then nobody "
            "gives work to who is busy. Let the balancer add X-Upstream-Addr: then it can be measured.",
            ("kubectl get services,endpointslices -A | grep runtime",),
            slowed(share),
        )
    ]  # fmt: skip
