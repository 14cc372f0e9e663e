"""A workflow controller that is slow: how much time it costs, what holds it up, and how its settings are changed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, distinct, remembered
from harness.analysis.waits.controller_limit import SOON_S, Limit, symptoms
from harness.analysis.waits.critical_path import CriticalPath, critical_path
from harness.analysis.waits.outage import outage
from harness.analysis.waits.quota_use import used_up
from harness.analysis.waits.quota_waits import quota_waits
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.stated import unstated
from harness.analysis.waits.waits import waits_so_far
from harness.analysis.waits.workflow_limits import as_good, settings
from harness.detectors.detector import CannotJudgeError, Capability, format_duration, quarters, shell_word, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import ARGUMENTS, CONTROLLER, PUBLISHING, REQUEUE_TIME

# Each creation of a pod that waits for a webhook holds a worker meanwhile, and spaces the client's requests.
WEBHOOK = {"webhook-slow": 0.3}
# What holds workflows back without the controller being slow, with the confidence that then remains. Steps that
# can't write their outputs are repeated after a pause.
HELD = {
    "lock-wait": 0.1,
    "workflows-postponed": 0.1,
    "store-full": 0.1,
    "store-unreachable-from-old-nodes": 0.1,
    **WEBHOOK,
}

BY_WORKFLOWS = {"argo", "kfp"}  # targets whose pods workflows create: Argo writes no event about a rejected one

_MIN_SHARE_OF_TIME, _CERTAIN_SHARE = 0.12, 0.15
# What a quick controller takes between two steps; platforms record whole seconds.
_A_POD_S, _USUAL_S = 2.0, 0.5
_RESOLUTION_S = 1.0  # of Kubernetes' stamps
_REQUEST_S = 0.5  # that creates a pod
_MAX_LONGER = 0.12  # of the time between pods passes in longer waits: something else holds the controller up, too
_MIN_GROWTH = 2.0  # times as long at the end as at the beginning: a queue grows, not only varies
_NOTHING = 1e-9  # keeps a division from 0
_CONTROLLER = "workflow-controller"


@dataclass(frozen=True, slots=True)
class SlowController:
    """A controller that takes much of the runs' time.

    Attributes:
        limit: what holds it up.
        share: of the runs' time.
        confidence: that this is the controller's doing.
        grows: later runs wait much longer than the first ones.
        evidence: for its slowness.
    """

    limit: Limit
    share: float
    confidence: float
    grows: bool
    evidence: tuple[Evidence, ...]


@remembered
def slow_controller(timeline: Timeline) -> SlowController | None:
    """Whether the time without a pod is long for the number of pods, or grows; none if neither.

    Raises:
        CannotJudgeError: no run had consecutive pods.
    """
    chain, delay, waited = critical_path(timeline), startup_delay(timeline), _waited(timeline)
    pods = distinct(timeline.pods["pod"].to_numpy()[timeline.pods["row"].to_numpy() >= 0]) / max(waited.size, 1)
    by_run, by_chain = waited / max(pods, 1.0), chain.gaps_s  # in a fan-out, other pods of the run live meanwhile
    a_pod_s = max(float(each.mean()) for each in (by_run, by_chain, np.zeros(1)) if each.size)
    down = outage(timeline)
    told = waits_so_far(timeline).shares()[CONTROLLER] * (1 - unstated(timeline)[CONTROLLER])
    full = max((each.share for each in used_up(timeline)), default=0.0)
    held = max(quota_waits(timeline), full, told) + (down.share if down else 0.0)
    own = max(0.0, (whole := _share(timeline)) - held)
    a_pod_s *= own / max(whole, _NOTHING)
    seen = symptoms(timeline)
    # The rest, no setting saves; at the client's rate, steps wait for tokens in each gap.
    share = own * (1.0 if seen.at_client_rate else 1 - _USUAL_S / max(a_pod_s, _USUAL_S))
    if share < _MIN_SHARE_OF_TIME:
        return None
    early, late = (float(quarter.mean()) for quarter in quarters(waited))
    grows = late > _MIN_GROWTH * max(early, _A_POD_S)
    if a_pod_s < _A_POD_S and not grows and not seen.at_client_rate:
        return None
    if not delay.before.size or not delay.between.size:
        raise CannotJudgeError("no run with consecutive pods was observed")
    before, between = (max(0.0, float(np.median(each))) for each in (delay.before, delay.between))
    # Workflows of an idle controller start at once, and then wait for the next look after each pod.
    looks_s = seen.looks_s + _REQUEST_S
    in_time = float(by_chain[by_chain > looks_s + _RESOLUTION_S].sum()) <= _MAX_LONGER * float(by_chain.sum())
    idle = not grows and before < _A_POD_S and between <= looks_s * max(pods - 1.0, 1.0) and in_time
    limit = seen.limit(idle=idle, late_start=before >= _A_POD_S and not delay.capped)
    return SlowController(
        limit,
        share,
        _confidence(timeline, share, limit),
        grows,
        (
            _passed(timeline, chain),
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
            *_told(timeline),
        ),
    )  # fmt: skip


def _told(timeline: Timeline) -> tuple[Evidence, ...]:
    """The settings that its pod shows, where they are known."""
    known = settings(timeline)
    words = ", ".join(f"{name} {value:g}{' s' if name == REQUEUE_TIME else ''}" for name, value in known.items())
    text = f"the controller runs with {words}"
    return (Evidence(text, None, "", "events", f"reason = {ARGUMENTS}"),) if known else ()


def distinguished(timeline: Timeline) -> SlowController | None:
    """The slow controller with its limit distinguished.

    Raises:
        CannotJudgeError: the controller is slow, and nothing that was observed says why.
    """
    slow = slow_controller(timeline)
    if slow is not None and slow.limit is Limit.UNKNOWN and not symptoms(timeline).measured:
        raise CannotJudgeError(
            "the controller is slow, and neither its metrics (--metrics argo=… or Prometheus) nor enough nodes of "
            "workflows were recorded to say why"
        )
    return slow


def finding(
    name: str, slow: SlowController, problem: str, fix: str, commands: tuple[str, ...],
    confidence: float | None = None, evidence: Iterable[Evidence] = (),
) -> Finding:  # fmt: skip
    """What a slow controller costs, with evidence of what limits it before that of its slowness."""
    title = f"The workflow controller {problem}: runs spent {slow.share:.0%} of their time waiting for their next pod"
    sure = slow.confidence if confidence is None else confidence
    return Finding(name, title, sure, (*evidence, *slow.evidence), fix, commands, slowed(slow.share))


def namespace(timeline: Timeline) -> str:
    """The controller's, as a word of a command: where it was seen, else the platform's."""
    events = timeline.events
    seen = events["namespace"].astype(str)[events["object"].str.startswith(_CONTROLLER).to_numpy(dtype=bool)]
    return shell_word(next((name for name in seen if name), timeline.plan.observer.platform_namespaces[0]))


def requeue(timeline: Timeline) -> tuple[str, ...]:
    """Let the controller look at changed workflows sooner; none where it does already."""
    if as_good(timeline, REQUEUE_TIME, SOON_S):
        return ()
    return (f"kubectl set env deployment/workflow-controller -n {namespace(timeline)} DEFAULT_REQUEUE_TIME=2s",)


def tune(timeline: Timeline, wanted: Mapping[str, int]) -> tuple[str, ...]:
    """Show the controller's arguments, and add these, which count more than those before them.

    What it has already, or more of it, is not added.
    """
    place = "/spec/template/spec/containers/0/args/-"
    missing = [f"{name}={value}" for name, value in wanted.items() if not as_good(timeline, name, value)]
    patch = json.dumps([{"op": "add", "path": place, "value": value} for value in missing])
    controller = f"deployment workflow-controller -n {namespace(timeline)}"
    show = f"kubectl get {controller} -o jsonpath='{{.spec.template.spec.containers[0].args}}'"
    return (show, f"kubectl patch {controller} --type=json -p '{patch}'") if missing else (show,)


def _confidence(timeline: Timeline, share: float, limit: Limit) -> float:
    """Pods may wait for other reasons: nodes, or a quota, which only workflows show, and of which few are read.

    Gaps between pods alone look the same under many causes; its metrics tell more, and the time to its next look that
    it states.
    """
    if not Capability.WORKFLOWS.observed(timeline):
        return 0.6
    if share < _CERTAIN_SHARE or quota_waits(timeline) > 0:
        return 0.7
    if limit is Limit.UNKNOWN or not (
        symptoms(timeline).measured or (limit is Limit.LOOKS and REQUEUE_TIME in settings(timeline))
    ):
        return 0.7
    return 0.85 if scheduling_wait(timeline).share < share else 0.75


def _waited(timeline: Timeline) -> Floats:
    """Seconds by run that it waited for its next pod; without the wait for a slot where their number is limited."""
    # With timestamps of two clocks, one in whole seconds, a wait may come out negative.
    waited = np.maximum(waits_so_far(timeline).of(CONTROLLER), 0.0)
    delay = startup_delay(timeline)
    return np.maximum(waited - delay.before.mean(), 0.0) if delay.capped else waited


def _share(timeline: Timeline) -> float:
    """The share of the runs' time that the controller took: for their pods, and to notice that the last one ended."""
    shares, chain, delay = waits_so_far(timeline).shares(), critical_path(timeline).shares, startup_delay(timeline)
    ending = max(shares[PUBLISHING], 0.0)
    return (chain[CONTROLLER] if delay.capped else max(shares[CONTROLLER], chain[CONTROLLER])) + ending


def _passed(timeline: Timeline, chain: CriticalPath) -> Evidence:
    """How much time the controller took, by runs without a pod or by the chains of pods."""
    alone = waits_so_far(timeline).shares()[CONTROLLER]
    if alone >= chain.shares[CONTROLLER]:
        return Evidence(f"{alone:.1%} of all run time passed without a live pod", alone, "share", "spans")
    share, mean = chain.shares[CONTROLLER], float(chain.gaps_s.mean())
    return Evidence(
        f"{share:.1%} of the time of {chain.runs:,} runs passed between a pod's end and the creation of the next one "
        f"that the run's end waited for: {format_duration(mean)} each (mean)",
        share, "share", "spans",
    )  # fmt: skip
