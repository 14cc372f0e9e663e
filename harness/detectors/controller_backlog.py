"""The workflow controller can't keep up: runs wait for their pods to be created, at the start and between steps."""

import json

import numpy as np

from harness.analysis.timeline import Timeline, distinct
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.waits import waits_so_far
from harness.detectors import parallelism_cap, quota
from harness.detectors.detector import PODS, RUNS, CannotJudgeError, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import CONTROLLER
from harness.model.units import format_duration

NAME = "controller-backlog"
NEEDS = (RUNS, PODS)
TARGETS = ("kfp",)

_SHARE = 0.15
_ARGUMENTS = ("--qps=100", "--burst=150", "--workflow-workers=64")
_MORE = (
    "Give the controller more workers and a higher client rate (--workflow-workers, --qps, --burst), more CPU, and "
    "fewer finished workflows to look at (a shorter time to live)."
)
# As it waits alike however many runs there are, it is for its next look at the workflow: after 10 s by default.
_SOONER = "Let the controller look at a workflow sooner after a change (DEFAULT_REQUEUE_TIME). "
# Between two steps a healthy controller takes about a second, and platforms stamp whole seconds.
_A_POD_S = 2.0
_GROWTH = 2.0


def detect(timeline: Timeline) -> list[Finding]:
    """The time with no pod is large for the number of pods or grows, and no cap on parallel runs explains it."""
    split = waits_so_far(timeline)
    share = split.shares()[CONTROLLER]
    # With stamps of two clocks, one in whole seconds, a wait may come out below none.
    waited = np.maximum(split.of(CONTROLLER), 0.0)
    if share < _SHARE or parallelism_cap.detect(timeline):
        return []
    early, late = (float(each.mean()) for each in quarters(waited))
    pods = distinct(timeline.pods["pod"][timeline.pods["row"] >= 0].to_numpy()) / waited.size
    grows = late > _GROWTH * max(early, _A_POD_S)
    if waited.mean() < _A_POD_S * max(pods, 1.0) and not grows:
        return []
    found = startup_delay(timeline)
    if not found.before.size or not found.between.size:
        raise CannotJudgeError("no run was seen with one pod after another")
    before, between = (max(0.0, float(np.median(each))) for each in (found.before, found.between))
    what = "can't keep up" if grows else "is slow to start the next step"
    return [
        Finding(
            NAME,
            f"The workflow controller {what}: runs spent {share:.0%} of their time waiting for their next pod",
            _confidence(timeline, share),
            (
                Evidence(f"{share:.1%} of the runs' time passed with no pod of theirs alive", share, "share", "spans"),
                Evidence(
                    f"typically {format_duration(before)} before the first pod and {format_duration(between)} between "
                    "pods",
                    float(np.median(waited)), "s", "spans",
                ),
                Evidence(
                    f"it went from {format_duration(early)} (first quarter of the runs) to "
                    f"{format_duration(late)} (last)",
                    late, "s", "spans",
                ),
            ),
            _MORE if grows else _SOONER + _MORE,
            (*(() if grows else _sooner(timeline.namespace)), *_more(timeline.namespace)),
            slowed(share),
        )
    ]  # fmt: skip


def _confidence(timeline: Timeline, share: float) -> float:
    """A pod that a quota refuses is tried again later: what looks like a slow controller is the quota then."""
    try:
        refused = bool(quota.detect(timeline))
    except CannotJudgeError:
        refused = False
    if refused:
        return 0.3
    return 0.85 if scheduling_wait(timeline).share < share else 0.6


def _sooner(namespace: str) -> tuple[str]:
    return (f"kubectl set env deployment/workflow-controller -n {namespace} DEFAULT_REQUEUE_TIME=2s",)


def _more(namespace: str) -> tuple[str, str]:
    place = "/spec/template/spec/containers/0/args/-"
    patch = json.dumps([{"op": "add", "path": place, "value": value} for value in _ARGUMENTS])
    controller = f"deployment workflow-controller -n {namespace}"
    return (
        f"kubectl get {controller} -o jsonpath='{{.spec.template.spec.containers[0].args}}'",
        f"kubectl patch {controller} --type=json -p '{patch}'",
    )
