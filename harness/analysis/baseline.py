"""Is a test slower than an earlier one? For `--baseline`, with one test on each side.

Runs of one test are correlated, so they are not independent samples. Arrivals are cut into batches (batch means: Law,
Simulation Modeling and Analysis, 9.5), batches of the same arrivals are paired, and only a difference beyond the usual
variation between equal tests counts as a regression.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.latency import duration
from harness.analysis.ledger import ledger
from harness.analysis.stats.compare import Comparison, Measurement, compare
from harness.analysis.timeline import Floats, Timeline
from harness.model.baseline import BATCHES, LEAST_BATCHES, LEAST_RUNS, Baseline, differences
from harness.model.phases import SUCCEEDED

RUN_DURATION, FAILED_RATIO = "run.duration", "failed_ratio"
TOLERANCE = 0.10  # equal tests differ by about 5 %: twice that is a change
_FAILED_TOLERANCE = 0.01
_SEED = 7


@dataclass(frozen=True, slots=True)
class Regression:
    """A test compared with an earlier one.

    Attributes:
        baseline: the earlier test's name.
        comparison: of the runs' durations by batches; none when too few runs succeeded.
        failed: share of failed runs, before and after.
        reasons: what is significantly worse; empty when nothing is.
        differences: settings in which the two tests differ and which may explain a change.
    """

    baseline: str
    comparison: Comparison | None
    failed: tuple[float, float]
    reasons: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The outcome in one or two sentences."""
        if self.reasons:
            return " ".join(self.reasons)
        if self.comparison is None:
            return f"Durations can't be compared: fewer than {LEAST_RUNS} runs succeeded."
        return self.comparison.sentence


def regression(baseline: Baseline, timeline: Timeline, *, tolerance: float = TOLERANCE) -> Regression:
    """Compare the durations of runs that succeeded, and the share that failed."""
    before, after = np.array(baseline.batches_s, dtype=float), batches(timeline)
    found = None
    both = np.flatnonzero(np.isfinite(before) & np.isfinite(after)).tolist()
    if len(both) >= LEAST_BATCHES:
        rows = [Measurement("baseline", "", str(k), RUN_DURATION, float(before[k])) for k in both]
        rows += [Measurement("this test", "", str(k), RUN_DURATION, float(after[k])) for k in both]
        (found,) = compare(rows, np.random.default_rng(_SEED), paired=True)
    failed = baseline.failed_ratio, _failed(timeline)
    reasons = []
    if found is not None and found.significant and found.low is not None and found.low > tolerance:
        reasons.append(found.sentence)
    if failed[1] > failed[0] + max(_FAILED_TOLERANCE, 3 * _deviation(failed, timeline)):
        reasons.append(f"{FAILED_RATIO}: {failed[1]:.1%} of the runs failed, {failed[0]:.1%} in the baseline.")
    return Regression(baseline.name, found, failed, tuple(reasons), differences(baseline.plan, timeline.plan))


def batches(timeline: Timeline) -> Floats:
    """Mean duration of succeeded runs by batch of arrivals; NaN where none succeeded, or too few in all."""
    succeeded = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    if np.count_nonzero(succeeded) < LEAST_RUNS:
        return np.full(BATCHES, np.nan)
    batch = np.arange(succeeded.size) * BATCHES // succeeded.size
    seconds = np.where(succeeded, duration(timeline), 0.0)
    count = np.bincount(batch[succeeded], minlength=BATCHES)
    total = np.bincount(batch, weights=seconds, minlength=BATCHES)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _failed(timeline: Timeline) -> float:
    counts = ledger(timeline)
    return counts.share(counts.lost)


def _deviation(failed: tuple[float, float], timeline: Timeline) -> float:
    share = (failed[0] + failed[1]) / 2
    return float(np.sqrt(2 * share * (1 - share) / max(timeline.plan.intended, 1)))
