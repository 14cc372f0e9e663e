"""The report's tables: cells as text, at most so many rows, and what was left out is said."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.charges import Charges
from harness.analysis.own_requests import own_requests
from harness.analysis.quantiles import Summary
from harness.analysis.tasks import tasks
from harness.analysis.timeline import floats
from harness.model.phases import POD_PHASES, RUN_PHASES
from harness.model.units import format_bytes, format_duration
from reports.report import Report

_MOST_ROWS = 300


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading; numbers are set right, long texts may wrap."""

    name: str
    number: bool = False
    long: bool = False


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
    return Table("Phases", _numbers("Phase", "Share", "Mean", "p50", "p95", "Least"), tuple(rows), note)


def latency_table(report: Report) -> Table:
    """Quantiles with their intervals."""
    measured = report.latencies
    rows = [
        _summary_row("Lag: due to sent", measured.lag),
        _summary_row("Latency: due to answered", measured.latency),
        _summary_row("Service: sent to answered", measured.service),
        _summary_row("Run: due to over", measured.duration),
    ]
    note = "In brackets: 95 % intervals. Runs whose end was not seen are censored (Kaplan-Meier), not dropped."
    if report.knee is not None:
        note += (
            f" With up to {report.knee.in_flight:.0f} runs in flight a run takes {seconds_text(report.knee.level_s)}; "
            f"from there on each one more adds {seconds_text(report.knee.slope_s)}."
        )
    return Table("Latencies", _numbers("", "Count", "Censored", "Mean", "p50", "p90", "p95", "p99"), tuple(rows), note)


def error_table(report: Report) -> Table:
    """Messages grouped by what is the same in them."""
    rows = [
        (f"{group.count:,}", seconds_text(group.first_s), seconds_text(group.last_s), group.message)
        for group in report.errors[:_MOST_ROWS]
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
    columns = _numbers("Part", "At most", "Used", "A run needs")
    note = (
        "Upper bounds by the operational laws, the one that binds first. Parts that were never seen at their limit are "
        "not listed."
    )
    return Table("Bounds", (*columns, Column("Seen in", long=True)), tuple(rows), note)


def cost_table(report: Report) -> Table:
    """What the nodes cost, what the runs used of it, and how long pods waited for them."""
    rows: list[tuple[str, str, str]] = []
    paid, waited = report.charges, report.pending
    if paid is not None:
        rows = [
            ("Node-hours charged", f"{paid.node_hours:.2f}", "from a node's creation to its end, during the test"),
            ("of these with a step at work", f"{paid.busy_hours:.2f}", f"{paid.idle:.0%} of the charged time was idle"),
            ("of these before the node was ready", f"{paid.coming_hours:.2f}", ""),
            ("CPU-hours charged", f"{paid.cpu_hours:.2f}", "allocatable cores"),
            ("of these requested by steps", _hours(paid.held_cpu_hours), "from when a pod has its node to its end"),
            ("GPU-hours charged", f"{paid.gpu_hours:.2f}", ""),
            ("of these requested by steps", _hours(paid.held_gpu_hours), "from when a pod has its node to its end"),
            (
                "Charged beyond what was requested",
                "unknown" if paid.overhead is None else f"{paid.overhead:.0%}",
                "overhead, as a share of what was requested"
                + ("" if paid.wasted is None else f"; it cost {paid.wasted:.2f}"),
            ),
            ("Cost", "unknown" if paid.cost is None else f"{paid.cost:.2f}", "in the unit of the nodes' prices"),
            *_goodput(report, paid),
            ("Nodes ready at the start", f"{paid.warm:,}", ""),
        ]
        rows = [row for row in rows if row[1] not in {"0.00", "unknown"}]
    rows += _advice(report)
    if waited is not None:
        p50, p99 = waited.waited.at(0.5), waited.waited.at(0.99)
        rows += [
            ("Pods waited for room, mean", seconds_text(waited.waited.mean) or "unknown", "of all pods"),
            (
                "Pods waited for room, median",
                seconds_text(p50.value) or f"> {seconds_text(p50.at_least)}",
                "of all pods",
            ),
            ("Pods waited for room, p99", seconds_text(p99.value) or f"> {seconds_text(p99.at_least)}", "of all pods"),
            *(
                (f"Pods that waited less than {bound:g} s", f"{share:.1%}", "")
                for bound, share in waited.within.items()
            ),
        ]
    columns = (Column("Figure"), Column("Value", number=True), Column("", long=True))
    return Table("Nodes and waiting", columns, tuple(rows))


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
        f"Some replicas were idle for {seconds_text(found.tail_s)} while others still had work. Gini of their "
        f"computing time: {found.gini:.2f} (0: all alike). Of the executions' time in the runtime {found.waiting:.0%} "
        f"was waiting for a worker, {found.io:.0%} loading and sending data, {found.computing:.0%} computing."
    )
    columns = _numbers("Replica", "Executions", "Computing", "At work", "of the time", "Last end")
    return Table("Replicas", columns, tuple(rows), note)


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:.2f}"


def _advice(report: Report) -> Iterable[tuple[str, str, str]]:
    """How the autoscaler did, and how the pool should be set."""
    found = report.scale_advice
    if found is None:
        return
    if found.coming_s is not None:
        yield "A node came after", seconds_text(found.coming_s), "median, from the autoscaler's decision to ready"
    if found.keep_s is not None:
        keep = f"keep unneeded nodes for {seconds_text(found.keep_s)} (scale-down-unneeded-time)"
        yield "Nodes removed too early", f"{found.early:,}", f"another one was needed within ten minutes: {keep}"
    yield "Recommended minimum of the pool", f"{found.minimum:,}", "requested nearly all the time"
    yield (
        "Recommended maximum of the pool", f"{found.maximum:,}",
        "one more would work for less time than it takes to come, or than a single run takes",
    )  # fmt: skip


def _goodput(report: Report, paid: Charges) -> Iterable[tuple[str, str, str]]:
    """What was paid for, counted in runs that succeeded."""
    good, again = report.ledger.succeeded, report.rework
    if again is not None and again.pods:
        what = f"of {again.pods:,} pods that failed, were evicted or went with their node"
        yield "Work lost", seconds_text(again.lost_s), f"{what}; {again.amplification:.2f} times the work that suffices"
    if paid.node_hours:
        yield "Succeeded runs per node-hour", f"{good / paid.node_hours:,.1f}", "goodput: lost and repeated work counts"
    if paid.cost:
        yield "Succeeded runs per unit of money", f"{good / paid.cost:,.1f}", "compare spot with on-demand by this"


def raw_tables(report: Report) -> list[Table]:
    """Runs, pods by task, nodes, events, and what the observation cost."""
    found = (_runs(report), _tasks(report), _nodes(report), _events(report), _own_requests(report))
    return [table for table in found if table.rows]


def seconds_text(value: float | None) -> str:
    """Seconds for people; nothing when they are missing."""
    if value is None or not np.isfinite(value):
        return ""
    return f"{1000 * value:.1f} ms" if 0 < abs(value) < 0.1 else format_duration(value)


def _runs(report: Report) -> Table:
    runs = report.timeline.runs
    chosen = runs.iloc[_spread(len(runs))]
    columns = ("seq", "name", "run", "outcome", "state")
    stamps = [floats(chosen, f"{name}_s") for name in ("due", "sent", "answered", "over")]
    said = [str(text or error) for text, error in zip(chosen["message"], chosen["error"], strict=True)]
    texts = zip(*(chosen[name].astype(str) for name in columns), strict=True)
    rows = [
        (*known, *map(seconds_text, times), message[:160])
        for known, times, message in zip(texts, zip(*(s.tolist() for s in stamps), strict=True), said, strict=True)
    ]
    heads = (
        Column("seq", number=True), Column("Name"), Column("Run"), Column("Outcome"), Column("State"),
        Column("Due", number=True), Column("Sent", number=True), Column("Answered", number=True),
        Column("Over", number=True), Column("Message", long=True),
    )  # fmt: skip
    return _table("Runs", heads, rows, len(runs))


def _tasks(report: Report) -> Table:
    """Pods by task: how many, and their mean seconds in each phase."""
    found = tasks(report.timeline)
    seen = np.flatnonzero(np.isfinite(found.seconds).any(axis=0)).tolist()
    rows = [
        (name or "(none)", f"{count:,}", *(seconds_text(total / count) for total in seconds))
        for name, count, seconds in zip(found.names, found.pods.tolist(), found.seconds[:, seen].tolist(), strict=True)
    ]
    columns = _numbers("Task", "Pods", *(POD_PHASES[phase] for phase in seen))
    return _table("Pods by task, mean seconds a phase", columns, rows, len(rows))


def _nodes(report: Report) -> Table:
    nodes = report.timeline.nodes.sort_values(["created_s", "name"], kind="stable")
    texts = (nodes["name"].astype(str), nodes["pool"].astype(str))
    instants = (map(seconds_text, floats(nodes, f"{name}_s").tolist()) for name in ("created", "ready", "gone"))
    memory = map(format_bytes, floats(nodes, "memory").tolist())
    cpu, gpu = ([f"{value:g}" for value in floats(nodes, name).tolist()] for name in ("cpu", "gpu"))
    spot = ["spot" if value else "" for value in nodes["spot"]]
    rows = list(zip(*texts, *instants, cpu, memory, gpu, spot, strict=True))
    heads = (
        Column("Node"), Column("Pool"), Column("Created", number=True), Column("Ready", number=True),
        Column("Gone", number=True), Column("CPU", number=True), Column("Memory", number=True),
        Column("GPU", number=True), Column(""),
    )  # fmt: skip
    return _table("Nodes", heads, [rows[k] for k in _spread(len(rows))], len(rows))


def _events(report: Report) -> Table:
    """Events by kind and reason."""
    events = report.timeline.events
    rows = []
    for (kind, reason), group in events.groupby(["kind", "reason"], sort=True):
        at = floats(group, "at_s")
        example = next(iter(group["message"][group["message"] != ""].dropna()[:1]), "")
        count = f"{int(group['count'].sum()):,}"
        rows.append((str(kind), str(reason), count, seconds_text(at.min()), seconds_text(at.max()), example[:200]))
    heads = (
        Column("Kind"), Column("Reason"), Column("Count", number=True), Column("First", number=True),
        Column("Last", number=True), Column("For example", long=True),
    )  # fmt: skip
    return _table("Events by kind", heads, rows, len(rows))


def _own_requests(report: Report) -> Table:
    """The observer's requests by endpoint, most first."""
    own, columns = own_requests(report.timeline), (Column("Endpoint"), Column("Requests", number=True))
    if own is None:
        return Table("What the observation cost", columns, ())
    counts = sorted(own.by_endpoint.items(), key=lambda each: (-each[1], each[0]))
    share = "" if own.share is None else f", {own.share:.1%} of those that load and observer sent to it together"
    note = f"{own.platform:,} of these went to the platform under test{share}."
    return Table("What the observation cost", columns, tuple((name, f"{count:,}") for name, count in counts), note)


def _table(title: str, columns: tuple[Column, ...], rows: Sequence[tuple[str, ...]], count: int) -> Table:
    note = f"{len(rows):,} of {count:,}, evenly chosen" if len(rows) < count else ""
    return Table(title, columns, tuple(rows), note, f"{count:,}")


def _spread(count: int) -> list[int]:
    """At most _MOST_ROWS positions, evenly over all."""
    if count <= _MOST_ROWS:
        return list(range(count))
    return [int(k) for k in np.linspace(0, count - 1, _MOST_ROWS)]


def _numbers(first: str, *names: str) -> tuple[Column, ...]:
    return (Column(first), *(Column(name, number=True) for name in names))


def _summary_row(name: str, summary: Summary) -> tuple[str, ...]:
    return (name, f"{summary.count:,}", f"{summary.censored:,}", seconds_text(summary.mean), *_quantiles(summary))


def _quantiles(summary: Summary) -> Iterable[str]:
    for q in summary.quantiles:
        if q.value is None:
            yield f"> {seconds_text(q.at_least)}" if summary.count else ""
            continue
        low, high = seconds_text(q.low) or "…", seconds_text(q.high) or "…"
        yield f"{seconds_text(q.value)} ({low}, {high})"
