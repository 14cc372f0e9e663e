"""Steps get less CPU than they could use: their nodes run out of it, or they are held at their limits."""

import numpy as np
import pandas as pd

from harness.analysis.cost.requested import node_use, requested_cpu, requests_by
from harness.analysis.cost.resources import Resources, StepNeed, as_cores, step_needs
from harness.analysis.throughput import throughput
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, floats, slowed
from harness.model.phases import CPU_LIMIT_CORES, NODE_CPU_CORES, POD_CFS_THROTTLED, POD_CPU_CORES, RUNNING

NAME = "cpu-starved"
NEEDS = (Capability.NODES, Capability.NODE_CPU)
OVERSTATED_EARLY = True  # a few samples of the first steps

_BUSY_CPU = 0.9  # of a node's CPU: the kubelet and the system need about the rest
_MIN_BUSY = 0.25  # of the samples: what happens more rarely is a peak
_SHARE_LOST = 0.5  # of the time on a busy node, as if twice its CPU were wanted: usage shows no more than all of it
_FULL_CPU, _MIN_FULL = 0.97, 0.1  # a busy node with some CPU left is well used, not starved
_MIN_OF_REQUESTED = 1.05  # times the pods' requests: nodes that are busy with what was requested slow no step down
_CONFIDENCE_BY_USE = 0.5  # confidence: a single thread that has one core uses all of it, and no more of two
_MIN_GAIN = 0.02  # of the runs' time: less is no bottleneck


def detect(timeline: Timeline) -> list[Finding]:
    """Nodes above 90 % of their allocatable CPU for a quarter of the test; steps that use all of their limit."""
    return [*_by_nodes(timeline), *_by_limits(timeline)]


def _by_nodes(timeline: Timeline) -> list[Finding]:
    use = node_use(timeline)
    use = use[use["at_s"] >= 0]
    if not len(use):
        return []
    busy = float((use["share"] > _BUSY_CPU).mean())
    if busy < _MIN_BUSY or float((use["share"] > _FULL_CPU).mean()) < _MIN_FULL:
        return []
    if _of_requested(timeline, use) < _MIN_OF_REQUESTED:
        return []
    hot = sorted(set(use["node"][use["share"] > _BUSY_CPU]))
    return [
        Finding(
            NAME,
            f"Nodes were out of CPU for {busy:.0%} of the time: steps run slower than they could",
            0.85,
            (
                Evidence(
                    f"{busy:.0%} of the node CPU samples are above {_BUSY_CPU:.0%}",
                    busy, "share", "samples", f"metric = {NODE_CPU_CORES}",
                ),
                Evidence(f"{len(hot)} nodes were affected: {', '.join(hot[:6])}", float(len(hot)), "nodes", "samples"),
            ),
            "Raise the steps' CPU requests to their actual usage, so that fewer share a node, or use machines with "
            "more CPUs.",
            ("kubectl top nodes", f"kubectl top pods -n {timeline.namespace} --sort-by=cpu"),
            slowed(_SHARE_LOST * busy * (critical_path(timeline).shares[RUNNING] + scheduling_wait(timeline).share)),
        )
    ]  # fmt: skip


def _of_requested(timeline: Timeline, use: pd.DataFrame) -> float:
    """What the nodes use, as a multiple of what the runs' pods on them request; infinite where that is not known.

    Each pod gets what it requests. So steps can only lack CPU where they, or others, use more.
    """
    cpu = requested_cpu(timeline)
    if cpu is None:
        return np.inf
    window = np.searchsorted(throughput(timeline).edges_s, floats(use, "at_s"), side="right") - 1
    window, used = window[window < cpu.held.size], floats(use, "share")[window < cpu.held.size]
    some = (cpu.held[window] > 0) & (cpu.room[window] > 0)
    held = float((cpu.held[window][some] / cpu.room[window][some]).sum())
    return float(used[some].sum()) / held if held > 0 else np.inf


def _by_limits(timeline: Timeline) -> list[Finding]:
    """The steps that are held at their CPU limits, the one that costs most first."""
    limits = {task: limit for task, limit in requests_by(timeline, CPU_LIMIT_CORES, "task") if limit > 0}
    needs = step_needs(timeline, {task: Resources(cpu_limit=limit) for task, limit in limits.items()})
    held = [need for need in needs if need.task in limits and need.throttled and need.throttled.much]
    if not held:
        return []
    worked = _working(timeline)
    cost = {need.task: _lost(need) * worked.get(need.task, 0.0) for need in held}
    gain = sum(cost.values()) * critical_path(timeline).shares[RUNNING]
    if gain < _MIN_GAIN:
        return []
    held.sort(key=lambda need: -cost[need.task])
    first = held[0]
    return [
        Finding(
            NAME,
            f"{first.task} is held at its CPU limit of {_limit(first)}: it runs slower than it could",
            0.85 if first.throttled and first.throttled.by_periods else _CONFIDENCE_BY_USE,
            tuple(map(_evidence, held[:6])),
            f"Raise the CPU limits ({', '.join(map(_change, held[:6]))}) and measure again, or let the steps start no "
            "more threads than their limits have cores.",
            (f"kubectl top pods -n {timeline.namespace} --containers --sort-by=cpu",),
            slowed(gain),
        )
    ]


def _working(timeline: Timeline) -> dict[str, float]:
    """By task: its share of the time that the runs' pods worked."""
    pods = timeline.pods[timeline.of_runs(RUNNING)]
    seconds = (np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s) - floats(pods, "start_s")).clip(0.0)
    by_task = pods.assign(seconds=seconds).groupby("task", observed=True)["seconds"].sum()
    whole = max(float(by_task.sum()), 1e-9)
    return {str(task): float(each) / whole for task, each in by_task.items()}


def _lost(need: StepNeed) -> float:
    """The share of a step's time that a higher limit would spare: what it would use without one is not visible."""
    return _SHARE_LOST * need.throttled.share if need.throttled else 0.0


def _limit(need: StepNeed) -> str:
    return as_cores(need.now.cpu_limit or 0.0)


def _change(need: StepNeed) -> str:
    return f"{need.task}: {_limit(need)} → {as_cores(need.advice.cpu_limit or 0.0)}"


def _evidence(need: StepNeed) -> Evidence:
    assert need.throttled is not None
    metric = POD_CFS_THROTTLED if need.throttled.by_periods else POD_CPU_CORES
    by_use = f"at it in {need.throttled.share:.0%} of the samples"
    how = need.throttled.sentence if need.throttled.by_periods else by_use
    return Evidence(
        f"{need.task} has a CPU limit of {_limit(need)} and was {how}",
        need.throttled.share, "share", "samples", f"metric = {metric}",
    )  # fmt: skip
