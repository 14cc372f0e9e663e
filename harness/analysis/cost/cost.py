"""Cost of the nodes and their use by the runs; how long pods waited for them.

Also the goodput of spot and on-demand nodes, and what runs wait for before their pods can work.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.cost.requested import requested
from harness.analysis.stats.quantiles import Summary, summarize
from harness.analysis.timeline import (
    Bools,
    Floats,
    Timeline,
    beginnings,
    blocks,
    distinct,
    floats,
    looked_up,
    merged,
    remembered,
    summed,
)
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import PULLING, RUNNING, SCHEDULING, SERVING, STARTING, SUCCEEDED, UNSCHEDULABLE

_WITHIN_S = (2.0, 5.0, 60.0)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the nodes that can run the runs' pods, within the test.

    Attributes:
        node_hours: from creation (or the test's start) to the end of the node (or of the test).
        busy_hours: the part of it with at least one running step of a run on the node.
        cpu_hours: node-hours times allocatable cores.
        gpu_hours: node-hours times GPUs.
        held_cpu_hours: the part of `cpu_hours` that pods of runs held by their requests; none when those are unknown.
        held_gpu_hours: the same of `gpu_hours`.
        cost: node-hours times price; none when a price is unknown.
        currency: that of the prices, a code of ISO 4217; "" where none was given.
        warm: nodes that were ready when the test began.
        coming_hours: the part of the node-hours before nodes were ready.
    """

    node_hours: float
    busy_hours: float
    cpu_hours: float
    gpu_hours: float
    held_cpu_hours: float | None
    held_gpu_hours: float | None
    cost: float | None
    currency: str
    warm: int
    coming_hours: float

    @property
    def overhead(self) -> float | None:
        """The share of the charged hours that no pod requested: of GPUs where there are any, else of cores."""
        charged, held = self._hours
        return 1 - held / charged if held and charged else None

    @property
    def surplus(self) -> float | None:
        """What was charged beyond the pods' requests, as a share of the requests."""
        charged, held = self._hours
        return charged / held - 1 if held else None

    @property
    def wasted(self) -> float | None:
        """The part of the cost that paid for this overhead."""
        return None if self.cost is None or self.overhead is None else self.cost * self.overhead

    @property
    def _hours(self) -> tuple[float, float | None]:
        """Charged and requested."""
        if self.gpu_hours:
            return self.gpu_hours, self.held_gpu_hours
        return self.cpu_hours, self.held_cpu_hours

    @property
    def idle(self) -> float:
        """Share of the charged hours without a running step."""
        return 1 - self.busy_hours / self.node_hours if self.node_hours else 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """How long the runs' pods waited to run.

    Attributes:
        phase: seconds of each pod in Kubernetes' phase Pending: from its creation until a container runs.
        within: of `phase`, the share below a bound in seconds.
        waited: the part of it in which a pod was unschedulable, 0 if never.
    """

    phase: Summary
    within: dict[float, float]
    waited: Summary


@remembered
def cost(timeline: Timeline) -> Cost | None:
    """Sum up node lifetimes and the steps on them; none when no node was observed."""
    nodes = timeline.run_nodes
    if not len(nodes):
        return None
    hours, (start, end) = node_hours(timeline), _lifetimes(timeline)
    ready, gone = floats(nodes, "ready_s"), floats(nodes, "gone_s")
    came = np.minimum(np.nan_to_num(ready, nan=timeline.end_s), end)
    price = floats(nodes, "price")
    held = {each.resource: each.held_hours for each in requested(timeline)}
    return Cost(
        node_hours=float(hours.sum()),
        busy_hours=_busy_seconds(timeline) / 3600,
        cpu_hours=float((hours * floats(nodes, "cpu")).sum()),
        gpu_hours=float((hours * floats(nodes, "gpu")).sum()),
        held_cpu_hours=held.get("CPU"),
        held_gpu_hours=held.get("GPU"),
        cost=float((hours * price).sum()) if np.isfinite(price).all() else None,
        currency=str(nodes["currency"].iloc[0]) if "currency" in nodes else "",
        warm=int(np.count_nonzero((ready <= 0) & ~(gone <= 0))),
        coming_hours=float(np.maximum(came - start, 0.0).sum()) / 3600,
    )


def node_hours(timeline: Timeline) -> Floats:
    """By row of `Timeline.run_nodes`: hours from the node's creation to its end, within the test."""
    start, end = _lifetimes(timeline)
    return np.maximum(end - start, 0.0) / 3600


def _lifetimes(timeline: Timeline) -> tuple[Floats, Floats]:
    created, gone = floats(timeline.run_nodes, "created_s"), floats(timeline.run_nodes, "gone_s")
    return np.clip(created, 0.0, None), np.minimum(np.nan_to_num(gone, nan=timeline.end_s), timeline.end_s)


def _busy_seconds(timeline: Timeline) -> float:
    """Node-seconds with at least one running step, of some nodes at a time."""
    mine = timeline.of_runs(RUNNING, SERVING) & ~timeline.on_virtual & ~timeline.drives_elsewhere
    homes, parts = timeline.pods["node"].cat, len([*blocks(int(np.count_nonzero(mine)))])
    codes, borders = homes.codes.to_numpy(), np.linspace(-1, len(homes.categories), parts + 1).astype(int).tolist()
    return sum(_united_seconds(timeline, mine & (codes >= low) & (codes < high)) for low, high in pairwise(borders))


def _united_seconds(timeline: Timeline, chosen: Bools) -> float:
    """Of chosen rows of `pods`: seconds in any of a node's, laid end to end and merged at once."""
    start, end = (floats(timeline.pods, name)[chosen] for name in ("start_s", "end_s"))
    start = np.clip(start, 0.0, timeline.end_s)
    end = np.maximum(start, np.clip(np.nan_to_num(end, nan=timeline.end_s), 0.0, timeline.end_s))
    apart = timeline.pods["node"].cat.codes.to_numpy()[chosen].astype(np.float64) * (timeline.end_s + 1.0)
    low, high = merged(start + apart, end + apart)
    return float((high - low).sum())


def pending(timeline: Timeline) -> Pending | None:
    """From the pods' intervals, not from samples; none when no pod was observed."""
    pods = timeline.pods
    mine = (pods["row"] >= 0).to_numpy(dtype=bool) & ~timeline.reported
    if not mine.any():
        return None
    phase_s, ran = _pending_phase(timeline, mine)
    within = {bound: float(((phase_s < bound) & ran).mean()) for bound in _WITHIN_S}
    phase = summarize(phase_s, ran)
    del phase_s, ran  # of a large test each of these is large
    waiting = timeline.of_runs(UNSCHEDULABLE)
    waited, over = timeline.seconds_of(waiting), np.isfinite(floats(pods, "end_s")[waiting])
    rest = max(distinct(pods["pod"].to_numpy()[mine]) - waited.size, 0)
    values = np.concatenate((waited, np.zeros(rest)))
    return Pending(phase, within, summarize(values, np.concatenate((over, np.ones(rest, dtype=bool)))))


def _pending_phase(timeline: Timeline, mine: Bools) -> tuple[Floats, Bools]:
    """By pod: its seconds before a container ran, up to the end of the observation, and whether one ran or it ended."""
    kept = slice(None) if mine.all() else mine  # all of them need no copy
    before = timeline.of_runs(UNSCHEDULABLE, SCHEDULING, PULLING, STARTING)[kept]
    start, end, pod = (timeline.pods[name].to_numpy()[kept] for name in ("start_s", "end_s", "pod"))
    first = beginnings(pod)  # the rows of a pod are adjacent
    pending_s, ran = np.empty(first.size), np.empty(first.size, dtype=np.bool_)
    for here in blocks(first.size):
        low, high = first[here.start], first[here.stop] if here.stop < first.size else pod.size
        over, place = np.isfinite(end[low:high]), first[here] - low
        length = np.where(over, end[low:high], timeline.end_s) - start[low:high]
        pending_s[here] = np.add.reduceat(np.where(before[low:high], length, 0.0), place)
        ran[here] = ~np.logical_or.reduceat(before[low:high] & ~over, place)
    return pending_s, ran


@dataclass(frozen=True, slots=True)
class Goodput:
    """Goodput of the spot or of the on-demand nodes that can run the runs' pods.

    Attributes:
        spot: spot nodes, else on-demand ones.
        nodes: their number.
        node_hours: from their creation to their end, within the test.
        cost: node-hours times price; none when a price is unknown.
        lost: pods that failed there, were evicted, or were lost with their node.
        lost_s: seconds that those had run.
        worked_s: seconds that all pods ran there.
        runs: succeeded runs, each counted by the share of its useful seconds that ran here.
    """

    spot: bool
    nodes: int
    node_hours: float
    cost: float | None
    lost: int
    lost_s: float
    worked_s: float
    runs: float

    @property
    def per_node_hour(self) -> float | None:
        """Succeeded runs per node-hour."""
        return self.runs / self.node_hours if self.node_hours else None

    @property
    def per_money(self) -> float | None:
        """Succeeded runs per unit of money."""
        return self.runs / self.cost if self.cost else None


def goodput(timeline: Timeline) -> tuple[Goodput, ...]:
    """Spot nodes first; a kind without nodes is left out."""
    nodes, pods = timeline.run_nodes, timeline.pods
    is_spot, hours, price = nodes["spot"].to_numpy(dtype=bool), node_hours(timeline), floats(nodes, "price")
    working = timeline.of_runs(RUNNING, SERVING) & ~timeline.drives_elsewhere
    pod, run = (pods[name].to_numpy()[working] for name in ("pod", "row"))
    length = timeline.seconds_of(working)
    lost = np.isin(pod, np.concatenate(lost_pods(timeline)))
    good = ~lost & looked_up((timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool), run)
    whole = summed(run, length, good, len(timeline.runs))
    homes = pods["node"].cat
    code = homes.codes.to_numpy()[working]
    found = []
    for spot in (True, False):
        kind = is_spot == spot
        if not kind.any():
            continue
        here = looked_up(np.asarray(homes.categories.isin(nodes["name"][kind])), code)
        useful = summed(run, length, here & good, len(timeline.runs))
        cost = float((hours * price)[kind].sum())
        found.append(
            Goodput(
                spot, int(kind.sum()), float(hours[kind].sum()), cost if np.isfinite(cost) else None,
                int(np.unique(pod[here & lost]).size), float(length.sum(where=here & lost)),
                float(length.sum(where=here)),
                float(np.divide(useful, whole, out=np.zeros(whole.size), where=whole > 0).sum()),
            )
        )  # fmt: skip
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ImagePulls:
    """Pulls of images, and what they cost the runs.

    Attributes:
        pods: of the runs, that waited for a pull.
        run_s: seconds of a mean run's critical path (`critical_path`) in which an image was pulled. Image streaming, or
            images that are there before, save at most this: without the pull, another chain may be the longest.
        share: the same as a share of the runs' time.
    """

    pods: int
    run_s: float
    share: float


@dataclass(frozen=True, slots=True)
class GpuDrivers:
    """Installation of drivers on the GPU nodes that joined during the test.

    Attributes:
        nodes: how many.
        median_s: seconds from a node's readiness until its GPUs could be allocated.
        most_s: the longest.
        gpu_hours: charged meanwhile.
    """

    nodes: int
    median_s: float
    most_s: float
    gpu_hours: float


def image_pulls(timeline: Timeline) -> ImagePulls | None:
    """None when no pod of the runs waited for a pull."""
    pulling = timeline.of_runs(PULLING) & (timeline.pods["row"] >= 0).to_numpy(dtype=bool)
    path = critical_path(timeline)
    if not pulling.any() or not path.runs:
        return None
    share = path.shares[PULLING]
    return ImagePulls(distinct(timeline.pods["pod"].to_numpy()[pulling]), share * path.whole_s / path.runs, share)


def gpu_drivers(timeline: Timeline) -> GpuDrivers | None:
    """None when no node got its GPUs within the test.

    A node's readiness is the cluster's timestamp, in whole seconds; of its GPUs only the observer knows since when.
    """
    nodes = timeline.machines
    ready, gpus, count = (floats(nodes, name) for name in ("ready_s", "gpus_s", "gpu"))
    new = np.isfinite(ready) & np.isfinite(gpus)
    if not new.any():
        return None
    delay = np.maximum(gpus - ready, 0.0)[new]
    hours = float((delay * count[new]).sum()) / 3600
    return GpuDrivers(int(delay.size), float(np.median(delay)), float(delay.max()), hours)
