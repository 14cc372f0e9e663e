"""The report's tables. Cells are text."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from harness.analysis.result import Result
from harness.analysis.stats.quantiles import Summary
from harness.model.units import counted, format_duration

_MOST_MESSAGES = 300


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; numbers are aligned right, long texts may wrap, whole ones (a name, an id) may not."""

    name: str
    number: bool = False
    long: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text below columns; `count` is the number of rows before any were left out."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    count: str = ""


def phase_table(result: Result) -> Table:
    """Seconds and share of each phase that runs spent time in."""
    phase_breakdown = result.phases
    rows = [
        (phase.name, f"{phase.share:.1%}", *map(seconds_text, (phase.mean_s, phase.p50_s, phase.p95_s, phase.least_s)))
        for phase in phase_breakdown.phases
        if phase.seen
    ]
    note = (
        f"{phase_breakdown.runs:,} finished runs. Platforms timestamp in whole seconds: a phase may be up to one "
        "second below 0."
    )
    if phase_breakdown.reversed:
        note += f" {phase_breakdown.reversed:,} pod intervals that end before they start are left out."
    if phase_breakdown.caveat:
        note += f" {phase_breakdown.caveat[0].upper()}{phase_breakdown.caveat[1:]}."
    return Table("Phases", numbers("Phase", "Share", "Mean", "p50", "p95", "Min"), tuple(rows), note)


def latency_table(result: Result) -> Table:
    """Quantiles with their intervals."""
    measured = result.latencies
    since = "created" if result.observed else "due"
    rows = [_summary_row(f"Run duration: {since} to end", measured.duration)]
    if not result.observed:
        rows = [
            _summary_row("Lag: due to sent", measured.lag),
            _summary_row("Latency: due to answered", measured.latency),
            _summary_row("Service time: sent to answered", measured.service),
            *rows,
        ]
    note = "In brackets: 95% intervals. Unfinished runs are censored (Kaplan-Meier), not dropped."
    if result.knee is not None:
        note += (
            f" With up to {result.knee.in_flight:.0f} runs in flight a run takes {seconds_text(result.knee.level_s)}; "
            f"each further one adds {seconds_text(result.knee.slope_s)}."
        )
    return Table("Latencies", numbers("", "Count", "Censored", "Mean", "p50", "p90", "p95", "p99"), tuple(rows), note)


def error_table(result: Result) -> Table:
    """Messages grouped by what they have in common."""
    rows = [
        (f"{group.count:,}", seconds_text(group.first_s), seconds_text(group.last_s), group.message)
        for group in result.errors[:_MOST_MESSAGES]
    ]
    columns = (Column("Count", number=True), Column("First", number=True), Column("Last", number=True))
    return Table(
        "Errors", (*columns, Column("Message", long=True)), tuple(rows),
        "First and last count from the start of the test. Ids, numbers and times in messages are replaced by <…>.",
    )  # fmt: skip


def bound_table(result: Result) -> Table:
    """The throughput bound of each component."""
    rows = [
        (b.part, f"{b.per_hour:,.0f}/h", f"{b.utilisation:.0%}", seconds_text(b.demand_s), b.how) for b in result.bounds
    ]
    columns = numbers("Component", "Max throughput", "Utilisation", "Service demand")
    note = (
        "Upper bounds by the operational laws, the bottleneck first; service demand is per run. Components that were "
        "never seen at their limit are not listed."
    )
    return Table("Bounds", (*columns, Column("Derived from", long=True)), tuple(rows), note)


def worker_table(result: Result) -> Table:
    """The replicas of a service, and how evenly they shared the work."""
    workers = result.workers
    if workers is None or (result.processes is not None and len(workers.workers) == 1):
        return Table("Replicas", (), ())
    rows = [
        (worker.name, f"{worker.executions:,}", seconds_text(worker.computing_s), seconds_text(worker.busy_s),
         f"{worker.busy_s / workers.over_s:.0%}" if workers.over_s else "", seconds_text(worker.last_s))
        for worker in workers.workers
    ]  # fmt: skip
    note = (
        f"At the end some replicas were idle for {seconds_text(workers.tail_s)} while others still had work. Gini "
        f"coefficient of computing time: {workers.gini:.2f} (0 = perfectly even). Time of executions in the runtime: "
        f"{workers.waiting:.0%} waiting for a worker, {workers.io:.0%} loading and sending data, "
        f"{workers.computing:.0%} computing."
    )
    columns = numbers("Replica", "Executions", "Computing", "Busy", "Utilisation", "Last end")
    return Table("Replicas", columns, tuple(rows), note)


def hosts_text(result: Result) -> str:
    """Where the runs ran, in a few words."""
    if result.processes is not None:
        count = len(result.workers.workers) if result.workers is not None else 0
        return "as processes" + (f" on {counted(count, 'machine')}" if count else "")
    if result.workers is not None:
        return f"on {len(result.workers.workers)} replicas"
    machines = None if result.peak_nodes is None else f"on up to {counted(result.peak_nodes, 'node')}"
    if result.virtual is not None:
        also = counted(result.virtual.nodes, "virtual node")
        return f"on {also}" if machines is None else f"{machines} and {also}"
    return machines or "nodes not observed"


def numbers(first: str, *names: str) -> tuple[Column, ...]:
    """A column of text, then columns of numbers."""
    return (Column(first), *(Column(name, number=True) for name in names))


def seconds_text(value: float | None) -> str:
    """A duration as text; "" when it is missing."""
    return "" if value is None or not isfinite(value) else format_duration(value)


def amount_text(value: float | None) -> str:
    """An amount with at least two significant digits; "" when it is missing or 0."""
    if not value:
        return ""
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2
    return f"{value:,.{digits}f}" if value >= 0.1 else f"{value:.2g}"


def _summary_row(name: str, summary: Summary) -> tuple[str, ...]:
    return (name, f"{summary.count:,}", f"{summary.censored:,}", seconds_text(summary.mean), *_quantiles(summary))


def _quantiles(summary: Summary) -> Iterable[str]:
    for q in summary.quantiles:
        if q.value is None:
            yield f"> {seconds_text(q.at_least)}" if summary.count else ""
            continue
        low, high = seconds_text(q.low) or "…", seconds_text(q.high) or "…"
        yield f"{seconds_text(q.value)} ({low}, {high})"
