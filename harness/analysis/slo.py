"""Were the SLOs met? Grammar and parsing: `harness.model.slo`."""

from dataclasses import dataclass, replace

import numpy as np

from harness.analysis.latency import duration
from harness.analysis.ledger import ledger
from harness.analysis.stats.quantiles import quantile, share_interval
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


@dataclass(frozen=True, slots=True)
class SloResult:
    """`met` is none when the SLO can't be judged; `why` gives the reason. `low` and `high` are a 95 % interval."""

    slo: Slo
    value: float | None
    met: bool | None
    low: float | None = None
    high: float | None = None
    why: str = ""

    @property
    def decided(self) -> bool:
        """The whole interval is on one side of the limit; without an interval the value decides."""
        return all(self.slo.holds(end) == self.met for end in (self.low, self.high) if end is not None)


def judge(timeline: Timeline) -> tuple[SloResult, ...]:
    """Judge every SLO of the plan, and the plan's limit on rejected submissions where it is exceeded.

    Raises:
        ConfigError: an SLO can't be parsed.
    """
    given = tuple(_judge(timeline, parse_slo(text)) for text in timeline.plan.slos)
    return (*given, *_too_many_errors(timeline, given))


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
        return SloResult(slo, value, slo.holds(value))
    counts = ledger(timeline)
    count = {
        "failed_ratio": counts.lost,
        REJECTED_RATIO: counts.rejected,
        "missed_ratio": counts.missed,
        "censored_ratio": counts.in_flight,
        "succeeded_ratio": counts.succeeded,
    }[slo.measure]
    low, high = share_interval(count, counts.intended) if counts.intended else (None, None)
    return SloResult(slo, counts.share(count), slo.holds(counts.share(count)), low, high)


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
        found = quantile(values, slo.percentile / 100, over)
        if found.value is not None:
            return SloResult(slo, found.value, slo.holds(found.value), found.low, found.high)
        return _bounded(slo, found.at_least, unfinished)
    match slo.measure:
        case "mean":
            value = float(values.mean())
        case "min":
            value = float(values.min())
        case _:
            value = float(values.max())
    if unfinished:
        return _bounded(slo, value, unfinished)
    return SloResult(slo, value, slo.holds(value))


def _bounded(slo: Slo, at_least: float, unfinished: int) -> SloResult:
    """Only a lower bound is known: enough to miss an upper limit, or to meet a lower one."""
    why = f"{unfinished:,} runs had not finished: the value is at least {at_least:.6g} s"
    upper = slo.operator in {"<", "<="}
    if slo.measure == "min":
        return SloResult(slo, None, None, why=why)
    known = slo.holds(at_least) != upper
    return SloResult(slo, at_least, (not upper) if known else None, low=at_least, why=why)
