"""The replicas of the service that executes the runs, as Kubernetes shows them: their workers and their CPU time."""

from dataclasses import dataclass, field

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats, remembered
from harness.model.phases import POD_CPU_CORES, REPLICA_WORKERS

_SHARE_OF_TIME = 0.25  # of the test's time: a replica that is first seen later was added
_LISTED_S = 10.0  # within this time after the start, whatever had been there is listed
_WINDOWS = 2  # of measured CPU time, to compare replicas


@dataclass(frozen=True, slots=True, eq=False)
class ServiceReplicas:
    """One entry per replica, those that were there for the whole test; empty where none are known.

    Attributes:
        pods: their names.
        workers: worker processes of each; empty where they are not known.
        cpu_s: core-seconds that each used while executions were open, shape (n,); empty where not measured.
    """

    pods: tuple[str, ...] = ()
    workers: tuple[int, ...] = ()
    cpu_s: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def total(self) -> int:
        """Workers of all replicas; 0 where they are not known."""
        return sum(self.workers)

    @property
    def each(self) -> int:
        """Workers of every replica; 0 where they are not known, or differ."""
        return self.workers[0] if len(set(self.workers)) == 1 else 0


@remembered
def service_replicas(timeline: Timeline) -> ServiceReplicas:
    """Those of a service that executes the runs; none where one was added or removed in mid-test."""
    sent, over = floats(timeline.runs, "sent_s"), floats(timeline.runs, "over_s")
    if not timeline.executed or not np.isfinite(sent).any() or not np.isfinite(over).any():
        return ServiceReplicas()
    begun, end = float(np.nanmin(sent)), float(np.nanmax(over))
    workers = _workers(timeline, begun, end)
    if workers is None:
        return ServiceReplicas()
    used = _used(timeline, begun, end)
    pods = tuple(sorted(workers or used))
    measured = bool(pods) and set(pods) <= set(used)
    return ServiceReplicas(
        pods,
        tuple(workers[name] for name in pods if workers),
        np.array([used[name] for name in pods]) if measured else np.empty(0),
    )


def _workers(timeline: Timeline, begun: float, end: float) -> dict[str, int] | None:
    """By pod; none where one was added or gone in mid-test."""
    found: dict[str, int] = {}
    samples = timeline.labelled(REPLICA_WORKERS, "pod")[["at_s", "pod", "value"]]
    for at, name, value in samples[samples["at_s"] <= end].itertuples(index=False):
        late = at > begun + max(_LISTED_S, _SHARE_OF_TIME * (end - begun))
        if (not value and at > begun) or (name not in found and late):
            return None
        found[name] = int(value)
    return {name: workers for name, workers in found.items() if workers}


def _used(timeline: Timeline, begun: float, end: float) -> dict[str, float]:
    """Core-seconds by pod; empty where fewer than two windows were measured, or not all pods in each."""
    samples = timeline.labelled(POD_CPU_CORES, "pod")
    spacing = samples.groupby("pod")["at_s"].diff()
    window = float(spacing.median()) if spacing.notna().any() else np.nan
    samples["core_s"] = samples["value"] * spacing.fillna(window)
    during = samples[(samples["at_s"] > begun) & (samples["at_s"] <= end + window)].groupby("pod")["core_s"]
    counts = during.count()
    if not len(counts) or counts.min() < _WINDOWS or counts.max() - counts.min() > 1:
        return {}
    return {str(name): float(core_s) for name, core_s in during.sum().items()}
