"""The workflow controller has too few workers: workflows wait for one, or ended pods for being cleaned up."""

from collections.abc import Iterator

from harness.analysis.waits.controller_limit import (
    CLEANUP_QUEUE,
    QUEUE_DEPTH,
    QUEUE_WAIT_S,
    WORKERS,
    Limit,
    Symptoms,
    queue_wait_s,
    symptoms,
    workers_of,
)
from harness.analysis.waits.workflow_limits import DEFAULTS, settings
from harness.detectors.controller.slow_controller import WEBHOOK, distinguished, finding, tune
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_duration, slowed
from harness.model.phases import CLEANUP_WORKERS, WORKFLOW_WORKERS

NAME = "controller-workers"
SEEN = ("real: one-worker",)
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {Capability.CONTROLLER: "how many workers are busy, and what only its metrics distinguish from other causes"}
TARGETS = ("argo", "kfp")
EXPLAINED_BY = WEBHOOK

_SURE, _LIKELY = 0.9, 0.6  # by the controller's own metrics; by its nodes' stamps
_CLEANUP_WORKERS = DEFAULTS[CLEANUP_WORKERS]
_CLEANUP_S = 5.0  # Argo's default delay before it deletes an ended pod


def detect(timeline: Timeline) -> list[Finding]:
    """Workflows wait in the queue while the client has tokens to spare, or ended pods do."""
    slow, seen = distinguished(timeline), symptoms(timeline)
    if slow is not None and slow.limit is Limit.REQUESTS:
        return []
    if slow is None or slow.limit is not Limit.WORKERS:
        return [*_cleanup(timeline)]
    more = _more(seen.busy, WORKERS)
    fix = (
        f"Give the workflow controller more workers: try --workflow-workers={more} ({WORKERS} by default), and CPU for "
        "them. Each sends requests: --qps may be next."
    )
    problem, commands = "is short of workers (--workflow-workers)", tune(timeline, {WORKFLOW_WORKERS: more})
    sure = _SURE if seen.measured else _LIKELY
    return [finding(NAME, slow, problem, fix, commands, sure, _evidence(seen)), *_cleanup(timeline)]


def _more(busy: float | None, default: float) -> int:
    """Twice as many as were busy, and no fewer than twice the default where that is not known."""
    return round(max(default, 2 * busy) if busy else 2 * default)


def _evidence(seen: Symptoms) -> Iterator[Evidence]:
    if seen.queued_s is not None:
        text = f"a workflow waited {format_duration(seen.queued_s)} for a worker (median)"
        yield Evidence(text, seen.queued_s, "s", "samples", f"metric = {QUEUE_WAIT_S}")
    if seen.queue and seen.busy is not None:
        text = f"all workers ({seen.busy:.0f}) were busy, with up to {seen.queue:.0f} workflows queued behind them"
        yield Evidence(text, seen.queue, "workflows", "samples", f"metric = {QUEUE_DEPTH}")
    elif seen.busy is not None:
        yield Evidence(f"up to {seen.busy:.0f} workers were busy at once", seen.busy, "workers", "samples")
    if not seen.measured and seen.late_s is not None:
        text = f"pods came {format_duration(max(0.0, seen.late_s))} after the nodes of their workflows, which came late"
        yield Evidence(text, max(0.0, seen.late_s), "s", "spans")


def _cleanup(timeline: Timeline) -> Iterator[Finding]:
    waited, busy = queue_wait_s(timeline, CLEANUP_QUEUE), workers_of(timeline, CLEANUP_QUEUE)
    if waited is None or waited <= _CLEANUP_S:
        return
    more = _more(busy, settings(timeline).get(CLEANUP_WORKERS, _CLEANUP_WORKERS))
    text = f"an ended pod waited {format_duration(waited)} for being labelled or deleted (median)"
    yield Finding(
        NAME,
        "The workflow controller is short of workers that clean up pods (--pod-cleanup-workers)",
        _SURE,
        (Evidence(text, waited, "s", "samples", f"metric = {QUEUE_WAIT_S}"),),
        f"Try --pod-cleanup-workers={more} ({_CLEANUP_WORKERS:g} by default): ended pods stay on nodes until then.",
        tune(timeline, {CLEANUP_WORKERS: more}),
        slowed(0.05),
    )
