"""The report's figures."""

from reports.figures import flow, nodes, phases, runs, scaling
from reports.figures.figure import Figure, thinned
from reports.report import Report

__all__ = ["Figure", "figures", "thinned"]


def figures(report: Report) -> dict[str, Figure]:
    """All figures that the recorded sources allow, by key."""
    made = (
        flow.throughput(report), scaling.scaling(report), *flow.requests(report), *flow.stores(report),
        phases.phases(report), phases.phases_by_order(report), phases.pending(report),
        nodes.pods(report), nodes.work(report), runs.runs(report),
        flow.submissions(report),
    )  # fmt: skip
    return {figure.key: figure for figure in made if figure is not None}
