"""Pods wait for their images to be pulled."""

from dataclasses import replace

import numpy as np

from harness.analysis.waits.cold_starts import with_likely_pulls
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.stated import unstated
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, floats, format_duration, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import PULLING, STARTING

NAME = "image-pull"
SEEN = ("real: image-pull",)
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.POD_EVENTS: "pulls: only events distinguish them from the rest of a start"}
EXPLAINED_BY = {"image-missing": 0.3}  # a pull that is refused is tried again, after longer and longer pauses
OVERSTATED_EARLY = True

_MIN_PULLING = 0.09  # of the runs' time: about the tenth that an operator would act on
_MIN_STARTING = 0.05  # of the runs' time, pods start: with less, pulls are no matter
_MIN_PULL_S = 2.0  # stamps are whole seconds: shorter pulls are not resolved
_CONFIDENCE = 0.9  # the kubelet states each pull
_UNSEEN = 0.75  # volumes to attach delay starts on new nodes, too
_OF_STARTS = Evidence(
    "no pod events were observed: long starts on nodes where no pod of the task had started are taken for pulls"
)


def detect(timeline: Timeline) -> list[Finding]:
    """Pulling takes a large share of the time of the pods that the runs' ends waited for."""
    if Capability.POD_EVENTS.observed(timeline):
        return _found(timeline, "Image pulls are slow")
    if timeline.of_runs(PULLING).any():  # inferred from scrapes
        return _inferred(timeline)
    starting = critical_path(timeline).shares[STARTING]
    if starting < _MIN_STARTING:
        return []
    likely = with_likely_pulls(timeline)
    if likely is not None:
        return _inferred(likely)
    if starting >= _MIN_PULLING:
        raise CannotJudgeError(
            f"pods took {starting:.0%} of the runs' time to start, and without pod events pulls can't be told from the "
            "rest of a start"
        )
    return []


def _inferred(timeline: Timeline) -> list[Finding]:
    return [
        replace(finding, confidence=min(finding.confidence, _UNSEEN), evidence=(_OF_STARTS, *finding.evidence))
        for finding in _found(timeline, "Pods start slowly on new nodes, as if they pulled images")
    ]


def _found(timeline: Timeline, what: str) -> list[Finding]:
    share = critical_path(timeline).shares[PULLING] * unstated(timeline)[PULLING]
    pods = timeline.stretches(PULLING)
    seconds = np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s) - floats(pods, "start_s")
    slow = float(np.quantile(seconds, 0.9)) if seconds.size else 0.0
    if share < _MIN_PULLING or slow < _MIN_PULL_S:
        return []
    return [
        Finding(
            NAME,
            f"{what}: {share:.0%} of the runs' time",
            _CONFIDENCE,
            _evidence(share, slow),
            "Use smaller images, pre-pull them on every node (a DaemonSet, or a node image that includes them), use a "
            "registry in the same region, and set imagePullPolicy IfNotPresent with fixed tags.",
            (f"kubectl get events -n {timeline.namespace} --field-selector reason=Pulled",),
            slowed(share),
        )
    ]


def _evidence(share: float, slow: float) -> tuple[Evidence, ...]:
    where = f"phase = {PULLING}"
    return (
        Evidence(f"{share:.1%} of all run time, the runs waited for pulls of images", share, "share", "spans", where),
        Evidence(f"a slow pull (p90) took {format_duration(slow)}", slow, "s", "spans", where),
    )
