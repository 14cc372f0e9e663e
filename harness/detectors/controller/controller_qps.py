"""The workflow controller sends as many requests as its client may, and pods wait for them."""

from collections.abc import Iterator
from math import ceil

from harness.analysis.waits.controller_limit import (
    CLIENT_WAIT_S,
    OPERATION_S,
    REQUESTS,
    RESOURCE_WAIT_S,
    Limit,
    Symptoms,
    symptoms,
)
from harness.detectors.controller.slow_controller import WEBHOOK, distinguished, finding, namespace, tune
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_duration
from harness.model.phases import BURST, QPS

NAME = "controller-qps"
SEEN = ("real: low-qps",)
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.CONTROLLER: "the rate, and what only the controller's own metrics distinguish from other causes"}
TARGETS = ("argo", "kfp")
EXPLAINED_BY = WEBHOOK

_SURE, _LIKELY, _MAYBE = 0.9, 0.7, 0.6  # by its client's own waits; by requests at its rate; by starts alone
_MORE, _LEAST, _DEFAULT = 2.5, 50, 100  # times the present rate; requests per second
_SETTINGS = "workflow-controller-configmap"


def detect(timeline: Timeline) -> list[Finding]:
    """Its requests wait for tokens, go out at an even rate, or pods come long after their nodes."""
    slow = distinguished(timeline)
    if slow is None or slow.limit not in {Limit.REQUESTS, Limit.POD_RATE}:
        return []
    seen = symptoms(timeline)
    evidence, confidence = _evidence(seen), _confidence(seen, slow.limit)
    if slow.limit is Limit.POD_RATE:
        problem = "creates pods at the rate of resourceRateLimit"
        fix = "Raise limit and burst of resourceRateLimit in the workflow controller's ConfigMap, or remove it."
        edit = f"kubectl edit configmap {_SETTINGS} -n {namespace(timeline)}"
        return [finding(NAME, slow, problem, fix, (edit,), confidence, evidence)]
    present = max(seen.rate or 0.0, seen.settings.get(QPS, 0.0))
    qps = max(_LEAST, 10 * ceil(_MORE * present / 10)) if present else _DEFAULT
    fix = (
        f"Raise the rate limit of the workflow controller's client: try --qps={qps} --burst={qps * 3 // 2} (20 and 30 "
        "by default). Workers that wait for the client are busy, too: more of them would not help."
    )
    commands = tune(timeline, {QPS: qps, BURST: qps * 3 // 2})
    return [finding(NAME, slow, "is at its client's rate limit (--qps)", fix, commands, confidence, evidence)]


def _confidence(seen: Symptoms, limit: Limit) -> float:
    """Sure where waits for tokens or the limit were read; an even rate is a token bucket's, and not only that."""
    if limit is Limit.POD_RATE or seen.token_s is not None or (seen.measured and QPS in seen.settings):
        return _SURE
    return _LIKELY if seen.request_s is not None or not seen.measured else _MAYBE


def _evidence(seen: Symptoms) -> Iterator[Evidence]:
    for name, waited in ((CLIENT_WAIT_S, seen.token_s), (RESOURCE_WAIT_S, seen.pod_token_s)):
        if waited:
            text = f"a request of the controller waited {format_duration(waited)} for its own rate limit (median)"
            yield Evidence(text, waited, "s", "samples", f"metric = {name}")
    if seen.rate is not None:
        even = ", evenly, as from a token bucket" if seen.even else ""
        allowed = f", of {seen.settings[QPS]:g} that it may" if QPS in seen.settings else ""
        text = f"it sent {seen.rate:.1f} requests/s to the API group that got most{allowed}{even}"
        yield Evidence(text, seen.rate, "1/s", "samples", f"metric = {REQUESTS}")
    if seen.operation_s is not None and seen.request_s is not None:
        text = f"a look at a workflow took {format_duration(seen.operation_s)}, and its requests "
        text += f"{format_duration(seen.request_s)} at the API server (medians): they wait inside the client"
        yield Evidence(text, seen.operation_s, "s", "samples", f"metric = {OPERATION_S}")
    elif seen.work_s is not None:
        yield Evidence(
            f"a worker took {format_duration(seen.work_s)} for each update of a workflow", seen.work_s, "s", "samples"
        )
    if seen.late_s is not None and not seen.measured:
        text = f"pods came {format_duration(seen.late_s)} after the nodes of their workflows (median)"
        yield Evidence(text, seen.late_s, "s", "spans")
