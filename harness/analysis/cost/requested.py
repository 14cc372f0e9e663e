"""Resource requests of the runs' pods, used or not, and what the nodes can allocate."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.throughput import throughput
from harness.analysis.timeline import Bools, Floats, Timeline, floats, mean_active, remembered
from harness.analysis.timeline.columns import blocks, looked_up, occurring
from harness.model.phases import (
    NODE_CPU_CORES,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    SCHEDULING,
    UNSCHEDULABLE,
)


def node_use(timeline: Timeline) -> pd.DataFrame:
    """One row per sample of a node that can run the runs' pods.

    Returns:
        Columns `at_s` (seconds after t0), `node` and `share` (of its allocatable cores).
    """
    samples, sizes = timeline.labelled(NODE_CPU_CORES, "node"), timeline.run_nodes.set_index("name")["cpu"]
    cores = sizes.reindex(samples["node"]).to_numpy(dtype=np.float64, na_value=np.nan)
    share = floats(samples, "value") / cores
    use: pd.DataFrame = samples[["at_s", "node"]].assign(share=share)[np.isfinite(share)]
    return use


@dataclass(frozen=True, slots=True, eq=False)
class Requested:
    """Requests of cores or of GPUs. Arrays are means over the windows of `throughput`.

    Attributes:
        resource: "CPU" or "GPU".
        held_hours: core-hours or GPU-hours requested by scheduled pods during the test.
        held: requested by pods scheduled to machines.
        wanted: requested by all existing pods, those without a node included, without pods on virtual nodes and drivers
            on other pools than the steps'.
        room: allocatable on the ready nodes that can run the runs' pods.
    """

    resource: str
    held_hours: float
    held: Floats
    wanted: Floats
    room: Floats


@remembered
def requested(timeline: Timeline) -> tuple[Requested, ...]:
    """Join pods with the requests of their tasks; a resource is left out when a task's requests are unknown."""
    found = (
        _of(timeline, "CPU", REQUESTED_CPU_CORES, "cpu"),
        _of(timeline, "GPU", REQUESTED_GPUS, "gpu") if floats(timeline.nodes, "gpu").any() else None,
    )
    return tuple(each for each in found if each is not None)


def requested_cpu(timeline: Timeline) -> Requested | None:
    """The requests of cores; none where a task's are unknown."""
    return next((each for each in requested(timeline) if each.resource == "CPU"), None)


def dominant_shares(timeline: Timeline) -> Floats:
    """Per category of the pods' tasks: the largest share of a node's CPUs, memory or GPUs that a pod of it requests.

    The node is the median of those that can run the runs' pods. 0 where a task's requests are unknown.
    """
    tasks = timeline.pods["task"].cat
    shares = np.zeros(len(tasks.categories))
    for metric, column in ((REQUESTED_CPU_CORES, "cpu"), (REQUESTED_MEMORY_BYTES, "memory"), (REQUESTED_GPUS, "gpu")):
        size, requests = floats(timeline.run_nodes, column), dict(requests_by(timeline, metric, "task"))
        if not requests or not (size > 0).any():
            continue
        place = tasks.categories.get_indexer(pd.Index(requests.keys()))
        held = np.fromiter(requests.values(), dtype=np.float64) / float(np.median(size[size > 0]))
        shares[place[place >= 0]] = np.maximum(shares[place[place >= 0]], held[place >= 0])
    return shares


def _of(timeline: Timeline, resource: str, metric: str, column: str) -> Requested | None:
    pods, edges = timeline.pods, throughput(timeline).edges_s
    start, end = floats(pods, "start_s"), floats(pods, "end_s")
    mine = ~timeline.on_virtual & ~timeline.drives_elsewhere & ~timeline.reported
    placed = ~timeline.of_runs(UNSCHEDULABLE, SCHEDULING)
    held, wanted = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
    groups = by_request(timeline, metric, mine)
    if groups is None:
        return None
    for amount, chosen in groups:
        for here in blocks(len(pods)):
            on_nodes, waiting = (
                mean_active(start[here][those], np.nan_to_num(end[here][those], nan=timeline.end_s), edges)
                for those in (chosen[here] & placed[here], chosen[here] & ~placed[here])
            )
            held += amount * on_nodes
            wanted += amount * (on_nodes + waiting)
    hours = float((held * np.diff(edges)).sum()) / 3600
    return Requested(resource, hours, held, wanted, _room(timeline, column, edges))


def by_request(timeline: Timeline, metric: str, mine: Bools) -> list[tuple[float, Bools]] | None:
    """Rows of `pods` by the amount that their pods request; none when a task's requests are unknown."""
    tasks = timeline.pods["task"].cat
    code, number = tasks.codes.to_numpy(), timeline.pods["pod"].to_numpy()
    by_task, by_pod = dict(requests_by(timeline, metric, "task")), dict(requests_by(timeline, metric, "pod"))
    there = occurring(code[mine], len(tasks.categories))
    if not mine.any() or not {str(name) for name in tasks.categories[there]} <= by_task.keys():
        return None
    of_task = np.array([by_task.get(str(name), 0.0) for name in tasks.categories])
    apart = np.zeros(len(timeline.names), dtype=bool)
    apart[timeline.numbers_of(by_pod)] = True
    usual = mine & ~looked_up(apart, number) if by_pod else mine
    groups = [
        (amount, usual & looked_up(of_task == amount, code)) for amount in np.unique(of_task[there]).tolist() if amount
    ]
    of_pod = np.array([by_pod[str(name)] for name in timeline.names.take(np.flatnonzero(apart))])
    for amount in np.unique(of_pod[of_pod > 0]).tolist():
        chosen = np.zeros(apart.size, dtype=bool)
        chosen[np.flatnonzero(apart)[of_pod == amount]] = True
        groups.append((amount, mine & looked_up(chosen, number)))
    return groups


def _room(timeline: Timeline, column: str, edges: Floats) -> Floats:
    nodes = timeline.run_nodes
    size, ready, gone = (floats(nodes, name) for name in (column, "ready_s", "gone_s"))
    room = np.zeros(edges.size - 1)
    for amount in np.unique(size).tolist():
        room += amount * mean_active(ready[size == amount], gone[size == amount], edges)
    return room


def requests_by(timeline: Timeline, metric: str, label: str) -> Iterator[tuple[str, float]]:
    """Recorded requests by "task", or by "pod" for pods that differ from the first one of their task."""
    samples = timeline.labelled(metric, label)
    names = samples[label]
    yield from ((str(name), float(value)) for name, value in zip(names, samples["value"], strict=True) if name)
