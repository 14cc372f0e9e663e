"""A running load test as metrics for Prometheus: each name, type and meaning once, for the page and its reference."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.live.exposition import Family, Series, written

_MOST_SERIES = 50  # of one metric: states, volumes and endpoints are named by the platform

# Key in the state, metric, type, label (of values by name), help.
LOAD: tuple[tuple[str, str, str, str, str], ...] = (
    ("intended", "pipeswarm_arrivals_intended", "gauge", "", "Arrivals in the schedule."),
    ("sent", "pipeswarm_arrivals_sent_total", "counter", "", "Arrivals that were sent."),
    ("accepted", "pipeswarm_arrivals_accepted_total", "counter", "", "Submissions that the platform accepted."),
    ("rejected", "pipeswarm_arrivals_rejected_total", "counter", "", "Submissions that were refused or not answered."),
    ("missed", "pipeswarm_arrivals_missed_total", "counter", "", "Arrivals that were due and never sent."),
    ("in_flight", "pipeswarm_runs_in_flight", "gauge", "", "Accepted runs that have not ended."),
    ("awaited", "pipeswarm_submissions_unanswered", "gauge", "", "Submissions that wait for their response."),
    ("lag_p99_s", "pipeswarm_lag_p99_seconds", "gauge", "", "99th percentile of the delay from due to sent."),
    ("lag_s", "pipeswarm_lag_seconds", "gauge", "", "Largest delay from due to sent in the last second."),
    ("eta_s", "pipeswarm_remaining_seconds", "gauge", "", "Estimated time until the last run ends."),
    ("ends_age_s", "pipeswarm_ends_age_seconds", "gauge", "", "How old the counts of ended runs are."),
    ("ended", "pipeswarm_runs_ended_total", "counter", "outcome", "Runs that have ended."),
    ("stages", "pipeswarm_test_stage", "gauge", "stage", "1 for the current stage of the test."),
)
OBSERVED: tuple[tuple[str, str, str, str, str], ...] = (
    ("runs", "pipeswarm_platform_runs", "gauge", "state", "Runs that the platform lists."),
    ("pods", "pipeswarm_platform_pods", "gauge", "phase", "Pods of runs."),
    (
        "ready_nodes",
        "pipeswarm_ready_nodes",
        "gauge",
        "",
        "Nodes that are ready, in the pools that the runs' steps use.",
    ),
    ("store_free_bytes", "pipeswarm_store_free_bytes", "gauge", "volume", "Free space on the platform's volumes."),
    ("requests", "pipeswarm_observer_requests_total", "counter", "endpoint", "Requests sent by the observer itself."),
)
FINDINGS: tuple[tuple[str, str, str, str, str], ...] = (
    ("confidence", "pipeswarm_finding_confidence", "gauge", "finding", "Confidence (0 to 1) of each live finding."),
)


def exposition(state: Mapping[str, Any]) -> str:
    """The present state of a load test as a page of metrics; unknown values are left out.

    Args:
        state: ``load``, ``observer`` and ``findings``, as in ``live.json``.
    """
    load, findings = dict(state.get("load") or {}), state.get("findings") or ()
    load["ended"] = {key: load[key] for key in ("done", "failed") if key in load}
    load["stages"] = {str(load["stage"]): 1} if load.get("stage") else {}
    confidence: dict[str, float] = {}
    for finding in findings:
        name = str(finding["name"])
        confidence[name] = max(confidence.get(name, 0.0), finding["confidence"])
    return written(
        (*_families(LOAD, load), *_families(OBSERVED, state.get("observer") or {}),
         *_families(FINDINGS, {"confidence": confidence}))
    )  # fmt: skip


def _families(declared: tuple[tuple[str, str, str, str, str], ...], values: Mapping[str, Any]) -> Iterator[Family]:
    for key, name, kind, label, text in declared:
        value = values.get(key)
        if value is not None:
            yield name, kind, text, _by(label, value) if label else [({}, value)]


def _by(label: str, values: Mapping[str, Any]) -> list[Series]:
    return [({label: str(name)}, value) for name, value in sorted(values.items())[:_MOST_SERIES]]
