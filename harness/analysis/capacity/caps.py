"""Known caps: what keeps a platform from doing more, however many nodes it gets.

A rate caps the throughput of runs: N runs take at least N / rate. The room on a volume that runs write to caps their
number. What a test did not reach is unknown, and no cap.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.autoscaling import scale_ups
from harness.analysis.capacity.bounds import ADAPTERS, bounds
from harness.analysis.ledger import ledger
from harness.analysis.services.volumes import volumes
from harness.analysis.timeline import Timeline, beginnings, floats
from harness.analysis.waits.quota_waits import refusals
from harness.analysis.waits.startup_delay import startup_delay
from harness.model.phases import RUNNING
from harness.model.units import counted, format_bytes, format_duration

_MIN_PLATEAU = 0.7  # of the time in which runs waited for their first pod, as many were active
_MIN_WAIT_S = 3.0
_MIN_RUNS = 10  # runs: what they write is their own, and not the volume's other users'
# Bounds that more nodes or a larger test move. Loads take long at slow adapters, and where workers are busy with other
# executions: tests on one number of replicas can't tell, and a cap would deny what more replicas do.
_OF_NODES = frozenset({"nodes", "runs in flight", ADAPTERS})


@dataclass(frozen=True, slots=True)
class Cap:
    """One cap.

    Attributes:
        part: what binds, in a word or two: "parallelism", "quota", "autoscaler", "volume …", or the part of a `Bound`.
        name: the same with its value: "the parallelism of 50".
        per_hour: runs per hour; infinite for any other cap.
        nodes: most nodes; infinite for any other cap.
        how: what it was derived from.
        runs: most further runs until something is removed; infinite for any other cap.
    """

    part: str
    name: str
    per_hour: float
    nodes: float
    how: str
    runs: float = np.inf

    def least_s(self, runs: float) -> float:
        """Seconds that this many runs take at least."""
        return 3600 * runs / self.per_hour


def caps(timeline: Timeline) -> tuple[Cap, ...]:
    """The caps that this test reached."""
    rates = tuple(
        Cap(bound.part, f"the {bound.part}", bound.per_hour, np.inf, bound.how)
        for bound in bounds(timeline)
        if bound.part not in _OF_NODES
    )
    return (*rates, *_parallelism(timeline), *_quota(timeline), *_autoscaler(timeline), *_room(timeline))


def widest(found: Iterable[Cap]) -> tuple[Cap, ...]:
    """Of several tests' caps on one part the widest: what one test reached, the platform can do."""
    best: dict[str, Cap] = {}
    for cap in found:
        known = best.get(cap.part)
        if known is None or (cap.per_hour, cap.nodes, cap.runs) > (known.per_hour, known.nodes, known.runs):
            best[cap.part] = cap
    return tuple(best.values())


def _parallelism(timeline: Timeline) -> tuple[Cap, ...]:
    """As many runs were active all the time, while others waited for their first pod, longer than the first ones."""
    if timeline.executed or not len(timeline.pods):
        return ()
    delay = startup_delay(timeline)
    waited = float(np.median(delay.before)) if delay.before.size else 0.0
    if delay.plateau < _MIN_PLATEAU or waited < max(_MIN_WAIT_S, 3 * delay.unhindered_s):
        return ()
    if len(timeline.events[timeline.events["reason"] == "FailedScheduling"]):
        return ()  # the nodes were full: then they are what held runs back
    row = timeline.pods["row"].to_numpy()
    new = beginnings(row)
    first = np.minimum.reduceat(floats(timeline.pods, "start_s"), new)
    took = floats(timeline.runs, "over_s")[row[new]] - first
    took = took[np.isfinite(took) & (took > 0)]
    if not took.size:
        return ()
    active_s = float(took.mean())
    how = f"{counted(delay.most, 'run')} at once for {delay.plateau:.0%} of the time, {format_duration(active_s)} each"
    return (Cap("parallelism", f"the parallelism of {delay.most}", 3600 * delay.most / active_s, np.inf, how),)


def _quota(timeline: Timeline) -> tuple[Cap, ...]:
    """A quota on pods: how many at once, over the pod seconds that a run needs."""
    told = [
        (refusal.quota, refusal.room.get("pods", ("", ""))[1])
        for refusal in refusals(timeline)
        if refusal.row is not None
    ]
    limits = [(quota, int(most)) for quota, most in told if most.isdecimal()]
    over = int(timeline.is_over.sum())
    if not limits or not over:
        return ()
    running = timeline.stretches(RUNNING)
    seconds = float(np.nansum(floats(running, "end_s") - floats(running, "start_s")))
    if seconds <= 0:
        return ()
    name, most = max(limits, key=lambda limit: limit[1])
    how = f"at most {counted(most, 'pod')} at once, and the pods of a run take {format_duration(seconds / over)}"
    return (Cap("quota", f"the quota {name} of {counted(most, 'pod')}", 3600 * most * over / seconds, np.inf, how),)


def _autoscaler(timeline: Timeline) -> tuple[Cap, ...]:
    """The sum of the groups' maxima, where its decisions tell them and all nodes of the runs are of such groups."""
    limits = {decision.group: decision.limit for decision in scale_ups(timeline)}
    if not limits or timeline.run_nodes["pool"].nunique() > len(limits):
        return ()
    most = sum(limits.values())
    how = ", ".join(f"{group} {limit}" for group, limit in sorted(limits.items()))
    return (Cap("autoscaler", f"the autoscaler's maximum of {counted(most, 'node')}", np.inf, float(most), how),)


def _room(timeline: Timeline) -> tuple[Cap, ...]:
    """The free space on the volumes of artifact store and database, over what a run wrote there in this test."""
    done = ledger(timeline).succeeded
    if done < _MIN_RUNS:
        return ()
    found = []
    for volume in volumes(timeline):
        a_run = volume.written / done
        if (volume.of_store or volume.of_database) and a_run > 0:
            how = f"{format_bytes(volume.room)} were left at the end, and a run writes {format_bytes(a_run)}"
            name = f"volume {volume.name}"
            found.append(Cap(name, f"the {name}", np.inf, np.inf, how, float(np.floor(volume.room / a_run))))
    return tuple(found)
