"""The report's tables: what was measured, and what it means. Cells are text."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.analysis.stats.quantiles import Summary
from harness.model.phases import RUN_PHASES
from harness.model.units import format_duration
from reports.report import Report

_MOST_MESSAGES = 300


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; numbers are set right, long texts may wrap, what is whole (a name, an id) may not."""

    name: str
    number: bool = False
    long: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text below columns. `count` says how many rows there are in all."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    count: str = ""


def phase_table(report: Report) -> Table:
    """Seconds and share of each phase."""
    split = report.waits
    shares = split.shares()
    rows = []
    for name in RUN_PHASES if split.row.size else ():
        seconds = split.of(name)
        low, middle, high = (float(v) for v in np.quantile(seconds, (0.0, 0.5, 0.95), method="inverted_cdf"))
        if seconds.any():
            rows.append((name, f"{shares[name]:.1%}", *map(seconds_text, (float(seconds.mean()), middle, high, low))))
    note = (
        f"{split.row.size:,} runs that are over. Platforms stamp whole seconds: a phase of some runs may be up to "
        "a second below 0, and is shown as such."
    )
    if split.reversed:
        note += f" {split.reversed:,} stretches of pods end before they start and are left out."
    return Table("Phases", numbers("Phase", "Share", "Mean", "p50", "p95", "Least"), tuple(rows), note)


def latency_table(report: Report) -> Table:
    """Quantiles with their intervals."""
    measured = report.latencies
    of_ours = [
        _summary_row("Lag: due to sent", measured.lag),
        _summary_row("Latency: due to answered", measured.latency),
        _summary_row("Service: sent to answered", measured.service),
    ]
    whole = _summary_row(f"Run: {'created' if report.observed else 'due'} to over", measured.duration)
    rows = [whole] if report.observed else [*of_ours, whole]
    note = "In brackets: 95% intervals. Runs whose end was not seen are censored (Kaplan-Meier), not dropped."
    if report.knee is not None:
        note += (
            f" With up to {report.knee.in_flight:.0f} runs in flight a run takes {seconds_text(report.knee.level_s)}; "
            f"from there on each one more adds {seconds_text(report.knee.slope_s)}."
        )
    return Table("Latencies", numbers("", "Count", "Censored", "Mean", "p50", "p90", "p95", "p99"), tuple(rows), note)


def error_table(report: Report) -> Table:
    """Messages grouped by what is the same in them."""
    rows = [
        (f"{group.count:,}", seconds_text(group.first_s), seconds_text(group.last_s), group.message)
        for group in report.errors[:_MOST_MESSAGES]
    ]
    columns = (Column("Count", number=True), Column("First", number=True), Column("Last", number=True))
    return Table(
        "Errors", (*columns, Column("Message", long=True)), tuple(rows),
        "First and last: after the start of the test. Ids and numbers that vary are left out of the messages.",
    )  # fmt: skip


def bound_table(report: Report) -> Table:
    """What each part could carry at most."""
    rows = [
        (b.part, f"{b.per_hour:,.0f}/h", f"{b.utilisation:.0%}", seconds_text(b.demand_s), b.how) for b in report.bounds
    ]
    columns = numbers("Part", "At most", "Used", "A run needs")
    note = (
        "Upper bounds by the operational laws, the one that binds first. Parts that were never seen at their limit are "
        "not listed."
    )
    return Table("Bounds", (*columns, Column("Seen in", long=True)), tuple(rows), note)


def worker_table(report: Report) -> Table:
    """The replicas of a service, and how evenly they shared the work."""
    found = report.workers
    if found is None:
        return Table("Replicas", (), ())
    rows = [
        (each.name, f"{each.executions:,}", seconds_text(each.computing_s), seconds_text(each.busy_s),
         f"{each.busy_s / found.over_s:.0%}" if found.over_s else "", seconds_text(each.last_s))
        for each in found.workers
    ]  # fmt: skip
    note = (
        f"At the end some replicas were idle for {seconds_text(found.tail_s)} while others still had work. Gini of "
        f"their computing time: {found.gini:.2f} (0: all alike). Of the executions' time in the runtime "
        f"{found.waiting:.0%} was waiting for a worker, {found.io:.0%} loading and sending data, {found.computing:.0%} "
        "computing."
    )
    columns = numbers("Replica", "Executions", "Computing", "At work", "of the time", "Last end")
    return Table("Replicas", columns, tuple(rows), note)


def numbers(first: str, *names: str) -> tuple[Column, ...]:
    """Columns of numbers behind a first one of texts."""
    return (Column(first), *(Column(name, number=True) for name in names))


def seconds_text(value: float | None) -> str:
    """Seconds for people; nothing when they are missing."""
    if value is None or not np.isfinite(value):
        return ""
    return format_duration(value)


def amount_text(value: float | None) -> str:
    """Nothing when it is missing or 0; small ones with two significant digits."""
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
