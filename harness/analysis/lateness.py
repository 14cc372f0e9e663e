"""How late arrivals left, and whether that could change what the test measures.

A lag adds to its own run's duration, and moves the load. A queue that works while there is work is a max-plus linear
system, and those are non-expansive (Baccelli et al., Synchronization and Linearity, 1992, chapter 2): arrivals that are
late by up to d delay no end by more than d. So up to 1 % of the median run duration is within what a test can resolve,
unless arrivals bunch together, which the counts in windows show. Submit latency is as short as the lag: where it is an
objective, absolute limits hold.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.stats.quantiles import share_interval
from harness.analysis.timeline import Floats, Timeline, floats, remembered
from harness.model.phases import GENERATOR_RATE
from harness.model.slo import SUBMIT_LAG, SUBMIT_LATENCY, parse_slo
from harness.model.units import format_duration

# Quantile, its name, its absolute limit in seconds, and its limit as a share of the median run duration.
LIMITS = ((0.5, "p50", 0.005, 0.01), (0.99, "p99", 0.050, 0.01), (1.0, "maximum", 0.250, 0.05))
# Of so many arrivals that it leaves out one, p99.9 stands for the maximum: a single one changes nothing.
_RARE, _MANY = 0.999, 1000
_OF_MANY = (*LIMITS[:-1], (_RARE, "p99.9", *LIMITS[-1][2:]))
_WINDOW_S = 1.0
_IN_WINDOW = 10  # arrivals in a window, at least: with fewer, one that crosses its edge counts for too much
_DISPERSION = 1.0  # of the counts around those of the schedule: 0 as scheduled, 1 if they scatter as random arrivals do
_UNMEASURED_RATE = 2000.0  # of a bare loop, in folders that don't record it


@dataclass(frozen=True, slots=True)
class Lateness:
    """Quantiles, the median of the durations that the test measures, and why the load is not the promised one."""

    p50_s: float
    p99_s: float
    max_s: float
    measured_s: float
    reasons: tuple[str, ...]


@remembered
def judged_lateness(timeline: Timeline) -> Lateness:
    """The lateness of all arrivals, judged by what it could change."""
    late = lateness(timeline)
    sent = np.isfinite(late)
    late, due = late[sent], floats(timeline.runs, "due_s")[sent]
    objectives = {parse_slo(text).quantity for text in timeline.plan.slos}
    exact = bool(objectives & {SUBMIT_LATENCY, SUBMIT_LAG})
    measured_s = _measured(timeline, answers=exact)
    if not late.size:
        return Lateness(0.0, 0.0, 0.0, measured_s, ())
    limits = LIMITS if exact or late.size <= _MANY else _OF_MANY
    p50, p99, last = (float(value) for value in np.quantile(late, [level for level, *_ in limits]))
    reasons = []
    for value, (level, name, absolute_s, share) in zip((p50, p99, last), limits, strict=True):
        limit_s = absolute_s if exact else max(absolute_s, share * measured_s)
        beyond = int((late > limit_s).sum())
        # One late arrival of twenty does not show that more than one in a hundred are.
        if value > limit_s and (level >= _RARE or share_interval(beyond, late.size)[0] > 1 - level):
            of = f", {share:.0%} of the median run duration" if limit_s > absolute_s else ""
            reasons.append(f"arrivals left late: {name} {format_duration(value)}, limit {format_duration(limit_s)}{of}")
    if not reasons and (index := _dispersion(due, late)) > _DISPERSION:
        reasons.append(
            f"arrivals left in bunches: counts in windows of {format_duration(_window(due))} scatter around the "
            f"schedule's with an index of dispersion of {index:.1f}, limit {_DISPERSION:.0f}"
        )
    return Lateness(p50, p99, float(late.max()), measured_s, tuple(reasons))


def lateness(timeline: Timeline) -> Floats:
    """Seconds each arrival left late, by row of `runs`; NaN where nothing was sent.

    That is the lag, less the time that arrivals due at the same instant need to be sent one after the other: a worker's
    k-th is late only after k / rate, the rate of a bare loop in that worker just before the test.
    """
    runs = timeline.runs
    due, worker = floats(runs, "due_s"), floats(runs, "worker")
    order = np.lexsort((floats(runs, "seq"), worker, due))
    new = np.ones(order.size, dtype=bool)
    new[1:] = (np.diff(due[order]) != 0) | (np.diff(worker[order]) != 0)
    starts = np.maximum.accumulate(np.where(new, np.arange(order.size), 0))
    rank = np.empty(order.size)
    rank[order] = np.arange(order.size) - starts
    return np.asarray(np.maximum(floats(runs, "sent_s") - due - rank / _rates(timeline, worker), 0.0), dtype=np.float64)


def _rates(timeline: Timeline, worker: Floats) -> Floats:
    """Submissions per second that a bare loop sent, by row of `runs`."""
    samples = timeline.labelled(GENERATOR_RATE, "worker")
    known = {name: rate for name, rate in zip(samples["worker"], floats(samples, "value"), strict=True) if rate > 0}
    workers, place = np.unique(worker, return_inverse=True)
    rates = [known.get(f"{number:.0f}", _UNMEASURED_RATE) for number in workers.tolist()]
    return np.array(rates, dtype=np.float64)[place]


def _measured(timeline: Timeline, *, answers: bool) -> float:
    """The median duration of runs, or of `answers` where no run's end is known; 0 if neither is known.

    Runs that have not ended last at least until the end of the observation. With timestamps of two clocks, a short one
    may come out negative.
    """
    runs, due = timeline.runs, floats(timeline.runs, "due_s")
    over = np.where(timeline.is_open, timeline.end_s, floats(runs, "over_s"))
    for ended in (floats(runs, "answered_s"),) if answers else (over, floats(runs, "answered_s")):
        taken = ended - due
        if (taken > 0).any():
            return float(np.median(taken[taken > 0]))
    return 0.0


def _window(due: Floats) -> float:
    return max(_WINDOW_S, _IN_WINDOW * float(np.median(np.diff(np.sort(due)))) if due.size > 1 else 0.0)


def _dispersion(due: Floats, late: Floats) -> float:
    """The index of dispersion of the counts sent around those due, in windows.

    What was never later than a quarter of a second stays in its window; of two ways to place the windows, that counts
    in which fewer arrivals cross an edge.
    """
    width_s = _window(due)
    sent = due + np.where(late > LIMITS[-1][2], late, 0.0)
    found = []
    for shift in (0.0, 0.5):
        places = [np.floor(at / width_s + shift).astype(np.int64) for at in (due, sent)]
        _, where = np.unique(np.concatenate(places), return_inverse=True)
        moved = np.bincount(where[due.size :], minlength=where.max() + 1) - np.bincount(
            where[: due.size], minlength=where.max() + 1
        )
        found.append(float((moved**2).sum()) / due.size)
    return min(found)
