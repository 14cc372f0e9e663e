"""Nodes disappear under running pods: spot machines are reclaimed, pods evicted."""

from collections.abc import Iterator

import numpy as np

from harness.analysis.capacity.autoscaling import TAKEN_BACK
from harness.analysis.timeline import Bools, Timeline, distinct, floats
from harness.analysis.waits.stated import failed_for
from harness.analysis.waits.wasted_work import lost_with_node
from harness.detectors.detector import Capability, Evidence, Finding, broke, counted, format_duration, moment, slowed
from harness.model.phases import UNSCHEDULABLE

NAME = "spot-evictions"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES)
USES = {Capability.POD_EVENTS: "why runs failed, and machines that the cloud took back"}

_MIN_SHARE_OF_PODS = 0.01  # of the pods, and of their time
_MIN_SHARE_ON_SPOT = 0.5  # of the lost pods: the majority decides what is named as the cause

_COMMANDS = ("kubectl get nodes -L kubernetes.azure.com/scalesetpriority -L cloud.google.com/gke-spot",)


def detect(timeline: Timeline) -> list[Finding]:
    """Nodes that disappeared while pods of runs worked on them, or for good while pods wait."""
    return _under_steps(timeline) or [*_for_good(timeline)][:1]


def _under_steps(timeline: Timeline) -> list[Finding]:
    lost = lost_with_node(timeline)
    if not lost.size:
        return []
    names = timeline.pods["node"].take(lost).to_numpy(dtype=object)
    spot = float(_of_spot(timeline, names).mean())
    worked = float(np.nansum(floats(timeline.pods, "end_s") - floats(timeline.pods, "start_s")))
    wasted = float(np.nansum(floats(timeline.pods, "end_s")[lost] - floats(timeline.pods, "start_s")[lost]))
    words = [row.name for row in timeline.catalogue.rows if NAME in row.yields_to]
    failed = failed_for(timeline, *words)
    share = len(failed) / max(len(timeline.runs), 1)
    repeated = lost.size / distinct(timeline.pods["pod"].to_numpy())
    if not failed and (wasted < _MIN_SHARE_OF_PODS * worked or repeated < _MIN_SHARE_OF_PODS):
        return []
    if spot <= _MIN_SHARE_ON_SPOT and (timeline.pods["reason"].take(lost).astype(str) != "").any():
        return []  # what took the nodes was stated, and is no spot reclaim
    gone = len(set(names))
    cause = "spot machines were reclaimed" if spot > _MIN_SHARE_ON_SPOT else "nodes disappeared"
    return [
        Finding(
            NAME,
            f"{gone:,} {cause} under {lost.size:,} running steps"
            + (f": {share:.0%} of the runs failed" if failed else ""),
            0.85 if spot > _MIN_SHARE_ON_SPOT else 0.6,
            (
                Evidence(
                    f"{lost.size:,} pods ended with their node, on {gone:,} nodes",
                    float(lost.size), "pods", "spans",
                ),
                Evidence(f"{format_duration(wasted)} of work was lost and had to be repeated", wasted, "s", "spans"),
                Evidence(
                    f"{spot:.0%} of these pods ran on spot machines or on machines that the cloud reclaimed",
                    spot, "share", "nodes", "spot = true",
                ),
            ),
            "Add retries (set_retry) and checkpoints to the steps, run long steps on on-demand machines, and spread "
            "the pool over several machine types and zones.",
            _COMMANDS,
            broke(share) if failed else slowed(min(1.0, 2 * lost.size / max(len(timeline.runs), 1))),
        )
    ]  # fmt: skip


def _for_good(timeline: Timeline) -> Iterator[Finding]:
    """Pools of spot machines that are all gone, while pods wait that had not been placed elsewhere."""
    nodes, pods = timeline.nodes, timeline.pods
    spot = nodes["name"][_of_spot(timeline, nodes["name"].to_numpy(dtype=object))]
    for pool, machines in nodes.groupby("pool", sort=True):
        gone_s = float(floats(machines, "gone_s").max())
        if not machines["name"].isin(spot).all() or np.isnan(floats(machines, "gone_s")).any():
            continue
        waiting = pods[timeline.of_runs(UNSCHEDULABLE) & np.isnan(floats(pods, "end_s"))]
        elsewhere = set(pods["task"][~pods["node"].isin({"", *machines["name"]}).to_numpy(dtype=bool)])
        stuck = waiting[~waiting["task"].isin(elsewhere)]
        share = stuck["row"].nunique() / max(len(timeline.runs), 1)
        if not len(stuck):
            continue
        since = moment(gone_s)
        yield Finding(
            NAME,
            f"The cloud reclaimed all machines of the pool {pool}, and none came back: {share:.0%} of the runs wait",
            0.85,
            (
                Evidence(f"the last one of {len(machines):,} was gone {since}", gone_s, "s", "nodes", "spot = true"),
                Evidence(
                    f"{counted(len(stuck), 'pod')} still wait for a node", float(len(stuck)), "pods", "spans",
                    f"phase = {UNSCHEDULABLE}",
                ),
            ),
            "Let the pool get machines again: several machine types and zones, or a pool of on-demand machines that "
            "tolerates the same pods.",
            _COMMANDS,
            broke(share),
        )  # fmt: skip


def _of_spot(timeline: Timeline, names: "np.ndarray[tuple[int], np.dtype[np.object_]]") -> Bools:
    """Per node: it is a spot machine, or the cloud reclaimed it."""
    taken_back = set(timeline.events["object"][timeline.events["reason"].isin(TAKEN_BACK)])
    of_spot = timeline.nodes.set_index("name")["spot"].reindex(names).fillna(value=False).to_numpy(dtype=bool)
    return np.asarray(of_spot | np.isin(names, list(taken_back)))
