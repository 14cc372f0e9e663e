"""Where the time went, summed up: the runs' phases, and how long pods waited for a node."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, distinct, floats
from harness.analysis.waits.storing import storing
from harness.analysis.waits.waits import Waits, waits
from harness.model.phases import RUN_PHASES, RUNNING, UNSCHEDULABLE

_GROUPS = (("typical (p50)", 0.5), ("slow (p90)", 0.9), ("slowest (p99)", 0.99))
_QUANTILE_MARGIN = 0.02  # of the runs, on each side of a quantile
_BARS = 60
_LEAST_RUNS = 4
_BINS = 40
_FIRST_S = 60.0
_SOON_S = 5.0


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """Seconds that runs spent in one phase; NaN when no run is over. `share` is of all the time of all runs."""

    name: str
    share: float
    mean_s: float
    least_s: float
    p50_s: float
    p95_s: float
    most_s: float

    @property
    def seen(self) -> bool:
        """Some run spent time in it."""
        return bool(self.least_s < 0 or self.most_s > 0)


@dataclass(frozen=True, slots=True, eq=False)
class PhaseGroup:
    """Mean seconds of some runs in each of RUN_PHASES."""

    name: str
    mean_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PhasesByArrival:
    """Mean seconds by phase of consecutive arrivals.

    Attributes:
        seq: the middle of each group, shape (n,).
        size: arrivals in a group.
        mean_s: shape (n, len(RUN_PHASES)).
        longest_s: the longest mean duration of a group.
    """

    seq: Floats
    size: int
    mean_s: Floats
    longest_s: float


@dataclass(frozen=True, slots=True, eq=False)
class PhaseBreakdown:
    """The phases of the runs that are over; they add up to the runs' durations.

    Attributes:
        runs: how many there are.
        mean_total_s: their mean duration from due to over; NaN without runs.
        longest_s: the longest duration; NaN without runs.
        reversed: stretches of pods that end before they start.
        caveat: what the phases of pods can't show; "" for runs without pods.
        phases: one for each of RUN_PHASES.
        groups: all runs, and those around the median, the 90th and the 99th percentile of the duration.
        by_arrival: none with fewer than four runs.
    """

    runs: int
    mean_total_s: float
    longest_s: float
    reversed: int
    caveat: str
    phases: tuple[PhaseSummary, ...]
    groups: tuple[PhaseGroup, ...]
    by_arrival: PhasesByArrival | None


def phase_breakdown(timeline: Timeline) -> PhaseBreakdown:
    """Sum up the phases of all finished runs (`waits`)."""
    split = waits(timeline)
    runs = int(split.row.size)
    return PhaseBreakdown(
        runs=runs,
        mean_total_s=float(split.total.mean()) if runs else np.nan,
        longest_s=float(split.total.max()) if runs else np.nan,
        reversed=split.reversed,
        caveat=storing(timeline).caveat if timeline.of_runs(RUNNING).any() else "",
        phases=tuple(_summary(name, share, split.of(name)) for name, share in split.shares().items()),
        groups=_groups(split) if runs else (),
        by_arrival=_by_arrival(split, floats(timeline.runs, "seq")[split.row]) if runs >= _LEAST_RUNS else None,
    )


def _summary(name: str, share: float, seconds: Floats) -> PhaseSummary:
    if not seconds.size:
        return PhaseSummary(name, share, *[np.nan] * 5)
    quantiles = np.quantile(seconds, (0.0, 0.5, 0.95, 1.0), method="inverted_cdf")
    return PhaseSummary(name, share, float(seconds.mean()), *(float(value) for value in quantiles))


def _groups(split: Waits) -> tuple[PhaseGroup, ...]:
    order = np.argsort(split.total, kind="stable")
    chosen = {"all runs (mean)": order}
    near = max(1, round(order.size * _QUANTILE_MARGIN))
    for name, level in _GROUPS:
        centre = int(np.ceil(level * order.size)) - 1
        chosen[name] = order[max(0, centre - near) : centre + near + 1]
    return tuple(PhaseGroup(name, _means(split, rows)) for name, rows in chosen.items())


def _by_arrival(split: Waits, seq: Floats) -> PhasesByArrival:
    size = -(-int(seq.max() + 1) // _BARS)
    place = (seq // size).astype(np.int64)
    groups = [np.flatnonzero(place == k) for k in np.unique(place)]
    return PhasesByArrival(
        seq=np.array([(k + 0.5) * size for k in np.unique(place).tolist()]),
        size=size,
        mean_s=np.array([_means(split, group) for group in groups]),
        longest_s=max(float(split.total[group].mean()) for group in groups),
    )


def _means(split: Waits, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Floats:
    return np.array([float(split.seconds[rows, k].mean()) for k in range(len(RUN_PHASES))])


@dataclass(frozen=True, slots=True, eq=False)
class PendingPods:
    """How long the runs' pods waited for a node: a histogram of those that found none at first.

    Attributes:
        pods: all pods of runs.
        waited: those that found no node at first.
        median_s: half of `waited` waited as long or longer.
        longest_s: the longest wait.
        soon: share of all pods that waited less than five seconds.
        edges_s: of the bins, shape (n + 1,).
        early: counts of pods that began to wait in the first minute, shape (n,).
        later: counts of the others, shape (n,).
    """

    pods: int
    waited: int
    median_s: float
    longest_s: float
    soon: float
    edges_s: Floats
    early: Floats
    later: Floats


def pending_pods(timeline: Timeline) -> PendingPods | None:
    """None when no pod waited; an open wait counts up to the end of the observation."""
    pods, mine = timeline.pods, timeline.of_runs(UNSCHEDULABLE)
    start, end = floats(pods, "start_s")[mine], floats(pods, "end_s")[mine]
    waited = np.where(np.isfinite(end), end, timeline.end_s) - start
    if not waited.size:
        return None
    longest = float(waited.max())
    top = max(longest, 0.0)  # of clocks that disagree, all may be below 0
    edges = np.linspace(min(0.0, float(waited.min())), top * (1 + 1e-9) + 1e-9, _BINS + 1)
    count = distinct(pods["pod"].to_numpy()[(pods["row"] >= 0).to_numpy(dtype=bool)])
    early = start < _FIRST_S
    return PendingPods(
        pods=count,
        waited=waited.size,
        median_s=float(np.median(waited)),
        longest_s=longest,
        soon=1 - int(np.count_nonzero(waited > _SOON_S)) / max(count, 1),
        edges_s=edges,
        early=np.histogram(waited[early], bins=edges)[0].astype(np.float64),
        later=np.histogram(waited[~early], bins=edges)[0].astype(np.float64),
    )
