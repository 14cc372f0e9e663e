"""The state of a running test, from its ledger and its due times."""

from bisect import bisect_right
from math import inf

from harness.drive.session.setup import LoadTest
from harness.model.live.state import LiveLoad, Stage
from harness.model.schedules import Concurrency, Schedule

_MIN_ENDED_RUNS, _MIN_ENDED_SHARE = 10, 0.05  # runs: their rate says how long the others take


def live_load(stage: Stage, test: LoadTest, t0_at: int, now_at: int, ends_age_s: float | None = None) -> LiveLoad:
    """The state at `now_at`; `t0_at` is 0 before the dispatch. Resets the worst lag since the last call."""
    counts, lags, elapsed_s = test.ledger.counts, test.ledger.lags, (now_at - t0_at) / 1e9
    ended = counts.done + counts.failed
    awaited = 0
    if stage is Stage.DISPATCHING:
        awaited = max(0, bisect_right(test.offsets, elapsed_s) - counts.recorded)
    per_s = per_hour = eta_s = None
    if stage in {Stage.DISPATCHING, Stage.DRAINING}:  # afterwards the report has the exact figures
        per_s = test.end_rate.per_s(elapsed_s, ended)
    if per_s:
        per_hour = 3600 * counts.done / max(elapsed_s, 1.0)  # of the whole test, as in the report
    if per_s and ended >= min(_MIN_ENDED_RUNS, _MIN_ENDED_SHARE * counts.intended):
        open_s = (counts.intended - counts.rejected - counts.missed - ended) / per_s
        eta_s = max(open_s, _last_due_s(test) - elapsed_s)
    return LiveLoad(
        stage=stage,
        load=_describe(test.schedule),
        counts=counts,
        awaited=awaited,
        lag_s=lags.take_worst(),
        lag_p99_s=lags.quantile(0.99),
        succeeded_per_hour=per_hour,
        eta_s=eta_s,
        ends_age_s=ends_age_s,
    )


def _last_due_s(test: LoadTest) -> float:
    """When the last arrival is due, in seconds after t0; -inf where the ends of runs decide."""
    if not isinstance(test.schedule, Concurrency):
        return test.offsets[-1]
    return test.schedule.length_s if test.schedule.length_s < inf else -inf


def _describe(schedule: Schedule | Concurrency) -> str:
    if isinstance(schedule, Concurrency):
        limit = schedule.most_in_flight
        return f"concurrency: up to {limit} runs in flight (closed model: a slow platform gets fewer submissions)"
    return f"{schedule.name} (open model: a slow response never delays the next submission)"
