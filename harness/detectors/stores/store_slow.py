"""The artifact store is slow: steps take long to write their outputs.

KFP's steps write them within the main container. What shows it: the launcher's log in a sample of the pods, the time
that Argo's ``wait`` takes after the main container, the store's own metrics, and the observer's probe.
"""

from collections.abc import Iterator

import numpy as np

from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.stated import failed_for
from harness.analysis.waits.storing import SLOW, Storing, storing
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, floats, format_duration, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import STORE_PROBE_SECONDS, STORE_REQUEST_SECONDS, STORING, UPLOAD_SECONDS

NAME = "store-slow"
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {
    Capability.LOGS: "uploads within steps, which are part of running",
    Capability.STORE_REQUESTS: "how long the store itself took",
}
# Writes that fail are repeated until they are given up: what they take is not the speed of the store.
EXPLAINED_BY = {"store-full": 0.1, "store-unreachable-from-old-nodes": 0.1}
OVERSTATED_EARLY = True

_CERTAIN_SHARE = 0.15
_MIN_STORING_S = 2.0  # stamps are whole seconds: shorter waits are not resolved
_MIN_WRITE_S = 1.0  # median of a write
_SURE, _FAILING, _BY_REQUESTS = 0.95, 0.4, 0.85


def detect(timeline: Timeline) -> list[Finding]:
    """Storing takes a large share of the runs' time; failing writes may take long for another reason."""
    stored, share = storing(timeline), critical_path(timeline).storing
    failing = bool(failed_for(timeline, "store-full", "store-write-error", "store-unwritten"))
    requests = tuple(_slow_requests(timeline))
    if share >= SLOW and stored.slow_s >= _MIN_STORING_S and (stored.logs or requests):
        title = f"The artifact store is slow: runs spent {share:.0%} of their time storing outputs"
        confidence = _FAILING if failing else _SURE if share >= _CERTAIN_SHARE else _BY_REQUESTS
        return [_finding(timeline, title, confidence, (*_of_pods(stored, share), *requests), slowed(share))]
    if stored.logs:
        return []
    if requests:
        title = f"The artifact store is slow: {requests[0].statement}"
        return [_finding(timeline, title, _FAILING if failing else _BY_REQUESTS, requests, slowed(_CERTAIN_SHARE))]
    raise CannotJudgeError(
        f"{stored.caveat}; neither the store's metrics nor a probe (--store-probe) show slow requests"
    )


def _finding(
    timeline: Timeline, title: str, confidence: float, evidence: tuple[Evidence, ...], severity: float
) -> Finding:
    return Finding(
        NAME,
        title,
        confidence,
        evidence,
        "Give the store a faster volume and more CPU, reduce the size of outputs, or pass data in memory instead.",
        (f"kubectl top pods -n {timeline.namespace} --sort-by=cpu",),
        severity,
    )


def _of_pods(stored: Storing, share: float) -> Iterator[Evidence]:
    yield Evidence(f"{share:.1%} of all run time, the runs waited for outputs to be stored", share, "share", "spans")
    if stored.logs:
        yield Evidence(
            f"{stored.logs:,} steps' logs show when they uploaded their outputs; "
            "as much is assumed for the other steps of the same task",
            float(stored.logs), "pods", "samples", f"metric = {UPLOAD_SECONDS}",
        )  # fmt: skip
    yield Evidence(
        f"time to store (p90): {format_duration(stored.slow_s)}", stored.slow_s, "s", "spans", f"phase = {STORING}"
    )
    yield Evidence(f"steps stored for {stored.per_work:.2f} s per second of work", stored.per_work, "", "spans")


def _slow_requests(timeline: Timeline) -> Iterator[Evidence]:
    """Slow writes, as the store measured them and as the observer's probe did."""
    for metric, what, fixed in (
        (STORE_REQUEST_SECONDS, "a write took {} by the store's own metrics (median)", {"quantile": "0.5"}),
        (STORE_PROBE_SECONDS, "the observer's 4 KiB took {} to write (median)", {}),
    ):
        samples = timeline.labelled(metric, "operation", "type", **fixed)
        # Stores and the probe call the storing of an object PUT, PutObject or POST.
        kind = samples["operation"].where(samples["operation"] != "", samples["type"]).str.upper()
        seconds = floats(samples[kind.str.startswith(("PUT", "POST"))], "value")
        typical = float(np.median(seconds)) if seconds.size else 0.0
        if typical >= _MIN_WRITE_S:
            yield Evidence(what.format(format_duration(typical)), typical, "s", "samples", f"metric = {metric}")
