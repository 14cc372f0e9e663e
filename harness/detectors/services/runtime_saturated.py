"""A runtime service is full: every worker is busy while executions wait, or they lack the cores to compute."""

from collections.abc import Iterator

import numpy as np

from harness.analysis.services.contention import Contention, contention
from harness.analysis.services.executions import executions
from harness.analysis.services.replay import Replay, replay
from harness.analysis.services.saturation import Saturation, saturation
from harness.analysis.services.service_replicas import service_replicas
from harness.analysis.waits.waits import waits
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, by_chance, floats, slowed
from harness.detectors.services.replicas import LEAST_EXECUTIONS
from harness.model import Evidence, Finding, counted, format_duration
from harness.model.phases import COMPUTING, QUEUED

NAME = "runtime-saturated"
NEEDS = (Capability.EXECUTIONS,)
# Workers of one replica that gets too much are busy, and those of the others are not. Workers that mostly load may wait
# for the same adapters if there are more of them.
EXPLAINED_BY = {"lb-imbalance": 0.57, "adapter-slow": 0.75}
_COMMANDS = ("kubectl get deployments -A | grep runtime", "kubectl top pods -A | grep runtime")

_MIN_SHARE = 0.1  # of the executions' time
_MOST_AT_WORK, _FEWEST_AT_WORK = 0.5, 0.25  # of the workers: with fewer while others wait, the load is unbalanced
# Where one replica or worker did everything, others may be idle.
_CONFIDENCE, _CONFIDENCE_OF_ONE, _CONFIDENCE_IF_UNEVEN = 0.93, 0.7, 0.75
_CONFIDENCE_UNMEASURED = 0.12  # where most of the wait is inferred from long loads: they may be slow
_SHARE_LEFT = 0.1  # of the wait remains with several times the workers


def detect(timeline: Timeline) -> list[Finding]:
    """Executions wait for a worker while all of the workers have work, or slow each other down for want of cores."""
    if executions(timeline).row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    shared = contention(timeline)
    lost = _lost(timeline, shared) if shared.likely else 0.0
    found = saturation(timeline)
    if found.in_one:
        return []  # more replicas would be as idle as those that there are
    if found.waiting >= _MIN_SHARE and found.covered >= _FEWEST_AT_WORK and (found.measured or lost < _MIN_SHARE):
        return [_full(timeline, found, lost)]
    return [_crowded(timeline, shared, lost)] if lost >= _MIN_SHARE else []


def _lost(timeline: Timeline, shared: Contention) -> float:
    """Share of the runs' time that executions computed longer because others did."""
    computing_s = float(executions(timeline).computing.sum())
    return shared.lost * computing_s / max(float(waits(timeline).total.sum()), 1e-9)


def _full(timeline: Timeline, found: Saturation, lost: float) -> Finding:
    done = executions(timeline)
    sure = _CONFIDENCE if found.covered >= _MOST_AT_WORK else _CONFIDENCE_IF_UNEVEN
    replayed = replay(timeline)
    alone = len(done.replicas) == 1 or (not done.replicas and found.workers == 1)
    return Finding(
        NAME,
        f"The runtime is full: executions spent {found.waiting:.0%} of their time waiting for a worker",
        (min(sure, _CONFIDENCE_OF_ONE) if alone else sure) if found.measured else _CONFIDENCE_UNMEASURED,
        tuple(_evidence(timeline, found, replayed)),
        "Run more replicas of the runtime or more workers in each, on nodes with cores for them, or send less at "
        "once." + _first_look(timeline),
        _COMMANDS,
        slowed(replayed.more_workers if replayed is not None else min(1.0, found.waiting * (1 - _SHARE_LEFT) + lost)),
    )


def _crowded(timeline: Timeline, shared: Contention, lost: float) -> Finding:
    """There are workers enough, but no cores for them."""
    return Finding(
        NAME,
        f"The runtime lacks CPU: executions that compute at once took {1 / (1 - shared.lost):.1f} times as long",
        _CONFIDENCE,
        tuple(_crowded_evidence(timeline, shared, lost)),
        "Run the runtime on more cores: more nodes, or replicas on nodes of their own; or send less at once. More "
        "workers on the same nodes would share the same cores.",
        _COMMANDS,
        slowed(min(1.0, lost)),
    )


def _crowded_evidence(timeline: Timeline, shared: Contention, lost: float) -> Iterator[Evidence]:
    yield Evidence(
        f"computing took the longer the more computed at the same time, as if they shared {shared.cores:.1f} cores "
        f"({by_chance(shared.p)} if each computed as long as it needs)",
        shared.cores, "cores", "spans", f"phase = {COMPUTING}",
    )  # fmt: skip
    yield Evidence(f"that took {lost:.0%} of the runs' time", lost, "share", "spans", f"phase = {COMPUTING}")
    yield from _durations(timeline)


def _first_look(timeline: Timeline) -> str:
    """What to rule out before, where nothing shows whether all replicas had work."""
    replicas = executions(timeline).replicas
    if len(replicas) == 1:
        return f" All executions went to {replicas[0]}: if others are running, the load balancer does not use them."
    if replicas or service_replicas(timeline).pods:
        return ""
    return (
        " First see whether all of its replicas have work: neither answers nor Kubernetes show them here, and a load "
        "balancer that uses only some of them looks the same."
    )


def _evidence(timeline: Timeline, found: Saturation, replayed: Replay | None) -> Iterator[Evidence]:
    yield Evidence(
        f"executions waited for a worker for {found.waiting:.0%} of the runs' time, in the queue or between steps",
        found.waiting, "share", "spans", f"phase = {QUEUED}",
    )  # fmt: skip
    yield Evidence(
        f"{counted(found.workers, 'execution')} computed at once in busy times; {found.covered:.0%} of as many "
        "workers had work while others waited",
        found.covered, "share", "spans",
    )  # fmt: skip
    if replayed is not None:
        text = f"in a replay with four times the replicas, the runs take {replayed.more_workers:.0%} less time"
        yield Evidence(text, replayed.more_workers, "share", "spans")
    yield from _durations(timeline)


def _durations(timeline: Timeline) -> Iterator[Evidence]:
    done = executions(timeline)
    took = (floats(timeline.runs, "over_s") - floats(timeline.runs, "sent_s"))[done.row]
    took = took[np.isfinite(took)]  # some are not over, or when they were sent was not recorded
    if took.size:
        mean, work = float(took.mean()), float(done.computing.mean())
        words = f"an execution took {format_duration(mean)}, its computing {format_duration(work)} (means)"
        yield Evidence(words, mean, "s", "spans")
