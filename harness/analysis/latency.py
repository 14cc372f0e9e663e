"""Latencies of submissions and durations of runs, counted from the due time: no coordinated omission."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.stats.quantiles import Summary, summarize
from harness.analysis.timeline import Floats, Timeline, floats


@dataclass(frozen=True, slots=True)
class Latencies:
    """Summaries, in seconds.

    Attributes:
        lag: from due to sent: the load generator's own delay.
        latency: from due to answered.
        service: from sent to answered.
        duration: of runs from due to end; unfinished runs are censored, not dropped.
    """

    lag: Summary
    latency: Summary
    service: Summary
    duration: Summary


def latencies(timeline: Timeline) -> Latencies:
    """Summaries with quantiles and their intervals."""
    runs = timeline.runs
    due, sent, answered = (floats(runs, name) for name in ("due_s", "sent_s", "answered_s"))
    return Latencies(
        lag=summarize(sent - due),
        latency=summarize(answered - due),
        service=summarize(answered - sent),
        duration=summarize(duration(timeline), timeline.is_over),
    )


def duration(timeline: Timeline) -> Floats:
    """Per row of `runs`: seconds from due to end; of an unfinished run, to the end of the observation."""
    runs = timeline.runs
    until = np.where(timeline.is_over, floats(runs, "over_s"), np.where(timeline.is_open, timeline.end_s, np.nan))
    return np.asarray(until - floats(runs, "due_s"), dtype=np.float64)
