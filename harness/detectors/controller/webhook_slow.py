"""Pods are created slowly, while the API server answers everything else at once: an admission webhook is slow."""

import numpy as np

from harness.analysis.timeline import Timeline, distinct
from harness.analysis.waits.controller_limit import REQUEST_S, request_times
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import CannotJudgeError, Capability, Evidence, Finding, format_duration, slowed
from harness.model.phases import CONTROLLER, SCHEDULING

NAME = "webhook-slow"
SEEN = ("real: webhook-slow",)
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.CONTROLLER: "how long the API server takes for each kind of request"}
TARGETS = ("kfp", "argo")

_CREATE = ("pods", "Create")
_MIN_S = 1.0  # Kubernetes' own objective for a call that changes one object (p99)
_MIN_RATIO = 4  # as long as the median of other requests
_MIN_SHARE = 0.05  # of the runs' time
_MIN_PODS, _QUANTILE = 10, 0.1
_MAX_SPREAD = 1.5  # what is behind, a scheduler or the API server, takes longer for later pods
_FIX = (
    "Find the webhook that the API server asks about pods, and what it waits for: give it replicas and CPU, let it "
    "answer without calls to other services, or leave the runs' namespace or pods out (namespaceSelector, "
    "objectSelector)."
)
_COMMANDS = (
    "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations",
    "kubectl get --raw /metrics | grep apiserver_admission_webhook_admission_duration_seconds_sum",
)


def detect(timeline: Timeline) -> list[Finding]:
    """The controller's requests for pods are slow, and no others; or every pod is seen long after its creation."""
    split = waits_so_far(timeline)
    shares, whole = split.shares(), float(split.total.sum())
    rows = timeline.of_runs(SCHEDULING)
    count = distinct(timeline.pods["pod"].to_numpy()[timeline.pods["row"].to_numpy() >= 0])
    times = request_times(timeline)
    if times:
        create_s = times.get(_CREATE, 0.0)
        others = [each for key, each in times.items() if key != _CREATE]
        if create_s < _MIN_S or not others or create_s < _MIN_RATIO * float(np.median(others)):
            return []
        share = min(create_s * count / max(whole, 1e-9), shares[SCHEDULING] + shares[CONTROLLER])
        fact = Evidence(
            f"the controller's requests that create a pod took {format_duration(create_s)}, others "
            f"{format_duration(float(np.median(others)))} (medians)",
            create_s, "s", "samples", f"metric = {REQUEST_S}",
        )  # fmt: skip
        return [_finding(create_s, share, 0.85, fact)] if share >= _MIN_SHARE else []
    if count < _MIN_PODS or not rows.any():
        raise CannotJudgeError("too few pods were observed, and not how long the controller's requests take")
    waited = timeline.seconds_of(rows)
    create_s, most_s = (float(np.quantile(waited, value)) for value in (_QUANTILE, 1 - _QUANTILE))
    if create_s < 2 * _MIN_S or most_s > _MAX_SPREAD * create_s or shares[SCHEDULING] < _MIN_SHARE:
        return []  # stamps are whole seconds
    fact = Evidence(
        f"nine of ten pods were scheduled {format_duration(create_s)} or more after the API server dated their "
        "creation, and none much later; it asks webhooks in between. A scheduler that slow would look the same",
        create_s, "s", "spans", f"phase = {SCHEDULING}",
    )  # fmt: skip
    return [_finding(create_s, shares[SCHEDULING], 0.6, fact)]


def _finding(create_s: float, share: float, confidence: float, fact: Evidence) -> Finding:
    title = f"An admission webhook seems to delay each pod: its creation takes {format_duration(create_s)}"
    cost = Evidence(f"that is {share:.0%} of all run time", share, "share", "spans", f"phase = {SCHEDULING}")
    return Finding(NAME, title, confidence, (fact, cost), _FIX, _COMMANDS, slowed(share))
