"""The figures of a report, in the order in which the page shows them."""

from harness.analysis.result import Result
from reports.figures import flow, hosts, phases, runs, scaling
from reports.figures.figure import Figure

__all__ = ["Figure", "figures"]


def figures(result: Result) -> dict[str, Figure]:
    """All figures that the recorded sources allow, by key."""
    made = (
        flow.throughput(result), scaling.scaling(result), *flow.requests(result), *flow.stores(result),
        phases.phases(result), phases.phases_by_order(result), phases.pending(result),
        hosts.pods(result), hosts.work(result), runs.runs(result),
        flow.submissions(result),
    )  # fmt: skip
    return {figure.key: figure for figure in made if figure is not None}
