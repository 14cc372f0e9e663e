"""Where the time of the runs that are over went: phases summed up, and as a long table for pandas or SQL."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.timeline import Floats, Timeline
from harness.analysis.waits.storing import storing
from harness.analysis.waits.waits import Waits, waits
from harness.model.phases import RUN_PHASES, RUNNING

_MOST_RUNS = 20_000  # of a part of the table


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


@dataclass(frozen=True, slots=True)
class PhaseBreakdown:
    """The phases of the runs that are over; they add up to the runs' durations.

    Attributes:
        runs: how many there are.
        mean_total_s: their mean duration from due to over; NaN without runs.
        reversed: stretches of pods that end before they start.
        caveat: what the phases of pods can't show; "" for runs without pods.
        phases: one for each of RUN_PHASES.
    """

    runs: int
    mean_total_s: float
    reversed: int
    caveat: str
    phases: tuple[PhaseSummary, ...]


def phase_breakdown(timeline: Timeline) -> PhaseBreakdown:
    """Sum up the phases of all finished runs (`waits`)."""
    split = waits(timeline)
    return PhaseBreakdown(
        runs=int(split.row.size),
        mean_total_s=float(split.total.mean()) if split.row.size else np.nan,
        reversed=split.reversed,
        caveat=storing(timeline).caveat if timeline.of_runs(RUNNING).any() else "",
        phases=tuple(_summary(name, share, split.of(name)) for name, share in split.shares().items()),
    )


def _summary(name: str, share: float, seconds: Floats) -> PhaseSummary:
    if not seconds.size:
        return PhaseSummary(name, share, *[np.nan] * 5)
    quantiles = np.quantile(seconds, (0.0, 0.5, 0.95, 1.0), method="inverted_cdf")
    return PhaseSummary(name, share, float(seconds.mean()), *(float(value) for value in quantiles))


def phases_table(timeline: Timeline, split: Waits) -> Iterator[pd.DataFrame]:
    """One row per run and phase: seq, run, state, phase, length_s; by seq, then phase, in parts of whole runs.

    A run's lengths add up to its duration from due to end. Phases that took no time are left out; a negative length
    shows that clocks disagree.
    """
    seq = timeline.runs["seq"].to_numpy(dtype=np.int64)[split.row]
    order = np.argsort(seq, kind="stable")
    for low in range(0, order.size, _MOST_RUNS):
        part = order[low : low + _MOST_RUNS]
        seconds, rows = split.seconds[part], split.row[part]
        which, phase = np.nonzero(seconds)
        run, state = (timeline.runs[name].take(rows).array for name in ("run", "state"))
        yield pd.DataFrame(
            {
                "seq": seq[part][which],
                "run": run.take(which),  # never objects: a large test has millions of rows
                "state": state.take(which),
                "phase": pd.array(RUN_PHASES, dtype="str").take(phase),
                "length_s": seconds[which, phase],
            }
        )
