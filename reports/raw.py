"""Tables of what was recorded: at most so many rows of each, and what was left out is said."""

from collections.abc import Sequence
from math import isnan

import numpy as np

from harness.analysis.services.own_requests import own_requests
from harness.analysis.timeline import floats
from harness.analysis.timeline.columns import evenly
from harness.analysis.waits.tasks import tasks
from harness.model.phases import POD_PHASES
from harness.model.units import format_bytes
from reports.report import Report
from reports.tables import Column, Table, numbers, seconds_text

_MOST_ROWS = 300


def raw_tables(report: Report) -> list[Table]:
    """The test by windows of time, runs, pods by task, nodes, events, and what the observation cost."""
    found = (_windows(report), _runs(report), _tasks(report), _nodes(report), _events(report), _own_requests(report))
    return [table for table in found if table.rows]


def _windows(report: Report) -> Table:
    """What the figure of the throughput draws, for those who can't see it."""
    flow = report.throughput
    counts = ("due", "succeeded", "failed")
    means = {"in_flight": "Runs in flight", "pending": "Pods waiting for room", "nodes": "Ready nodes"}
    columns = [
        [seconds_text(start) for start in flow.edges_s[:-1].tolist()],
        *([f"{value:,.0f}" for value in getattr(flow, name).tolist()] for name in counts),
        *(["" if isnan(v) else f"{v:,.1f}" for v in getattr(flow, name).tolist()] for name in means),
    ]
    rows = list(zip(*columns, strict=True)) if len(report.timeline.runs) else []
    heads = numbers("From", *(name.capitalize() for name in counts), *means.values())
    title = f"By windows of {seconds_text(flow.width_s)}"
    return _table(title, heads, [rows[k] for k in evenly(len(rows), _MOST_ROWS).tolist()], len(rows))


def _runs(report: Report) -> Table:
    runs = report.timeline.runs
    chosen = runs.iloc[evenly(len(runs), _MOST_ROWS)]
    columns = ("seq", "name", "run", "outcome", "state")
    instants = ("created", "over") if report.observed else ("due", "sent", "answered", "over")
    stamps = [floats(chosen, f"{name}_s") for name in instants]
    said = [str(text or error) for text, error in zip(chosen["message"], chosen["error"], strict=True)]
    texts = zip(*(chosen[name].astype(str) for name in columns), strict=True)
    rows = [
        (*known, *map(seconds_text, times), message[:160])
        for known, times, message in zip(texts, zip(*(s.tolist() for s in stamps), strict=True), said, strict=True)
    ]
    heads = (
        Column("seq", number=True), Column("Name", whole=True), Column("Run", whole=True), Column("Outcome"),
        Column("State"),
        *(Column(name.capitalize(), number=True) for name in instants), Column("Message", long=True),
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
    columns = numbers("Task", "Pods", *(POD_PHASES[phase] for phase in seen))
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
        Column("Node", whole=True), Column("Pool"), Column("Created", number=True), Column("Ready", number=True),
        Column("Gone", number=True), Column("CPU", number=True), Column("Memory", number=True),
        Column("GPU", number=True), Column(""),
    )  # fmt: skip
    return _table("Nodes", heads, [rows[k] for k in evenly(len(rows), _MOST_ROWS).tolist()], len(rows))


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
