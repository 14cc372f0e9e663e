"""Tables of recorded data: at most 300 rows each, evenly chosen, and how many there are in all."""

from collections.abc import Sequence
from math import isfinite, isnan

from harness.analysis.result import Result
from harness.analysis.services.own_requests import own_requests
from harness.analysis.timeline import evenly, floats
from harness.analysis.waits.tasks import tasks
from harness.model.phases import POD_PHASES
from harness.model.units import format_bytes
from reports.tables import Column, Table, numbers, seconds_text

_MOST_ROWS = 300
_MOST_TEXT, _MOST_EXAMPLE = 160, 200


def raw_tables(result: Result) -> list[Table]:
    """Time windows, runs, pods by task, nodes, events, and the observer's own requests."""
    tables = (_windows(result), _runs(result), _tasks(result), _nodes(result), _events(result), _own_requests(result))
    return [table for table in tables if table.rows]


def _windows(result: Result) -> Table:
    """The figure of the throughput, for those who can't see it."""
    flow = result.throughput
    counts = ("due", "succeeded", "failed")
    means = {"in_flight": "Runs in flight", "pending": "Unschedulable pods", "nodes": "Ready nodes"}
    columns = [
        [seconds_text(start) for start in flow.edges_s[:-1].tolist()],
        *([f"{value:,.0f}" for value in getattr(flow, name).tolist()] for name in counts),
        *(["" if isnan(v) else f"{v:,.1f}" for v in getattr(flow, name).tolist()] for name in means),
    ]
    rows = list(zip(*columns, strict=True)) if len(result.timeline.runs) else []
    heads = numbers("From", *(name.capitalize() for name in counts), *means.values())
    return _table(f"Windows of {seconds_text(flow.width_s)}", heads, rows, len(rows))


def _runs(result: Result) -> Table:
    """By seq, with the platform's message or the submission's error."""
    instants = ("created", "over") if result.observed else ("due", "sent", "answered", "over")
    runs = result.timeline.runs
    chosen = runs.iloc[evenly(len(runs), _MOST_ROWS)]
    columns = [
        *(chosen[name].astype(str) for name in ("seq", "name", "run", "outcome", "state")),
        *(map(seconds_text, floats(chosen, f"{name}_s").tolist()) for name in instants),
        (str(text or error)[:_MOST_TEXT] for text, error in zip(chosen["message"], chosen["error"], strict=True)),
    ]
    heads = (
        Column("Seq", number=True), Column("Name", whole=True), Column("Run", whole=True), Column("Outcome"),
        Column("State"), *(Column("End" if name == "over" else name.capitalize(), number=True) for name in instants),
        Column("Message", long=True),
    )  # fmt: skip
    return _table("Runs", heads, list(zip(*columns, strict=True)), len(runs))


def _tasks(result: Result) -> Table:
    of_tasks = tasks(result.timeline)
    seconds = of_tasks.seconds.tolist()
    seen = [k for k in range(len(POD_PHASES)) if any(isfinite(row[k]) for row in seconds)]
    rows = [
        (name or "(none)", f"{count:,}", *(seconds_text(row[k] / count) for k in seen))
        for name, count, row in zip(of_tasks.names, of_tasks.pods.tolist(), seconds, strict=True)
    ]
    columns = numbers("Task", "Pods", *(POD_PHASES[k] for k in seen))
    return _table("Pods by task, mean time per phase", columns, rows, len(rows))


def _nodes(result: Result) -> Table:
    """By creation."""
    nodes = result.timeline.nodes.sort_values(["created_s", "name"], kind="stable")
    chosen = nodes.iloc[evenly(len(nodes), _MOST_ROWS)]
    columns = [
        *(chosen[name].astype(str) for name in ("name", "pool")),
        *(map(seconds_text, floats(chosen, name).tolist()) for name in ("created_s", "ready_s", "gone_s")),
        (f"{cpu:g}" for cpu in floats(chosen, "cpu").tolist()),
        map(format_bytes, floats(chosen, "memory").tolist()),
        (f"{gpu:g}" for gpu in floats(chosen, "gpu").tolist()),
        ("spot" if spot else "" for spot in chosen["spot"]),
    ]
    heads = (
        Column("Node", whole=True), Column("Pool"), Column("Created", number=True), Column("Ready", number=True),
        Column("Gone", number=True), Column("CPU", number=True), Column("Memory", number=True),
        Column("GPU", number=True), Column(""),
    )  # fmt: skip
    return _table("Nodes", heads, list(zip(*columns, strict=True)), len(nodes))


def _events(result: Result) -> Table:
    rows = []
    for (kind, reason), events in result.timeline.events.groupby(["kind", "reason"], sort=True):
        at, count = floats(events, "at_s"), int(events["count"].sum())
        example = next(iter(events["message"][events["message"] != ""].dropna()[:1]), "")[:_MOST_EXAMPLE]
        first, last = map(seconds_text, (float(at.min()), float(at.max())))
        rows.append((str(kind), str(reason), f"{count:,}", first, last, example))
    heads = (
        Column("Kind"), Column("Reason"), Column("Count", number=True), Column("First", number=True),
        Column("Last", number=True), Column("Example", long=True),
    )  # fmt: skip
    return _table("Events by kind and reason", heads, rows, len(rows))


def _own_requests(result: Result) -> Table:
    """The observer's requests by endpoint, the most frequent first."""
    own, title = own_requests(result.timeline), "Requests by the observer"
    columns = (Column("Endpoint"), Column("Requests", number=True))
    if own is None:
        return Table(title, columns, ())
    counts = sorted(own.by_endpoint.items(), key=lambda item: (-item[1], item[0]))
    share = "" if own.share is None else f": {own.share:.1%} of the requests that load and observer sent to it"
    note = f"{own.platform:,} of these went to the platform under test{share}."
    return Table(title, columns, tuple((name, f"{count:,}") for name, count in counts), note)


def _table(title: str, columns: tuple[Column, ...], rows: Sequence[tuple[str, ...]], count: int) -> Table:
    note = f"{len(rows):,} of {count:,}, evenly chosen" if len(rows) < count else ""
    return Table(title, columns, tuple(rows), note, f"{count:,}")
