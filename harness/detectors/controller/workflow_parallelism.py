"""A workflow's own limit lets fewer of its pods run at once than could."""

import re
from collections import Counter

import numpy as np

from harness.analysis.timeline import Timeline, active, beginnings, floats
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import Capability, Evidence, Finding, shell_word, slowed
from harness.model.phases import LIMITS, WORKFLOW

NAME = "workflow-parallelism"
SEEN = ("real: workflow-parallelism",)
NEEDS = (Capability.RUNS, Capability.PODS, Capability.WORKFLOWS)
TARGETS = ("argo", "kfp")

_LIMIT = re.compile(r"parallelism=(\d{1,9}) width=(\d{1,9})")
_MIN_SHARE_OF_TIME, _MIN_SHARE_OF_RUNS = 0.1, 0.8
_OVERLAP_S = 1.0  # of stamps in whole seconds


def detect(timeline: Timeline) -> list[Finding]:
    """The workflows that were read state a limit, runs reach it and no more, and have more pods to run."""
    frame = timeline.events_of(WORKFLOW, LIMITS)
    stated = [_LIMIT.fullmatch(str(each)) for each in frame["message"]]
    counts = Counter((int(each[1]), int(each[2])) for each in stated if each)
    if not counts:
        return []
    (limit, width), _ = counts.most_common(1)[0]
    found = [run for run in _runs(timeline, limit, width) if run is not None]
    whole, reached = float(waits_so_far(timeline).total.sum()), [most == limit for most, _, _ in found]
    share = min(1.0, sum(saved for *_, saved in found) / max(whole, 1e-9))
    if not found or np.mean(reached) < _MIN_SHARE_OF_RUNS or share < _MIN_SHARE_OF_TIME:
        return []
    could = max(could for _, could, _ in found)
    name = shell_word(str(frame["object"].iloc[-1]))
    return [
        Finding(
            NAME,
            f"The workflows' own parallelism lets {limit} of their pods run at once, of {could} that could",
            0.95,
            (
                Evidence(f"the workflow {name} states parallelism {limit}", float(limit), "pods", "events", LIMITS),
                Evidence(
                    f"{sum(reached):,} of {len(found):,} runs with more pods had exactly {limit} at once at most",
                    float(sum(reached)), "runs", "spans",
                ),
            ),
            "Raise or remove parallelism in the workflow's specification or template (in KFP, that of ParallelFor).",
            (f"kubectl get workflow {name} -n {timeline.namespace} -o yaml | grep -n parallelism",),
            slowed(share),
        )
    ]  # fmt: skip


def _runs(timeline: Timeline, limit: int, width: int) -> "list[tuple[int, int, float]]":
    """By run with more pods than the limit: the most at once, how many could be, and the seconds that it would save.

    Pods of one task work on the items of a list, side by side; other tasks do as far as the specification says.
    """
    pods = timeline.pods
    first = beginnings(pods["pod"].to_numpy())
    row, task = pods["row"].to_numpy()[first], pods["task"].cat.codes.to_numpy()[first]
    ends = np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s)
    start = np.minimum.reduceat(floats(pods, "start_s"), first) if first.size else np.zeros(0)
    end = np.maximum.reduceat(ends, first) if first.size else np.zeros(0)
    order = np.argsort(row, kind="stable")
    found = []
    for own in np.split(order, np.flatnonzero(np.diff(row[order])) + 1):
        if own.size <= limit or row[own[0]] < 0:
            continue
        could = min(own.size, max(width, int(np.bincount(task[own]).max())))
        if could > limit:
            until = np.maximum(end[own] - _OVERLAP_S, start[own])
            most = int(active(start[own], until, start[own]).max())
            found.append((most, could, float(end[own].max() - start[own].min()) * (1 - limit / could)))
    return found
