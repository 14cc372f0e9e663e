"""The figures by which tests are compared, and what another schedule of the same load changes."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from harness.analysis import tenants
from harness.analysis.cost.cost import cost
from harness.analysis.latency import duration, latencies
from harness.analysis.ledger import ledger
from harness.analysis.services import processes
from harness.analysis.services.workers import workers
from harness.analysis.stats.compare import Measurement
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline
from harness.analysis.waits.wasted_work import wasted_work
from harness.model.phases import SUCCEEDED
from harness.model.units import format_duration

MEAN = "run.duration mean (s)"
P95, MAKESPAN, THROUGHPUT = "run.duration p95 (s)", "makespan (s)", "throughput (runs/h)"
GOODPUT, MONEY = "goodput (runs/node-hour)", "goodput (runs/money)"
WAITING, TAIL, IMBALANCE = "waiting (share of time)", "idle tail (share of time)", "imbalance (Gini)"
# The schedule sets how long a test takes, not the platform.
OF_THE_SCHEDULE = (MAKESPAN, THROUGHPUT, GOODPUT, MONEY)


def measured(timeline: Timeline) -> dict[str, float]:
    """One figure per metric and test, since the runs of a test are not independent of each other."""
    seen, counts, over = latencies(timeline), ledger(timeline), throughput(timeline)
    paid, again = cost(timeline), wasted_work(timeline)
    # How processes share machines is up to the test, not to a platform.
    shared = workers(timeline) if processes.processes(timeline) is None else None
    values = {
        MEAN: _mean(timeline),
        "run.duration p50 (s)": seen.duration.at(0.5).value,
        P95: seen.duration.at(0.95).value,
        "submit.latency p95 (s)": seen.latency.at(0.95).value,
        MAKESPAN: over.makespan_s,
        THROUGHPUT: over.per_hour,
        "failed_ratio": counts.share(counts.lost),
        GOODPUT: counts.succeeded / paid.node_hours if paid and paid.node_hours else None,
        MONEY: counts.succeeded / paid.cost if paid and paid.cost else None,
        "work lost (share)": again.lost_s / again.worked_s if again and again.worked_s else None,
        WAITING: shared.waiting if shared else None,
        TAIL: shared.tail_s / shared.over_s if shared and shared.over_s else None,
        IMBALANCE: shared.gini if shared else None,
        **processes.figures(timeline),
        **dict(tenants.figures(timeline)),
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def primary(schedules: Iterable[str]) -> str:
    """The metric to judge tests by: their mean run duration, or how long bursts took in all.

    Args:
        schedules: the names of all tests' schedules.
    """
    return MAKESPAN if set(schedules) == {"burst"} else MEAN


def _mean(timeline: Timeline) -> float | None:
    """Of runs that succeeded; none where some are still in flight, as the longest would be missing."""
    lasted = duration(timeline)[(timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)]
    return float(lasted.mean()) if lasted.size and not timeline.is_open.any() else None


def gains(measurements: Iterable[Measurement], schedules: Mapping[str, str]) -> tuple[str, ...]:
    """What each variant's schedule changes against the first one's, as sentences; none where the schedules are equal.

    Args:
        measurements: from `measure`.
        schedules: a description by variant.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for m in measurements:
        values.setdefault((m.variant, m.metric), []).append(m.value)
    (first, usual), *others = schedules.items()
    return tuple(
        f"{variant} ({schedule}) against {first} ({usual}): {changes}."
        for variant, schedule in others
        if schedule != usual and (changes := "; ".join(_changes(values, first, variant)))
    )


def _changes(values: Mapping[tuple[str, str], Sequence[float]], first: str, variant: str) -> Iterable[str]:
    templates = (
        (P95, "run duration p95 {} instead of {}", format_duration),
        (WAITING, "time executions wait for a replica {} instead of {}", "{:.0%}".format),
        (TAIL, "time with some replicas idle at the end {} instead of {}", "{:.0%}".format),
        (IMBALANCE, "Gini coefficient of the replicas' load {} instead of {}", "{:.2f}".format),
        (MAKESPAN, "makespan {} instead of {}", format_duration),
    )
    for metric, text, shown in templates:
        if (first, metric) in values and (variant, metric) in values:
            yield text.format(*(shown(fmean(values[name, metric])) for name in (variant, first)))
