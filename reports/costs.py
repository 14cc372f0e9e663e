"""Tables of cost, utilisation and goodput of the nodes."""

from collections.abc import Iterable, Sequence

from harness.analysis.cost.cost import Cost
from harness.analysis.result import Result
from harness.analysis.stats.quantiles import Summary
from reports.tables import Column, Table, amount_text, numbers, seconds_text


def cost_table(result: Result) -> Table:
    """Cost of the nodes, their use by the runs, and how long pods waited for them."""
    rows = (*_charges(result), *_virtual(result), *_advice(result), *_waiting(result), *_readiness(result))
    columns = (Column("Metric"), Column("Value", number=True), Column("", long=True))
    return Table("Nodes and waiting", columns, tuple(row for row in rows if row[1]))


def _charges(result: Result) -> Iterable[tuple[str, str, str]]:
    paid = result.cost
    if paid is None:
        return
    held = ("used", "requested by pods, from their scheduling to their end")
    yield "Node-hours charged", amount_text(paid.node_hours), "from a node's creation to its end, within the test"
    yield "with at least one running step", amount_text(paid.busy_hours), f"{paid.idle:.0%} of the charged time idle"
    yield "before the node was ready", amount_text(paid.coming_hours), ""
    yield "CPU-hours charged", amount_text(paid.cpu_hours), "allocatable cores"
    yield f"CPU-hours {held[0]}", amount_text(paid.held_cpu_hours), held[1]
    yield "GPU-hours charged", amount_text(paid.gpu_hours), ""
    yield f"GPU-hours {held[0]}", amount_text(paid.held_gpu_hours), held[1]
    if paid.overhead is not None:
        waste = "" if paid.wasted is None else f"; it cost {amount_text(paid.wasted)}"
        of = "GPU-hours" if paid.gpu_hours else "CPU-hours"
        yield "Overhead of autoscaling", f"{paid.overhead:.0%}", f"1 − used / charged, of {of}{waste}"
        yield "Charged beyond the use", f"{paid.surplus:.0%}", "charged / used − 1"
    if bill := [part.cost or 0.0 for part in result.allocated if part.hours is None]:
        yield "Cost", amount_text(sum(bill)), "of the whole cluster, by OpenCost"
    elif paid.cost is None:
        yield "Cost", "unknown", "set node prices: pipeswarm report RUN --price POOL=0.19"
    else:
        yield "Cost", amount_text(paid.cost), paid.currency or "in the currency of the node prices"
    yield from _goodput(result, paid)
    yield "Nodes ready at the start", f"{paid.warm:,}", ""


def _virtual(result: Result) -> Iterable[tuple[str, str, str]]:
    virtual_pods = result.virtual
    if virtual_pods is None:
        return
    what = f"{virtual_pods.share:.0%} of the pods' time; virtual nodes are no machines, and node-hours leave them out"
    yield "Pods on virtual nodes", f"{virtual_pods.pods:,}", what
    yield "Pod-hours there", amount_text(virtual_pods.pod_hours), "charged by pod, from its scheduling to its end"
    yield "CPU-hours requested there", amount_text(virtual_pods.cpu_hours), ""
    yield "GiB-hours requested there", amount_text(virtual_pods.memory_gib_hours), "memory"


def _waiting(result: Result) -> Iterable[tuple[str, str, str]]:
    if result.pending is None:
        return
    pending, phase = result.pending, "of all pods, the whole phase Pending: from creation until a container runs"
    yield from _times("Pod pending time", pending.phase, phase)
    for bound, share in pending.within.items():
        yield f"Pods pending longer than {bound:g} s", f"{1 - share:.1%}", ""
    yield from _times("Pod wait for a node", pending.waited, "of all pods, unschedulable: a part of the pending time")


def _readiness(result: Result) -> Iterable[tuple[str, str, str]]:
    pulls, drivers = result.image_pulls, result.gpu_drivers
    if pulls is not None:
        what = f"at most what image streaming or a pre-puller saves a run; {pulls.share:.0%} of the runs' time"
        yield "Image pulls on the critical path", seconds_text(pulls.run_s), f"mean of a run: {what}"
        yield "Pods that waited for a pull", f"{pulls.pods:,}", ""
    if drivers is not None:
        what = f"{drivers.nodes:,} new GPU nodes, from ready to GPUs that can be allocated"
        yield "Driver installation, median", seconds_text(drivers.median_s), what
        cost = f"{amount_text(drivers.gpu_hours)} GPU-hours were charged meanwhile"
        yield "Driver installation, longest", seconds_text(drivers.most_s), cost


def _times(name: str, waited: Summary, what: str) -> Iterable[tuple[str, str, str]]:
    yield f"{name}, mean", seconds_text(waited.mean), what
    for word, level in (("median", 0.5), ("p99", 0.99)):
        quantile = waited.at(level)
        yield f"{name}, {word}", seconds_text(quantile.value) or f"> {seconds_text(quantile.at_least)}", ""


def _advice(result: Result) -> Iterable[tuple[str, str, str]]:
    """How the autoscaler did, and recommended settings of the pool."""
    scale_advice = result.scale_advice
    if scale_advice is None:
        return
    if scale_advice.coming_s is not None:
        yield (
            "Node start-up time",
            seconds_text(scale_advice.coming_s),
            "median, from the autoscaler's decision to ready",
        )
    if scale_advice.keep_s is not None:
        keep = f"set scale-down-unneeded-time to {seconds_text(scale_advice.keep_s)}"
        yield "Nodes removed too early", f"{scale_advice.early:,}", f"a new node was needed within ten minutes: {keep}"
    yield "Recommended pool minimum", f"{scale_advice.minimum:,}", "requested nearly all the time"
    yield (
        "Recommended pool maximum", f"{scale_advice.maximum:,}",
        "one more would run for less time than it takes to start, or than a single run takes",
    )  # fmt: skip


def _goodput(result: Result, paid: Cost) -> Iterable[tuple[str, str, str]]:
    good, lost = result.ledger.succeeded, result.wasted_work
    if lost is not None and lost.pods:
        what = f"{lost.pods:,} pods failed, were evicted or lost with their node"
        yield "Work lost", seconds_text(lost.lost_s), f"{what}; work amplification {lost.amplification:.2f}"
    if paid.node_hours:
        yield "Succeeded runs per node-hour", amount_text(good / paid.node_hours), "goodput: lost work is paid for too"
    if paid.cost:
        yield (
            f"Succeeded runs per {paid.currency or 'unit of money'}",
            amount_text(good / paid.cost),
            "to compare spot and on-demand",
        )


def allocation_table(result: Result) -> Table:
    """Who the nodes' cost is for: the rows add up to the last one."""
    parts = [part for part in result.allocated if part.size]
    whole, of_opencost = sum(part.size for part in parts), any(part.hours is None for part in parts)
    rows = [
        (part.pipeline, part.tenant, part.step, *map(amount_text, (part.hours, part.cost)),
         f"{part.size / whole:.1%}" if whole > 0 else "")
        for part in parts
    ]  # fmt: skip
    if rows:
        hours, cost = (_sum(amounts) for amounts in zip(*((part.hours, part.cost) for part in parts), strict=True))
        rows.append(("total", "", "", amount_text(hours), amount_text(cost), "100.0%"))
    columns = (
        Column("Pipeline", whole=True), Column("Tenant"), Column("Step"), Column("Node-hours", number=True),
        Column(_cost(result), number=True), Column("Share", number=True),
    )  # fmt: skip
    note = (
        "What OpenCost allocated to each pod, of the whole cluster: nodes, volumes, network and load balancers. Its "
        "costs are in its own currency, and those of pods that ran for less than a few minutes are rough."
        if of_opencost
        else "A pod holds the share of its node that it requests of its scarcest resource, or uses of its CPU where "
        "that is more. What is not requested is idle."
    )
    return Table("Cost by pipeline, tenant and step", columns, tuple(rows), note)


def _sum(amounts: Sequence[float | None]) -> float | None:
    """None where one is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def kinds_table(result: Result) -> Table:
    """Spot and on-demand nodes side by side, where the runs had both."""
    both = result.goodput if len(result.goodput) > 1 else ()
    rows = [
        (
            "spot" if kind.spot else "on-demand", f"{kind.nodes:,}", amount_text(kind.node_hours), f"{kind.lost:,}",
            f"{kind.lost_s / kind.worked_s:.1%}" if kind.worked_s else "", amount_text(kind.runs),
            amount_text(kind.per_node_hour), amount_text(kind.cost), amount_text(kind.per_money),
        )
        for kind in both
    ]  # fmt: skip
    columns = numbers(
        "Nodes", "Count", "Node-hours", "Pods lost", "Work lost", "Goodput (runs)", "per node-hour", _cost(result),
        f"per {_currency(result) or 'unit of money'}",
    )  # fmt: skip
    note = "Goodput: succeeded runs, split by where their work was done. Lost work is paid for and not counted."
    return Table("Spot and on-demand nodes", columns, tuple(rows), note)


def _cost(result: Result) -> str:
    currency = _currency(result)
    return f"Cost ({currency})" if currency else "Cost"


def _currency(result: Result) -> str:
    return result.cost.currency if result.cost else ""
