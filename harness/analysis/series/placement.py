"""Where pods ran: on which node, or executions on which replica, and how busy each was."""

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from harness.analysis.services.workers import WORKING, Workers
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Bools, Floats, Ints, Timeline, blocks, evenly, floats, looked_up, mean_active
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import POD_PHASES, RUNNING, SCHEDULING, SERVING, UNSCHEDULABLE

_MOST_HOSTS = 12
_MOST_PODS = 600
_MOST_LANES = 110
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """Carriers of pods: nodes by readiness, or replicas by name.

    Attributes:
        names: of all of them.
        ready_s: from when each could run pods, 0 or later.
        gone_s: until when; the end of the observation where it stayed.
        placed: phases in which a pod is on its host.
        working: phases in which it works there.
    """

    names: tuple[str, ...]
    ready_s: Floats
    gone_s: Floats
    placed: tuple[str, ...]
    working: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HostWork:
    """Mean number of steps at work on some hosts, by window of `throughput`; `mean` has shape (hosts, windows)."""

    names: tuple[str, ...]
    hosts: int
    mean: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LostPods:
    """Where pods ended that were lost: lane and seconds after t0."""

    lane: Ints
    at_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Pods on the lanes of their hosts; pods on one lane never overlap.

    Attributes:
        hosts: how many there are.
        names: of those shown.
        ready_s: of those shown.
        gone_s: of those shown.
        first_lane: of each host shown, and the number of lanes at the end.
        pods: pods shown.
        all_runs: all runs' pods on these hosts are shown; else those of evenly chosen runs.
        lane: per bar.
        phase: per bar, index into POD_PHASES.
        start_s: per bar.
        end_s: per bar, after its start; of open intervals, the end of the observation.
        seq: per bar, of its run.
        task: per bar, the name of its task.
        failed: pods that failed by themselves.
        taken: pods that were evicted, or lost with their node.
    """

    hosts: int
    names: tuple[str, ...]
    ready_s: Floats
    gone_s: Floats
    first_lane: Ints
    pods: int
    all_runs: bool
    lane: Ints
    phase: Ints
    start_s: Floats
    end_s: Floats
    seq: Ints
    task: tuple[str, ...]
    failed: LostPods
    taken: LostPods


def hosts(timeline: Timeline, workers: Workers | None) -> Hosts:
    """The replicas where they named themselves, else the runs' nodes."""
    if workers is not None:
        whole = np.zeros(len(workers.workers))
        names = tuple(worker.name for worker in workers.workers)
        return Hosts(names, whole, whole + timeline.end_s, WORKING, WORKING)
    nodes = timeline.run_nodes.sort_values(["ready_s", "name"], kind="stable")
    ready, gone = np.maximum(floats(nodes, "ready_s"), 0.0), np.fmin(floats(nodes, "gone_s"), timeline.end_s)
    placed = tuple(name for name in POD_PHASES if name not in {UNSCHEDULABLE, SCHEDULING})
    return Hosts(tuple(nodes["name"].astype(str)), ready, gone, placed, (RUNNING, SERVING))


def host_work(timeline: Timeline, on: Hosts) -> HostWork | None:
    """None when nothing worked on a known host; of many hosts some are evenly chosen."""
    pods = timeline.pods.loc[timeline.of_runs(*on.working), ["node", "start_s", "end_s"]]
    if not on.names or not len(pods):
        return None
    shown = tuple(on.names[k] for k in evenly(len(on.names), _MOST_ROWS).tolist())
    homes = pods["node"].cat
    codes, code_of = homes.codes.to_numpy(), {name: k for k, name in enumerate(homes.categories)}
    start, end, edges = floats(pods, "start_s"), floats(pods, "end_s"), throughput(timeline).edges_s
    mean = []
    for name in shown:
        here = codes == code_of.get(name, -1)
        mean.append(mean_active(start[here], end[here], edges))
    return HostWork(shown, len(on.names), np.array(mean))


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Intervals of pods on the hosts that are shown.

    Attributes:
        row: of `Timeline.pods`.
        run: row of `Timeline.runs`.
        pod: number of the pod.
        on: position among the hosts that are shown.
        start: seconds after t0.
        end: seconds after t0; of open intervals, the end of the observation.
    """

    row: Ints
    run: Ints
    pod: Ints
    on: Ints
    start: Floats
    end: Floats

    def of(self, chosen: Bools) -> "_Placed":
        return _Placed(*(getattr(self, name)[chosen] for name in self.__slots__))


def placement(timeline: Timeline, on: Hosts) -> Placement | None:
    """None when no pod ran on a known host."""
    shown, every = _placed(timeline, on)
    if not shown or not every.row.size:
        return None
    placed, all_runs, lane_of, lanes = _drawn(every, len(shown))
    first_lane = np.cumsum([0, *lanes])
    lane = first_lane[placed.on] + np.array([lane_of[pod] for pod in placed.pod.tolist()])
    kept = placed.end > placed.start
    bars = placed.of(kept)
    failed, taken = (_lost(placed, lane, numbers) for numbers in lost_pods(timeline))
    return Placement(
        hosts=len(on.names),
        names=tuple(on.names[k] for k in shown),
        ready_s=on.ready_s[shown],
        gone_s=on.gone_s[shown],
        first_lane=first_lane,
        pods=np.unique(placed.pod).size,
        all_runs=all_runs,
        lane=lane[kept],
        phase=timeline.pods["phase"].to_numpy()[bars.row].astype(np.int64),
        start_s=bars.start,
        end_s=bars.end,
        seq=floats(timeline.runs, "seq")[bars.run].astype(np.int64),
        task=tuple(timeline.pods["task"].take(bars.row).astype(str)),
        failed=failed,
        taken=taken,
    )


def _placed(timeline: Timeline, on: Hosts) -> tuple[list[int], _Placed]:
    """Evenly chosen hosts from the busiest to the idlest, in their order in `on`, and all pods on them."""
    homes, placed = timeline.pods["node"].cat, timeline.of_runs(*on.placed)
    codes = homes.codes.to_numpy()
    start, ends = floats(timeline.pods, "start_s"), floats(timeline.pods, "end_s")
    busy = np.zeros(len(homes.categories))
    for here in blocks(codes.size):
        length = np.nan_to_num(ends[here], nan=timeline.end_s) - start[here]
        busy += np.bincount(codes[here], np.where(placed[here], length, 0.0), busy.size)
    of_name = dict(zip(homes.categories, busy.tolist(), strict=True))
    order = sorted(range(len(on.names)), key=lambda k: -of_name.get(on.names[k], 0.0))
    shown = sorted(order[k] for k in evenly(len(order), _MOST_HOSTS).tolist())
    position = {on.names[k]: at for at, k in enumerate(shown)}
    at_host = np.array([position.get(name, -1) for name in homes.categories], dtype=np.int64)
    row = np.flatnonzero(looked_up(at_host >= 0, codes) & placed)
    end = np.nan_to_num(ends[row], nan=timeline.end_s)
    forwards = end >= start[row]
    row, end = row[forwards], end[forwards]
    run, pod = (timeline.pods[name].to_numpy()[row].astype(np.int64) for name in ("row", "pod"))
    return shown, _Placed(row, run, pod, at_host[codes[row]], start[row], end)


def _drawn(found: _Placed, count: int) -> tuple[_Placed, bool, dict[int, int], list[int]]:
    """The pods of as many evenly chosen runs as fit, whether that is all, the lane by pod, and lanes by host."""
    runs = np.unique(found.run)
    some = min(runs.size, max(1, round(runs.size * _MOST_PODS / np.unique(found.pod).size)))
    while True:
        part = found.of(np.isin(found.run, runs[evenly(runs.size, some)]))
        lane_of, lanes = _lanes(part, count)
        if sum(lanes) <= _MOST_LANES or some == 1:
            return part, some == runs.size, lane_of, lanes
        some = max(1, some * 2 // 3)


def _lanes(found: _Placed, count: int) -> tuple[dict[int, int], list[int]]:
    """Lane by pod, the first free one of its host in order of start, and lanes by host: two or more, for the name."""
    pod, first = np.unique(found.pod, return_index=True)
    at = np.searchsorted(pod, found.pod)
    start, end = np.full(pod.size, np.inf), np.full(pod.size, -np.inf)
    np.minimum.at(start, at, found.start)
    np.maximum.at(end, at, found.end)
    free: list[list[tuple[float, int]]] = [[] for _ in range(count)]  # heaps of (when, lane)
    lane_of = {}
    for k in np.argsort(start, kind="stable").tolist():
        of_host = free[int(found.on[first[k]])]
        if of_host and of_host[0][0] <= start[k]:
            lane = of_host[0][1]
            heapreplace(of_host, (float(end[k]), lane))
        else:
            lane = len(of_host)
            of_host.append((float(end[k]), lane))
            heapify(of_host)
        lane_of[int(pod[k])] = lane
    return lane_of, [max(2, len(of_host)) for of_host in free]


def _lost(found: _Placed, lane: Ints, numbers: Ints) -> LostPods:
    """The ends of the pods with these numbers."""
    mine = np.isin(found.pod, numbers)
    pod, at = np.unique(found.pod[mine], return_inverse=True)
    end, lane_of = np.full(pod.size, -np.inf), np.zeros(pod.size, dtype=np.int64)
    np.maximum.at(end, at, found.end[mine])
    lane_of[at] = lane[mine]
    return LostPods(lane_of, end)
