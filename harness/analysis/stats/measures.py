"""What one test comes to, in figures that tests are compared by; and what another schedule of the same load gains."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from harness.analysis.cost.cost import cost
from harness.analysis.latency import latencies
from harness.analysis.ledger import ledger
from harness.analysis.services.workers import workers
from harness.analysis.stats.compare import Measurement
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline
from harness.analysis.waits.wasted_work import wasted_work
from harness.model.units import format_duration

P95, MAKESPAN, THROUGHPUT = "run.duration p95 (s)", "makespan (s)", "throughput (runs/h)"
GOODPUT, MONEY = "goodput (runs/node-hour)", "goodput (runs/money)"
WAITING, TAIL, IMBALANCE = "waiting (share of time)", "idle tail (share of time)", "imbalance (Gini)"
# How long a test takes is for its schedule to say, not for the platform.
OF_THE_SCHEDULE = (MAKESPAN, THROUGHPUT, GOODPUT, MONEY)


def measure(variant: str, scale: str, repetition: str, timeline: Timeline) -> list[Measurement]:
    """One figure of a kind a test, since its runs are not independent of each other."""
    seen, counts, over = latencies(timeline), ledger(timeline), throughput(timeline)
    paid, again, shared = cost(timeline), wasted_work(timeline), workers(timeline)
    values = {
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
    }
    return [Measurement(variant, scale, repetition, name, v) for name, v in values.items() if v is not None]


def gains(measurements: Iterable[Measurement], schedules: Mapping[str, str]) -> tuple[str, ...]:
    """What each variant's schedule changes against the first one's, for people; none where they are the same.

    Args:
        measurements: of `measure`.
        schedules: in words, by variant.
    """
    values: dict[tuple[str, str], list[float]] = {}
    for m in measurements:
        values.setdefault((m.variant, m.metric), []).append(m.value)
    (first, usual), *others = schedules.items()
    return tuple(
        f"{variant} ({schedule}) against {first} ({usual}): {said}."
        for variant, schedule in others
        if schedule != usual and (said := "; ".join(_changes(values, first, variant)))
    )


def _changes(values: Mapping[tuple[str, str], Sequence[float]], first: str, variant: str) -> Iterable[str]:
    told = (
        (P95, "19 of 20 runs are over within {} instead of {}", format_duration),
        (WAITING, "executions wait for a replica in {} of their time instead of {}", "{:.0%}".format),
        (
            TAIL,
            "some replicas are idle at the end, others not, for {} of the time instead of {}",
            "{:.0%}".format,
        ),
        (IMBALANCE, "the Gini coefficient of the replicas' work is {} instead of {}", "{:.2f}".format),
        (MAKESPAN, "all is over after {} instead of {}", format_duration),
    )
    for metric, text, shown in told:
        if (first, metric) in values and (variant, metric) in values:
            yield text.format(*(shown(fmean(values[name, metric])) for name in (variant, first)))
