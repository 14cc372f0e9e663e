"""Which steps to run on spot machines, and with which retries: recorded attempts, run again with drawn losses.

Each recorded attempt that ended well represents one step. It is repeated many times; losses are drawn at the upper
end of the measured rate's interval, and each is followed by a recorded wait for the next attempt. Lengths, waits and
rate are as recorded; that losses come at a constant rate, and that each is tried again, is assumed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, expm1, log1p

import numpy as np
import pandas as pd

from harness.analysis.spot.attempts import attempts
from harness.analysis.spot.recorded import Losses, losses
from harness.analysis.timeline import Floats, Timeline
from harness.model.phases import SUCCEEDED
from harness.model.slo import parse_slo

_DRIVER = "-driver"
_MOST_RETRIES = 20
_DRAWS = 20_000  # of each step
_SEED = 23
_FAILING = 0.01  # of the runs, where no objective says how many may fail
_USUAL_WAIT_S = 120.0  # for the next attempt, where none was recorded: the cluster notices a loss after 40 to 105 s
_SHARE_OF_STEPS = 0.999  # of the steps end within the recommended time
_BACKOFF_S = 300.0  # where machines are taken back in bursts: as long as they count as one
_LEAST_MAX_S, _ROUND_S = 3600.0, 1800.0


@dataclass(frozen=True, slots=True)
class StepAdvice:
    """Advice for one step.

    Attributes:
        task: the step's name.
        recorded: attempts that ended well, which represent the step.
        length_s: their mean length.
        spot: whether to run it on spot machines; none while prices are unknown.
        retries: the fewest that keep failures below the limit; none if 20 do not.
        failing: the share of the step's executions that fail with them, or with 20.
        attempts: expected, with that many retries.
        lost_s: expected seconds of work lost in each execution.
        added_s: expected seconds that losses add to each succeeded execution.
        backoff_s: recommended.
        max_s: recommended longest time of all attempts together; Argo ends the step after it.
        break_even: spot is cheaper below this share of the price on demand.
    """

    task: str
    recorded: int
    length_s: float
    spot: bool | None
    retries: int | None
    failing: float
    attempts: float
    lost_s: float
    added_s: float
    backoff_s: float
    max_s: float
    break_even: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for all steps.

    Attributes:
        rate_per_hour: of losses of one machine, as assumed.
        limit: the share of runs that may fail.
        from_slo: the limit is that of an objective of the plan.
        failing: the share of succeeded runs that would fail with all steps on spot machines and the advised retries;
            none when no run succeeded.
        steps: by name.
    """

    rate_per_hour: float
    limit: float
    from_slo: bool
    failing: float | None
    steps: tuple[StepAdvice, ...]


def advice(timeline: Timeline) -> Advice | None:
    """Advise on each step; none when no step ended, or too few machines were seen for too short a time."""
    found = losses(timeline)
    if found is None or found.rate is None or not found.rate.is_known:
        return None
    pods = attempts(timeline)
    executors = pods[~pods["task"].str.endswith(_DRIVER) & (pods["task"] != "")]
    whole = executors[executors["whole"] & (executors["worked_s"] > 0)]
    if not len(whole):
        return None
    limit, from_slo = _limit(timeline)
    succeeded = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    of_runs = whole[succeeded[whole["row"].to_numpy()]]
    per_run = max(1, ceil(len(of_runs) / max(of_runs["row"].nunique(), 1)))
    steps = tuple(_steps(whole, found, _waits(executors), share_of(limit, per_run)))
    failing = {step.task: step.failing for step in steps}
    kept = 1 - of_runs["task"].map(failing).to_numpy(dtype=np.float64)
    runs = pd.Series(kept).groupby(of_runs["row"].to_numpy()).prod().to_numpy()
    return Advice(found.rate.high, limit, from_slo, 1 - float(runs.mean()) if runs.size else None, steps)


def _limit(timeline: Timeline) -> tuple[float, bool]:
    """The share of runs that may fail, by the strictest objective."""
    limits = []
    for slo in map(parse_slo, timeline.plan.slos):
        if slo.measure == "failed_ratio" and slo.is_upper:
            limits.append(slo.limit)
        elif slo.measure == "succeeded_ratio" and not slo.is_upper:
            limits.append(1 - slo.limit)
    usable = [limit for limit in limits if 0 < limit < 1]
    return (min(usable), True) if usable else (_FAILING, False)


def _waits(executors: pd.DataFrame) -> Floats:
    """Recorded seconds from the end of a lost attempt's work to the start of the next one's."""
    waits = executors["next_s"] - executors["started_s"] - executors["worked_s"]
    found = waits[executors["lost"]].to_numpy(dtype=np.float64)
    found = found[np.isfinite(found) & (found >= 0)]
    return found if found.size else np.array([_USUAL_WAIT_S])


def _steps(whole: pd.DataFrame, found: Losses, waits: Floats, share: float) -> Iterable[StepAdvice]:
    assert found.rate is not None
    ratio = None if found.comparison is None else found.comparison.price_ratio
    backoff_s = _BACKOFF_S if found.clustered else 0.0
    for task, rows in whole.groupby("task", sort=True):
        lengths = rows["worked_s"].to_numpy(dtype=np.float64)
        drawn = _Draws.of(lengths, found.rate.high / 3600, waits + backoff_s)
        retries = drawn.fewest_retries(share)
        used = _MOST_RETRIES if retries is None else retries
        well = drawn.losses <= used
        lost_s = float(drawn.lost_s(used).mean())
        break_even = float(lengths.mean()) / (float(lengths.mean()) + lost_s)
        late_s = float(np.quantile(drawn.total_s[well], _SHARE_OF_STEPS)) if well.any() else 0.0
        yield StepAdvice(
            task=str(task),
            recorded=lengths.size,
            length_s=float(lengths.mean()),
            spot=False if retries is None else None if ratio is None else ratio < break_even,
            retries=retries,
            failing=1 - float(well.mean()),
            attempts=1 + float(np.minimum(drawn.losses, used).mean()),
            lost_s=lost_s,
            added_s=float(drawn.added_s[well].mean()) if well.any() else 0.0,
            backoff_s=backoff_s,
            max_s=max(_LEAST_MAX_S, ceil(late_s / _ROUND_S) * _ROUND_S),
            break_even=break_even,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Executions of one step, drawn. Shape (n,) each but the last, which is (n, 21).

    Attributes:
        losses: before it succeeds; more than 20 where it does not within 21 attempts.
        total_s: from the first attempt's start to the end.
        added_s: of it, beyond the step's own length.
        worked_s: of attempts that were lost, in order; 0 after the last.
    """

    losses: Floats
    total_s: Floats
    added_s: Floats
    worked_s: Floats

    @classmethod
    def of(cls, lengths: Floats, rate: float, waits: Floats) -> "_Draws":
        random = np.random.default_rng(_SEED)
        count = max(1, _DRAWS // lengths.size) * lengths.size
        length = np.resize(lengths, count)
        lost_after = random.exponential(1 / rate, (count, _MOST_RETRIES + 1))
        lost = np.logical_and.accumulate(lost_after < length[:, None], axis=1)
        worked = np.where(lost, lost_after, 0.0)
        waited = np.where(lost, random.choice(waits, lost.shape), 0.0)
        added = worked.sum(axis=1) + waited.sum(axis=1)
        return cls(lost.sum(axis=1).astype(np.float64), length + added, added, worked)

    def fewest_retries(self, share: float) -> int | None:
        """With which at most this share fails."""
        failing = [float((self.losses > retries).mean()) for retries in range(_MOST_RETRIES + 1)]
        return next((retries for retries, each in enumerate(failing) if each <= share), None)

    def lost_s(self, retries: int) -> Floats:
        """Seconds of work lost, if there are that many retries."""
        return np.asarray(self.worked_s[:, : retries + 1].sum(axis=1), dtype=np.float64)


def share_of(failing: float, steps: int) -> float:
    """How often one of `steps` independent steps may fail, so that all succeed but for `failing` of the runs."""
    return -expm1(log1p(-failing) / max(steps, 1)) if failing < 1 else 1.0
