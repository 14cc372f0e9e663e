"""The throughputs of a test side by side: measured, fitted and at most."""

from collections.abc import Iterator

from harness.analysis.result import Result
from harness.model.units import counted, format_duration
from reports.tables import Column, Table


def throughput_table(result: Result) -> Table:
    """From what was measured to what the platform allows at most; each row says how it differs from the one before."""
    columns = (Column("Throughput"), Column("Runs per hour", number=True), Column("What it is", long=True))
    rows = tuple((name, f"{per_hour:,.0f}", what) for name, per_hour, what in _rows(result))
    return Table("Throughput: measured, fitted and at most", columns, rows)


def _rows(result: Result) -> Iterator[tuple[str, float, str]]:
    flow, counts = result.throughput, result.ledger
    lasted = format_duration(flow.makespan_s)
    yield "Succeeded", flow.per_hour, f"{counted(counts.succeeded, 'run')} from the first due to the last end, {lasted}"
    if flow.over_per_hour > flow.per_hour:
        others = counted(round((flow.over_per_hour - flow.per_hour) * flow.makespan_s / 3600), "run")
        yield "Ended", flow.over_per_hour, f"with {others} that ended otherwise, and took room and time too"
    if result.scaling is not None:
        nodes = result.scaling.fitted_on[1]
        yield (
            f"Fitted on {counted(round(nodes), 'node')}", float(result.scaling.curve.at(nodes)),
            "while pods waited for a node; the test's mean also has the time with fewer nodes, and with less to do",
        )  # fmt: skip
    if result.bounds:
        least = result.bounds[0]
        yield (
            f"Bound: {least.part}", least.per_hour,
            f"the most that this part allows by the operational laws; the runs that ended used {least.utilisation:.0%}",
        )  # fmt: skip
