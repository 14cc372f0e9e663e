"""The workflow controller can't keep up: runs wait for their next pod, at the start and between steps."""

import json

import numpy as np

from harness.analysis.timeline import Timeline, distinct
from harness.analysis.waits.critical_path import CriticalPath, critical_path
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.capability import Capability
from harness.detectors.detector import CannotJudgeError, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import CONTROLLER
from harness.model.units import format_duration

NAME = "controller-backlog"
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.WORKFLOWS: "whether a quota held pods back"}
TARGETS = ("kfp",)
# A pod that a quota rejects is retried later, which looks like a slow controller.
EXPLAINED_BY = {"parallelism-cap": 0.0, "quota": 0.1}
FAULTS = ("controller-backlog",)

_SHARE = 0.15
_ARGUMENTS = ("--qps=100", "--burst=150", "--workflow-workers=64")
_TUNE = (
    "Raise QPS, burst and workers of the workflow controller (--qps, --burst, --workflow-workers), give it more CPU, "
    "and shorten the time to live of finished workflows, which it also checks."
)
# A wait that does not depend on the load is for the controller's next look at the workflow: 10 s by default.
_REQUEUE = "Requeue workflows sooner after a change (DEFAULT_REQUEUE_TIME). "
_LOOKS_S = 10.5  # with the request that creates the pod
_LOOKS = (
    "By default it looks at a workflow 10 s after its last look, and the next pod waits for the rest of that time. "
    "With less, it looks more often, which takes time of its workers and requests of its client."
)
# Between two steps a healthy controller takes about a second, and platforms record whole seconds.
_A_POD_S = 2.0
_GROWTH = 2.0


def detect(timeline: Timeline) -> list[Finding]:
    """The time without a pod is long for the number of pods, or it grows."""
    split = waits_so_far(timeline)
    chain = critical_path(timeline)
    alone = split.shares()[CONTROLLER]
    share = max(alone, chain.shares[CONTROLLER])
    # With timestamps of two clocks, one in whole seconds, a wait may come out negative.
    waited = np.maximum(split.of(CONTROLLER), 0.0)
    if share < _SHARE:
        return []
    early, late = (float(each.mean()) for each in quarters(waited))
    pods = distinct(timeline.pods["pod"][timeline.pods["row"] >= 0].to_numpy()) / waited.size
    grows = late > _GROWTH * max(early, _A_POD_S)
    # In a fan-out, other pods of the run live meanwhile.
    behind = chain.gaps_s.size > 0 and float(chain.gaps_s.mean()) >= _A_POD_S
    if waited.mean() < _A_POD_S * max(pods, 1.0) and not grows and not behind:
        return []
    found = startup_delay(timeline)
    if not found.before.size or not found.between.size:
        raise CannotJudgeError("no run with consecutive pods was observed")
    before, between = (max(0.0, float(np.median(each))) for each in (found.before, found.between))
    problem = "can't keep up" if grows else "is slow to start the next step"
    # Workflows of an idle controller start at once, and then wait for the next look after each pod.
    idle = not grows and before < _A_POD_S and between <= _LOOKS_S * max(pods - 1.0, 1.0)
    return [
        Finding(
            NAME,
            f"The workflow controller {problem}: runs spent {share:.0%} of their time waiting for their next pod",
            0.85 if scheduling_wait(timeline).share < share else 0.6,
            (
                _passed(alone, chain),
                Evidence(
                    f"median wait {format_duration(before)} before the first pod and {format_duration(between)} "
                    "between pods",
                    float(np.median(waited)), "s", "spans",
                ),
                Evidence(
                    f"mean wait {format_duration(early)} in the first quarter of the runs, "
                    f"{format_duration(late)} in the last",
                    late, "s", "spans",
                ),
            ),
            _REQUEUE + _LOOKS if idle else _TUNE if grows else _REQUEUE + _TUNE,
            (
                *(() if grows else _requeue(timeline.namespace)),
                *(() if idle else _tune(timeline.namespace)),
            ),
            slowed(share),
        )
    ]  # fmt: skip


def _passed(alone: float, chain: CriticalPath) -> Evidence:
    """How much time the controller took, by runs without a pod or by the chains of pods."""
    if alone >= chain.shares[CONTROLLER]:
        return Evidence(f"{alone:.1%} of all run time passed without a live pod", alone, "share", "spans")
    share, mean = chain.shares[CONTROLLER], float(chain.gaps_s.mean())
    return Evidence(
        f"{share:.1%} of the time of {chain.runs:,} runs passed between a pod's end and the creation of the next one "
        f"that the run's end waited for: {format_duration(mean)} each (mean)",
        share, "share", "spans",
    )  # fmt: skip


def _requeue(namespace: str) -> tuple[str]:
    return (f"kubectl set env deployment/workflow-controller -n {namespace} DEFAULT_REQUEUE_TIME=2s",)


def _tune(namespace: str) -> tuple[str, str]:
    place = "/spec/template/spec/containers/0/args/-"
    patch = json.dumps([{"op": "add", "path": place, "value": value} for value in _ARGUMENTS])
    controller = f"deployment workflow-controller -n {namespace}"
    return (
        f"kubectl get {controller} -o jsonpath='{{.spec.template.spec.containers[0].args}}'",
        f"kubectl patch {controller} --type=json -p '{patch}'",
    )
