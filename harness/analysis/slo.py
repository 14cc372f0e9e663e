"""Were the SLOs met, and is that proven? Grammar and parsing: `harness.model.slo`."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from harness.analysis.latency import duration
from harness.analysis.ledger import ledger
from harness.analysis.stats.quantiles import mean_interval, quantile, share_interval, spread_of_ranks
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Bools, Floats, Timeline, floats
from harness.analysis.waits.waits import waits
from harness.model.records import Outcome
from harness.model.slo import (
    PHASE_QUANTITIES,
    REJECTED_RATIO,
    RUN_DURATION,
    SUBMIT_LAG,
    SUBMIT_LATENCY,
    SUBMIT_SERVICE,
    THROUGHPUT,
    Slo,
    parse_slo,
)

_MOST_RUNS = 10_000_000  # a larger number of runs that would prove an SLO is not worth saying


class State(StrEnum):
    """What is known of an SLO; the values are shown to people.

    An estimate that fails its limit is FAILED, however wide its interval is. One that meets it is only UNPROVEN while
    its interval contains the limit. Without an estimate the SLO is INCONCLUSIVE.
    """

    MET = "met"
    UNPROVEN = "met, not proven"
    INCONCLUSIVE = "inconclusive"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class SloResult:
    """`met` is none when there is no estimate; `why` gives the reason. `low` and `high` are a 95 % interval.

    Attributes:
        bounded: the estimate is one of several possible, so that it needs its interval; false for what this test's
            runs did as a whole, such as the longest of them.
        runs_needed: about how many runs would prove what is met, if they were like these; none where that is unknown.
    """

    slo: Slo
    value: float | None
    met: bool | None
    low: float | None = None
    high: float | None = None
    why: str = ""
    bounded: bool = True
    runs_needed: int | None = None

    @property
    def state(self) -> State:
        """What is known of it."""
        if self.met is None:
            return State.INCONCLUSIVE
        if not self.met:
            return State.FAILED
        end = self.high if self.slo.is_upper else self.low
        return State.MET if not self.bounded or (end is not None and self.slo.holds(end)) else State.UNPROVEN


def judge(timeline: Timeline) -> tuple[SloResult, ...]:
    """Judge every SLO of the plan, and the plan's limit on rejected submissions where it is exceeded.

    Raises:
        ConfigError: an SLO can't be parsed.
    """
    results = tuple(_judge(timeline, parse_slo(text)) for text in timeline.plan.slos)
    return (*results, *_too_many_errors(timeline, results))


def _too_many_errors(timeline: Timeline, given: tuple[SloResult, ...]) -> tuple[SloResult, ...]:
    """Without any SLO too, a test does not pass while the platform rejects its submissions."""
    most = timeline.plan.limits.max_error_ratio
    counts = ledger(timeline)
    missed = any(result.slo.measure == REJECTED_RATIO and result.met is False for result in given)
    if missed or counts.share(counts.rejected) <= most:
        return ()
    slo = parse_slo(f"{REJECTED_RATIO} <= {most:.6g}")
    return (_judge(timeline, replace(slo, text=f"{slo.text} (--max-error-ratio)")),)


def _judge(timeline: Timeline, slo: Slo) -> SloResult:
    if slo.quantity:
        values, over = _sample(timeline, slo.quantity)
        if slo.quantity == RUN_DURATION and values.size and over.all() and not ledger(timeline).succeeded:
            return SloResult(slo, None, None, why="no run succeeded: the time to failure is not a run duration")
        return _statistic(slo, values, over)
    if slo.measure == THROUGHPUT:
        value = throughput(timeline).per_hour / 3600
        return SloResult(slo, value, slo.holds(value), bounded=False)
    counts = ledger(timeline)
    count = {
        "failed_ratio": counts.lost,
        REJECTED_RATIO: counts.rejected,
        "missed_ratio": counts.missed,
        "censored_ratio": counts.in_flight,
        "succeeded_ratio": counts.succeeded,
    }[slo.measure]
    return _share(slo, count, counts.intended)


def _share(slo: Slo, count: int, total: int) -> SloResult:
    if not total:
        return SloResult(slo, 0.0, slo.holds(0.0), bounded=False)
    share = count / total
    low, high = share_interval(count, total)

    def proven(runs: int) -> bool:
        return all(slo.holds(end) for end in share_interval(round(share * runs), runs))

    return _with_need(SloResult(slo, share, slo.holds(share), low, high), total, proven)


def _sample(timeline: Timeline, quantity: str) -> tuple[Floats, Bools]:
    """The finite values of a quantity, and which of them are final."""
    runs = timeline.runs
    due, sent, answered = (floats(runs, name) for name in ("due_s", "sent_s", "answered_s"))
    over = np.ones(len(runs), dtype=bool)
    match quantity:
        case _ if quantity == RUN_DURATION:
            accepted = (runs["outcome"] == Outcome.ACCEPTED.value).to_numpy(dtype=bool)
            values, over = np.where(accepted, duration(timeline), np.nan), timeline.is_over
        case _ if quantity == SUBMIT_LATENCY:
            values = answered - due
        case _ if quantity == SUBMIT_SERVICE:
            values = answered - sent
        case _ if quantity == SUBMIT_LAG:
            values = sent - due
        case _:
            values = waits(timeline).of(PHASE_QUANTITIES[quantity])
            over = np.ones(values.size, dtype=bool)
    known = np.isfinite(values)
    return values[known], over[known]


def _statistic(slo: Slo, values: Floats, over: Bools) -> SloResult:
    if not values.size:
        return SloResult(slo, None, None, why=f"no {slo.quantity} was observed")
    unfinished = int(np.count_nonzero(~over))
    if slo.percentile is not None:
        return _quantile(slo, slo.percentile / 100, values, over)
    if slo.measure != "mean":
        value = float(values.min() if slo.measure == "min" else values.max())
        return (
            _bounded(slo, value, unfinished) if unfinished else SloResult(slo, value, slo.holds(value), bounded=False)
        )
    value = float(values.mean())
    if unfinished:
        return _bounded(slo, value, unfinished)
    low, high = mean_interval(values)
    result = SloResult(slo, value, slo.holds(value), low, high)
    return _with_need(result, values.size, lambda runs: _mean_proven(slo, values, runs))


def _mean_proven(slo: Slo, values: Floats, runs: int) -> bool:
    """Whether `runs` runs with the mean and the spread of these would prove it."""
    low, high = mean_interval(values, runs)
    return low is not None and high is not None and slo.holds(low) and slo.holds(high)


def _quantile(slo: Slo, level: float, values: Floats, over: Bools) -> SloResult:
    found = quantile(values, level, over)
    least = math.ceil(round(1 / min(level, 1 - level), 6))
    if values.size < least:
        # The estimate is the longest or the shortest run. It may still be certain that the limit is missed.
        end = found.low if slo.is_upper else found.high
        if end is None or slo.holds(end):
            why = f"{values.size:,} values are too few for this quantile, it takes {least:,} or more"
            return SloResult(slo, found.value, None, found.low, found.high, why)
    if found.value is None:
        return _bounded(slo, found.at_least, int(np.count_nonzero(~over)))
    judged = SloResult(slo, found.value, slo.holds(found.value), found.low, found.high)
    if not over.all():
        return judged
    holding = float(np.mean([slo.holds(value) for value in values]))
    wanted = level if slo.is_upper else 1 - level

    def proven(runs: int) -> bool:
        return math.ceil(runs * wanted + spread_of_ranks(runs, wanted)) < math.floor(runs * holding)

    return _with_need(judged, values.size, proven)


def _with_need(found: SloResult, runs: int, proven: Callable[[int], bool]) -> SloResult:
    """Say how many runs would prove what is met: the least number of which `proven` holds, to two digits."""
    if found.state is not State.UNPROVEN:
        return found
    enough = runs
    while not proven(enough):
        enough *= 2
        if enough > _MOST_RUNS:
            return found
    too_few = max(enough // 2, 1)
    while enough - too_few > max(1, enough // 100):
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if proven(middle) else (middle, enough)
    digits = max(0, len(str(enough)) - 2)
    return replace(found, runs_needed=-(-enough // 10**digits) * 10**digits)


def _bounded(slo: Slo, at_least: float, unfinished: int) -> SloResult:
    """Only a lower bound is known: enough to miss an upper limit, or to meet a lower one."""
    why = f"{unfinished:,} runs had not finished: the value is at least {at_least:.6g} s"
    known = slo.measure != "min" and slo.holds(at_least) != slo.is_upper
    if not known:
        return SloResult(slo, None, None, why=why)
    return SloResult(slo, at_least, not slo.is_upper, low=at_least, why=why)
