"""A runtime service is full: every worker is busy while executions wait."""

from collections.abc import Iterator

import numpy as np

from harness.analysis.services.executions import executions
from harness.analysis.services.saturation import Saturation, saturation
from harness.analysis.timeline import Timeline, floats
from harness.detectors.capability import Capability
from harness.detectors.detector import CannotJudgeError, slowed
from harness.detectors.replicas import LEAST_EXECUTIONS
from harness.model.findings import Evidence, Finding
from harness.model.phases import QUEUED
from harness.model.units import counted, format_duration

NAME = "runtime-saturated"
NEEDS = (Capability.EXECUTIONS,)
# Workers of one replica that gets too much are busy, and those of the others are not. Workers that mostly load may wait
# for the same adapters if there are more of them.
EXPLAINED_BY = {"lb-imbalance": 0.5, "adapter-slow": 0.6}
NOT_INJECTED = "it is a property of the load and of the number of workers"

_SHARE = 0.15  # of the executions' time
_COVERED, _SOME = 0.5, 0.25  # of the workers: with fewer at work while others wait, the load is unbalanced
_SURE, _ONE_REPLICA, _UNEVEN = 0.85, 0.6, 0.5  # where one replica or worker did everything, others may be idle
_LEFT = 0.1  # of the wait remains with several times the workers


def detect(timeline: Timeline) -> list[Finding]:
    """Executions wait for a worker while all of the workers have work."""
    found, done = saturation(timeline), executions(timeline)
    if done.row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    if found.waiting < _SHARE or found.covered < _SOME:
        return []
    sure = _SURE if found.covered >= _COVERED else _UNEVEN
    alone = len(done.replicas) == 1 or (not done.replicas and found.workers == 1)
    return [
        Finding(
            NAME,
            f"The runtime is full: executions spent {found.waiting:.0%} of their time waiting for a worker",
            min(sure, _ONE_REPLICA) if alone else sure,
            tuple(_evidence(timeline, found)),
            "Run more replicas of the runtime or more workers in each, on nodes with cores for them, or send less at "
            "once." + _one_replica(done.replicas),
            ("kubectl get deployments -A | grep runtime", "kubectl top pods -A | grep runtime"),
            slowed(found.waiting * (1 - _LEFT)),
        )
    ]


def _one_replica(replicas: tuple[str, ...]) -> str:
    if len(replicas) != 1:
        return ""
    return f" All executions went to {replicas[0]}: if others are running, the load balancer does not use them."


def _evidence(timeline: Timeline, found: Saturation) -> Iterator[Evidence]:
    yield Evidence(
        f"executions waited for a worker for {found.waiting:.0%} of the runs' time, in the queue or between steps",
        found.waiting, "share", "spans", f"phase = {QUEUED}",
    )  # fmt: skip
    yield Evidence(
        f"{counted(found.workers, 'execution')} computed at once in busy times; {found.covered:.0%} of as many "
        "workers had work while others waited",
        found.covered, "share", "spans",
    )  # fmt: skip
    done = executions(timeline)
    took = (floats(timeline.runs, "over_s") - floats(timeline.runs, "sent_s"))[done.row]
    took = took[np.isfinite(took)]  # some are not over, or when they were sent was not recorded
    if took.size:
        mean, work = float(took.mean()), float(done.computing.mean())
        words = f"an execution took {format_duration(mean)}, its computing {format_duration(work)} (means)"
        yield Evidence(words, mean, "s", "spans")
