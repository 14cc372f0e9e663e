"""A runtime service is full: every worker is busy while executions wait."""

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
# Workers of one replica that gets too much are busy, and those of the others are not. Workers that mostly load would
# wait for the same adapters if there were more of them.
EXPLAINED_BY = {"lb-imbalance": 0.45, "adapter-slow": 0.45}
NOT_INJECTED = "it is a property of the load and of the number of workers"

_SHARE = 0.15  # of the executions' time
_COVERED = 0.5  # of the workers: with fewer at work while others wait, the load is unbalanced
_SURE, _ONE_REPLICA = 0.85, 0.6  # where one replica did everything, others may be idle
_LEFT = 0.1  # of the wait remains with several times the workers
_COMPUTING = 0.5  # of the workers' time: with less, more workers would wait for the same adapters


def detect(timeline: Timeline) -> list[Finding]:
    """Executions wait for a worker while all of the workers have work."""
    found, done = saturation(timeline), executions(timeline)
    if done.row.size < LEAST_EXECUTIONS:
        raise CannotJudgeError(f"fewer than {LEAST_EXECUTIONS} executions reported their phases")
    if found.waiting < _SHARE or found.covered < _COVERED:
        return []
    gain = found.waiting * (1 - _LEFT) * min(1.0, found.computing / _COMPUTING)
    return [
        Finding(
            NAME,
            f"The runtime is full: executions spent {found.waiting:.0%} of their time waiting for a worker",
            _SURE if len(done.replicas) != 1 else _ONE_REPLICA,
            _evidence(timeline, found),
            "Run more replicas of the runtime or more workers in each, on nodes with cores for them, or send less at "
            "once." + _one_replica(done.replicas),
            ("kubectl get deployments -A | grep runtime", "kubectl top pods -A | grep runtime"),
            slowed(gain),
        )
    ]


def _one_replica(replicas: tuple[str, ...]) -> str:
    if len(replicas) != 1:
        return ""
    return f" All executions went to {replicas[0]}: if others are running, the load balancer does not use them."


def _evidence(timeline: Timeline, found: Saturation) -> tuple[Evidence, ...]:
    done, where = executions(timeline), f"phase = {QUEUED}"
    took = float((floats(timeline.runs, "over_s") - floats(timeline.runs, "sent_s"))[done.row].mean())
    work = float(done.computing.mean())
    return (
        Evidence(
            f"executions waited for a worker for {found.waiting:.0%} of the runs' time, in the queue or between steps",
            found.waiting, "share", "spans", where,
        ),
        Evidence(
            f"{counted(found.workers, 'execution')} computed at once in busy times; {found.covered:.0%} of as many "
            "workers had work while others waited",
            found.covered, "share", "spans",
        ),
        Evidence(
            f"an execution took {format_duration(took)}, its computing {format_duration(work)} (means)",
            took, "s", "spans",
        ),
    )  # fmt: skip
