"""Tables of what nodes cost and what came of it."""

from collections.abc import Iterable

from harness.analysis.cost.cost import Cost
from reports.report import Report
from reports.tables import Column, Table, amount_text, numbers, seconds_text


def cost_table(report: Report) -> Table:
    """What the nodes cost, what the runs used of it, and how long pods waited for them."""
    rows = (*_charges(report), *_advice(report), *_waiting(report))
    columns = (Column("Figure"), Column("Value", number=True), Column("", long=True))
    return Table("Nodes and waiting", columns, tuple(row for row in rows if row[1]))


def _charges(report: Report) -> Iterable[tuple[str, str, str]]:
    paid = report.cost
    if paid is None:
        return
    held = ("of these requested by steps", "from when a pod has its node to its end")
    yield "Node-hours charged", amount_text(paid.node_hours), "from a node's creation to its end, during the test"
    yield "of these with a step at work", amount_text(paid.busy_hours), f"{paid.idle:.0%} of the charged time was idle"
    yield "of these before the node was ready", amount_text(paid.coming_hours), ""
    yield "CPU-hours charged", amount_text(paid.cpu_hours), "allocatable cores"
    yield held[0], amount_text(paid.held_cpu_hours), held[1]
    yield "GPU-hours charged", amount_text(paid.gpu_hours), ""
    yield held[0], amount_text(paid.held_gpu_hours), held[1]
    if paid.overhead is not None:
        cost = "" if paid.wasted is None else f"; it cost {amount_text(paid.wasted)}"
        what = f"overhead, as a share of what was requested{cost}"
        yield "Charged beyond what was requested", f"{paid.overhead:.0%}", what
    if paid.cost is None:
        yield "Cost", "unknown", "say what nodes cost with pipeswarm report RUN --price POOL=0.19"
    else:
        yield "Cost", amount_text(paid.cost), "in the currency of the nodes' prices"
    yield from _goodput(report, paid)
    yield "Nodes ready at the start", f"{paid.warm:,}", ""


def _waiting(report: Report) -> Iterable[tuple[str, str, str]]:
    if report.pending is None:
        return
    waited = report.pending.waited
    yield "Pods waited for room, mean", seconds_text(waited.mean), "of all pods"
    for name, level in (("median", 0.5), ("p99", 0.99)):
        found = waited.at(level)
        text = seconds_text(found.value) or f"> {seconds_text(found.at_least)}"
        yield f"Pods waited for room, {name}", text, "of all pods"
    for bound, share in report.pending.within.items():
        yield f"Pods that waited less than {bound:g} s", f"{share:.1%}", ""


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


def _goodput(report: Report, paid: Cost) -> Iterable[tuple[str, str, str]]:
    """What was paid for, counted in runs that succeeded."""
    good, again = report.ledger.succeeded, report.wasted_work
    if again is not None and again.pods:
        what = f"of {again.pods:,} pods that failed, were evicted or went with their node"
        yield "Work lost", seconds_text(again.lost_s), f"{what}; {again.amplification:.2f} times the work that suffices"
    if paid.node_hours:
        yield (
            "Succeeded runs per node-hour",
            amount_text(good / paid.node_hours),
            "goodput: lost work is paid for, too",
        )
    if paid.cost:
        yield (
            "Succeeded runs per unit of money",
            amount_text(good / paid.cost),
            "to compare spot with on-demand by",
        )


def kinds_table(report: Report) -> Table:
    """Spot nodes beside those that stay, where the runs had both."""
    both = report.goodput if len(report.goodput) > 1 else ()
    rows = [
        (
            "spot" if kind.spot else "on-demand", f"{kind.nodes:,}", amount_text(kind.node_hours), f"{kind.lost:,}",
            f"{kind.lost_s / kind.worked_s:.1%}" if kind.worked_s else "", amount_text(kind.runs),
            amount_text(kind.per_node_hour), amount_text(kind.cost), amount_text(kind.per_money),
        )
        for kind in both
    ]  # fmt: skip
    columns = numbers(
        "Nodes", "How many", "Node-hours", "Pods lost", "Work lost", "Runs' worth", "by node-hour", "Cost", "by money"
    )
    note = (
        "Runs' worth: each succeeded run, shared out by where its work was done. Lost work is paid for and counts for "
        "nothing."
    )
    return Table("Spot beside on-demand", columns, tuple(rows), note)
