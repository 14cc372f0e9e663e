"""Single nodes over time: the pods on each and how many of them work; the same for replicas of a service."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import pairwise

import numpy as np

from harness.analysis.result import Result
from harness.analysis.services.workers import WORKING
from harness.analysis.timeline import Bools, Floats, Ints, Timeline, blocks, evenly, floats, looked_up, mean_active
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import POD_PHASES, RUNNING, SCHEDULING, SERVING, UNSCHEDULABLE
from harness.model.units import format_duration
from reports.figures.figure import Figure, Trace, Unit, axis, figure, marks, spans, time_axis, unit_of
from reports.figures.phases import color

_MOST_HOSTS = 12
_MOST_PODS = 600
_MOST_LANES = 110
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True, eq=False)
class _Hosts:
    """What pods run on: nodes by readiness, or replicas by name.

    Attributes:
        noun: what one is called.
        carried: what pods are called there.
        at_work: what pods that work are called.
        order: how they are sorted, for captions.
        names: of all of them.
        ready_s: from when each could run pods, 0 or later.
        gone_s: until when; the end of the observation where it stayed.
        placed: phases in which a pod is on its host.
        working: phases in which it works there.
    """

    noun: str
    carried: str
    at_work: str
    order: str
    names: tuple[str, ...]
    ready_s: Floats
    gone_s: Floats
    placed: tuple[str, ...]
    working: tuple[str, ...]


def _hosts(result: Result) -> _Hosts:
    """The replicas where they named themselves, else the runs' nodes."""
    timeline, workers = result.timeline, result.workers
    if workers is not None:
        whole = np.zeros(len(workers.workers))
        names = tuple(worker.name for worker in workers.workers)
        return _Hosts("replica", "executions", "executions", "", names, whole, whole + timeline.end_s, WORKING, WORKING)
    nodes = timeline.run_nodes.sort_values(["ready_s", "name"], kind="stable")
    ready, gone = np.maximum(floats(nodes, "ready_s"), 0.0), np.fmin(floats(nodes, "gone_s"), timeline.end_s)
    placed = tuple(name for name in POD_PHASES if name not in {UNSCHEDULABLE, SCHEDULING})
    names = tuple(nodes["name"].astype(str))
    return _Hosts("node", "pods", "steps", ", oldest on top", names, ready, gone, placed, (RUNNING, SERVING))


def work(result: Result) -> Figure | None:
    """Mean number of steps at work on each node, or of executions on each replica, by window of the throughput.

    Of many hosts some are evenly chosen.
    """
    on, flow, pods = _hosts(result), result.throughput, result.timeline.pods
    pods = pods.loc[result.timeline.of_runs(*on.working), ["node", "start_s", "end_s"]]
    if not on.names or not len(pods):
        return None
    shown = [on.names[k] for k in evenly(len(on.names), _MOST_ROWS).tolist()]
    homes, start, end = pods["node"].cat, floats(pods, "start_s"), floats(pods, "end_s")
    codes, code_of = homes.codes.to_numpy(), {name: k for k, name in enumerate(homes.categories)}
    mean = []
    for name in shown:
        here = codes == code_of.get(name, -1)
        mean.append(mean_active(start[here], end[here], flow.edges_s))
    unit, most = unit_of(float(flow.edges_s[-1])), float(np.max(mean))
    trace = {
        "type": "heatmap", "x": (flow.middles_s / unit.seconds).tolist(), "y": _short(shown), "z": np.array(mean),
        "zmin": 0, "zmax": most, "colorscale": [[0, "--wash"], [1, "--accent"]], "xgap": 1, "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0}, "name": f"running {on.at_work}",
        "hovertemplate": "%{y}: %{z:.1f} " + on.at_work + "<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": time_axis(unit, showgrid=False),
        "yaxis": axis("", autorange="reversed", showgrid=False, type="category"),
        "showlegend": False,
    }
    which = "" if len(shown) == len(on.names) else f" {len(shown)} of {len(on.names):,} {on.noun}s, evenly chosen."
    caption = (
        f"Running {on.at_work} per {on.noun}{on.order}; means of {format_duration(flow.width_s)}, at most "
        f"{most:.1f}.{which}"
    )
    return figure("work", f"Load per {on.noun}", caption, [trace], layout, height=max(200, 20 * len(shown) + 90))


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


def pods(result: Result) -> Figure | None:
    """Some pods on some nodes, or executions on replicas, as bars on lanes grouped by node; none without any."""
    timeline, on = result.timeline, _hosts(result)
    shown, every = _placed(timeline, on)
    if not shown or not every.row.size:
        return None
    placed, all_runs, lane_of, lanes = _drawn(every, len(shown))
    first_lane = np.cumsum([0, *lanes])
    lane = first_lane[placed.on] + np.array([lane_of[pod] for pod in placed.pod.tolist()])
    unit, top, middle = unit_of(timeline.end_s), first_lane.tolist(), (first_lane[:-1] + first_lane[1:] - 1) / 2
    width = {"width": [high - low - 0.12 for low, high in pairwise(top)], "hoverinfo": "skip"}
    failed, taken = lost_pods(timeline)
    traces = [
        spans(f"{on.noun} ready", middle, on.ready_s[shown], on.gone_s[shown], "--wash", unit, **width),
        *_phase_bars(timeline, placed, lane, unit),
        *_ends("failed", placed, lane, failed, "--bad", unit, "x"),
        *_ends("evicted or lost with its node", placed, lane, taken, "--ink", unit, "diamond"),
    ]
    layout = {
        "barmode": "overlay",
        "xaxis": time_axis(unit),
        "yaxis": axis(
            "", range=[top[-1] - 0.3, -0.7], tickvals=middle.tolist(), ticktext=_short([on.names[k] for k in shown]),
            showgrid=False, zeroline=False,
        ),
    }  # fmt: skip
    height = max(260, (9 if top[-1] > 40 else 14) * top[-1] + 90)
    some = f"{len(shown)} of {len(on.names):,} {on.noun}s, from the busiest to the idlest"
    which = some if len(shown) < len(on.names) else f"All {on.noun}s"
    count = f"{np.unique(placed.pod).size:,} {on.carried}"
    caption = f"{which}{on.order}, with {f'all {count}' if all_runs else f'{count} of evenly chosen runs'}."
    return figure("pods", f"{on.carried.capitalize()} by {on.noun}", caption, traces, layout, height=height)


def _phase_bars(timeline: Timeline, placed: _Placed, lane: Ints, unit: Unit) -> Iterator[Trace]:
    kept = placed.end > placed.start
    bars, lane = placed.of(kept), lane[kept]
    phases, tasks = timeline.pods["phase"].to_numpy()[bars.row], timeline.pods["task"].take(bars.row).astype(str)
    seqs = floats(timeline.runs, "seq")[bars.run].astype(np.int64).tolist()
    texts = np.array([f"{task or 'execution'} of run {seq}" for task, seq in zip(tasks, seqs, strict=True)], object)
    for k, phase in enumerate(POD_PHASES):
        mine, of = phases == k, color(phase)
        if mine.any():
            more = {
                # The outline keeps short bars visible next to the whole test.
                "marker": {"color": of, "line": {"width": 0.5, "color": of}},
                "text": texts[mine].tolist(),
                "textposition": "none",
                "hovertemplate": f"%{{text}}: %{{x:.4g}} {unit.sign}<extra>{phase}</extra>",
            }
            yield spans(phase, lane[mine], bars.start[mine], bars.end[mine], of, unit, **more)


def _ends(name: str, placed: _Placed, lane: Ints, numbers: Ints, of: str, unit: Unit, symbol: str) -> Iterator[Trace]:
    """Marks at the ends of the pods with these numbers."""
    mine = np.isin(placed.pod, numbers)
    pod, at = np.unique(placed.pod[mine], return_inverse=True)
    end, lane_of = np.full(pod.size, -np.inf), np.zeros(pod.size, dtype=np.int64)
    np.maximum.at(end, at, placed.end[mine])
    lane_of[at] = lane[mine]
    if pod.size:
        yield marks(name, lane_of, end, of, unit, symbol)


def _placed(timeline: Timeline, on: _Hosts) -> tuple[list[int], _Placed]:
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


def _drawn(every: _Placed, count: int) -> tuple[_Placed, bool, dict[int, int], list[int]]:
    """The pods of as many evenly chosen runs as fit, whether that is all, the lane by pod, and lanes by host."""
    runs = np.unique(every.run)
    some = min(runs.size, max(1, round(runs.size * _MOST_PODS / np.unique(every.pod).size)))
    while True:
        part = every.of(np.isin(every.run, runs[evenly(runs.size, some)]))
        lane_of, lanes = _lanes(part, count)
        if sum(lanes) <= _MOST_LANES or some == 1:
            return part, some == runs.size, lane_of, lanes
        some = max(1, some * 2 // 3)


def _lanes(placed: _Placed, count: int) -> tuple[dict[int, int], list[int]]:
    """Lane by pod, the first free one of its host in order of start, and lanes by host: two or more, for the name."""
    pod, first = np.unique(placed.pod, return_index=True)
    at = np.searchsorted(pod, placed.pod)
    start, end = np.full(pod.size, np.inf), np.full(pod.size, -np.inf)
    np.minimum.at(start, at, placed.start)
    np.maximum.at(end, at, placed.end)
    free: list[list[tuple[float, int]]] = [[] for _ in range(count)]  # heaps of (when, lane)
    lane_of = {}
    for k in np.argsort(start, kind="stable").tolist():
        of_host = free[int(placed.on[first[k]])]
        if of_host and of_host[0][0] <= start[k]:
            lane = of_host[0][1]
            heapreplace(of_host, (float(end[k]), lane))
        else:
            lane = len(of_host)
            of_host.append((float(end[k]), lane))
            heapify(of_host)
        lane_of[int(pod[k])] = lane
    return lane_of, [max(2, len(of_host)) for of_host in free]


def _short(names: list[str]) -> list[str]:
    """Names without the beginning they share up to its last dash, as long as they stay distinct."""
    shared = 0
    if len(names) > 1:
        same = next((k for k, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)
        shared = names[0].rfind("-", 0, same) + 1
    return [f"…{name[shared:]}" if shared else name for name in names]
