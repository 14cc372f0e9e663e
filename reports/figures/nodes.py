"""Single nodes over time: the pods that each carried, and how many worked on all of them."""

from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from harness.analysis.services.workers import WORKING
from harness.analysis.timeline import Bools, Floats, Ints, floats
from harness.analysis.timeline.columns import evenly
from harness.analysis.timeline.curves import mean_active
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import POD_PHASES, RUNNING, SCHEDULING, UNSCHEDULABLE
from reports.figures.figure import Figure, Trace, Unit, axis, figure, marks, stretches, time_axis, unit_of
from reports.figures.phases import color
from reports.report import Report

_MOST_CARRIERS = 12
_MOST_PODS = 600
_MOST_LANES = 110
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class _Carriers:
    """What carries pods or executions: nodes in the order in which they came, or replicas by name."""

    noun: str
    what: str
    names: list[str]
    ready: Floats
    gone: Floats
    on: tuple[str, ...]
    working: tuple[str, ...]


def _carriers(report: Report) -> _Carriers:
    end_s = report.timeline.end_s
    if report.workers is not None:
        names = [worker.name for worker in report.workers.workers]
        whole = np.zeros(len(names))
        return _Carriers("replica", "executions", names, whole, whole + end_s, WORKING, WORKING)
    nodes = report.timeline.run_nodes.sort_values(["ready_s", "name"], kind="stable")
    ready, gone = np.maximum(floats(nodes, "ready_s"), 0.0), np.fmin(floats(nodes, "gone_s"), end_s)
    on = tuple(name for name in POD_PHASES if name not in {UNSCHEDULABLE, SCHEDULING})
    return _Carriers("node", "steps", nodes["name"].astype(str).tolist(), ready, gone, on, (RUNNING,))


def work(report: Report) -> Figure | None:
    """How many steps worked on each node, or executions on each replica, over time."""
    carriers, unit = _carriers(report), unit_of(float(report.throughput.edges_s[-1]))
    pods = report.timeline.pods.loc[report.timeline.of_runs(*carriers.working), ["node", "start_s", "end_s"]]
    if not carriers.names or not len(pods):
        return None
    shown = [carriers.names[k] for k in evenly(len(carriers.names), _MOST_ROWS).tolist()]
    home, code = pods["node"].cat.codes.to_numpy(), {name: k for k, name in enumerate(pods["node"].cat.categories)}
    start, end = floats(pods, "start_s"), floats(pods, "end_s")
    grid = []
    for name in shown:
        here = home == code.get(name, -1)
        grid.append(mean_active(start[here], end[here], report.throughput.edges_s).tolist())
    most = max(max(row) for row in grid)
    trace = {
        "type": "heatmap", "x": (report.throughput.middles_s / unit.seconds).tolist(), "y": _short(shown), "z": grid,
        "zmin": 0, "zmax": most, "colorscale": [[0, "--wash"], [1, "--accent"]], "xgap": 1, "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0}, "name": f"{carriers.what} at work",
        "hovertemplate": "%{y}: %{z:.1f} " + carriers.what + "<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": time_axis(unit, showgrid=False),
        "yaxis": axis("", autorange="reversed", showgrid=False, type="category"),
        "showlegend": False,
    }
    noun, count = carriers.noun, len(carriers.names)
    which = "" if len(shown) == count else f" {len(shown)} of {count:,} {noun}s, evenly chosen."
    first = "" if report.workers is not None else ", those that came first on top"
    caption = f"{carriers.what.capitalize()} at work on each {noun}{first}; up to {most:.1f} at once on one.{which}"
    return figure("work", f"Work on the {noun}s", caption, [trace], layout, height=max(200, 20 * len(shown) + 90))


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Stretches of pods on the nodes that are shown.

    Attributes:
        row: of `Timeline.pods`.
        run: row of `Timeline.runs`.
        pod: number of the pod.
        on: position among the nodes that are shown.
        start: seconds after t0.
        end: seconds after t0; of what goes on, the end of the observation.
    """

    row: Ints
    run: Ints
    pod: Ints
    on: Ints
    start: Floats
    end: Floats

    def of(self, chosen: Bools) -> "_Placed":
        return _Placed(*(getattr(self, name)[chosen] for name in self.__slots__))


def pods(report: Report) -> Figure | None:
    """What some pods did on some nodes, or executions on replicas, as bars on lanes; a node's lanes stand together."""
    carriers = _carriers(report)
    shown, found = _placed(report, carriers)
    if not shown or not found.row.size:
        return None
    found, whole, lane_of, lanes = _drawn(found, len(shown))
    unit = unit_of(report.timeline.end_s)
    top = np.cumsum([0, *lanes])
    place = top[found.on] + np.array([lane_of[pod] for pod in found.pod.tolist()])
    middle, there = (top[:-1] + top[1:] - 1) / 2, {"width": (np.diff(top) - 0.12).tolist(), "hoverinfo": "skip"}
    traces = [
        stretches(
            f"{carriers.noun} ready", middle, carriers.ready[shown], carriers.gone[shown], "--wash", unit, **there
        ),
        *_phase_bars(report, found, place, unit),
        *_ends(report, found, place, unit),
    ]
    layout = {
        "barmode": "overlay",
        "xaxis": time_axis(unit),
        "yaxis": axis(
            "", range=[float(top[-1]) - 0.3, -0.7], tickvals=middle.tolist(),
            ticktext=_short([carriers.names[k] for k in shown]), showgrid=False, zeroline=False,
        ),
    }  # fmt: skip
    title = f"{'Pods' if carriers.noun == 'node' else 'Executions'} on their {carriers.noun}s"
    height = max(260, round((9 if top[-1] > 40 else 14) * float(top[-1])) + 90)
    caption = _caption(carriers, len(shown), np.unique(found.pod).size, whole=whole)
    return figure("pods", title, caption, traces, layout, height=height)


def _placed(report: Report, carriers: _Carriers) -> tuple[list[int], _Placed]:
    """Some nodes, from the busiest to the quietest, in the order in which they came; and all pods on them."""
    timeline = report.timeline
    homes, mine = timeline.pods["node"].cat, np.flatnonzero(timeline.of_runs(*carriers.on))
    codes = homes.codes.to_numpy()[mine]
    start = floats(timeline.pods, "start_s")[mine]
    end = np.nan_to_num(floats(timeline.pods, "end_s")[mine], nan=timeline.end_s)
    busy = np.bincount(codes, end - start, len(homes.categories))
    of_name = dict(zip(homes.categories, busy.tolist(), strict=True))
    order = sorted(range(len(carriers.names)), key=lambda k: -of_name.get(carriers.names[k], 0.0))
    shown = sorted(order[k] for k in evenly(len(order), _MOST_CARRIERS).tolist())
    position = {carriers.names[k]: at for at, k in enumerate(shown)}
    on = np.array([position.get(name, -1) for name in homes.categories], dtype=np.int64)
    kept = np.flatnonzero((on >= 0)[codes] & (end >= start))
    row = mine[kept]
    run, pod = (timeline.pods[name].to_numpy()[row].astype(np.int64) for name in ("row", "pod"))
    return shown, _Placed(row, run, pod, on[codes[kept]], start[kept], end[kept])


def _drawn(found: _Placed, nodes: int) -> tuple[_Placed, bool, dict[int, int], list[int]]:
    """The pods of as many evenly chosen runs as can be read, whether that is all, the lane of each, lanes by node."""
    runs = np.unique(found.run)
    count = min(runs.size, max(1, round(runs.size * _MOST_PODS / np.unique(found.pod).size)))
    while True:
        part = found.of(np.isin(found.run, runs[evenly(runs.size, count)]))
        lane_of, lanes = _lanes(part, nodes)
        if sum(lanes) <= _MOST_LANES or count == 1:
            return part, count == runs.size, lane_of, lanes
        count = max(1, count * 2 // 3)


def _lanes(found: _Placed, nodes: int) -> tuple[dict[int, int], list[int]]:
    """Each pod in a lane of its node that is free, by the order of their starts; a node's name needs two lanes."""
    pod, first = np.unique(found.pod, return_index=True)
    at = np.searchsorted(pod, found.pod)
    start, end = np.full(pod.size, np.inf), np.full(pod.size, -np.inf)
    np.minimum.at(start, at, found.start)
    np.maximum.at(end, at, found.end)
    free: list[list[tuple[float, int]]] = [[] for _ in range(nodes)]  # heaps of (when, lane)
    lane_of = {}
    for k in np.argsort(start, kind="stable").tolist():
        of_node = free[int(found.on[first[k]])]
        if of_node and of_node[0][0] <= start[k]:
            lane = of_node[0][1]
            heapreplace(of_node, (float(end[k]), lane))
        else:
            lane = len(of_node)
            of_node.append((float(end[k]), lane))
            heapify(of_node)
        lane_of[int(pod[k])] = lane
    return lane_of, [max(2, len(of_node)) for of_node in free]


def _phase_bars(report: Report, found: _Placed, place: Ints, unit: Unit) -> list[Trace]:
    timeline, traces = report.timeline, []
    seq = floats(timeline.runs, "seq")[found.run]
    tasks = timeline.pods["task"].take(found.row).astype(str)
    texts = np.array([f"{task or 'execution'} of run {number:.0f}" for task, number in zip(tasks, seq, strict=True)])
    phases = timeline.pods["phase"].to_numpy()[found.row]
    for k, phase in enumerate(POD_PHASES):
        mine, of = (phases == k) & (found.end > found.start), color(phase)
        if mine.any():
            more = {
                # The line keeps what is short beside the whole test in sight.
                "marker": {"color": of, "line": {"width": 0.5, "color": of}}, "text": texts[mine].tolist(),
                "textposition": "none",
                "hovertemplate": f"%{{text}}: %{{x:.4g}} {unit.sign}<extra>{phase}</extra>",
            }  # fmt: skip
            traces.append(stretches(phase, place[mine], found.start[mine], found.end[mine], of, unit, **more))
    return traces


def _ends(report: Report, found: _Placed, place: Ints, unit: Unit) -> list[Trace]:
    """Crosses where pods failed, diamonds where they were taken."""
    traces = []
    signs = (("failed", "--bad", "x"), ("evicted or lost with its node", "--ink", "diamond"))
    for (name, of, symbol), numbers in zip(signs, lost_pods(report.timeline), strict=True):
        mine = np.isin(found.pod, numbers)
        pod, at = np.unique(found.pod[mine], return_inverse=True)
        if pod.size:
            end, lane = np.full(pod.size, -np.inf), np.zeros(pod.size, dtype=np.int64)
            np.maximum.at(end, at, found.end[mine])
            lane[at] = place[mine]
            traces.append(marks(name, lane, end, of, unit, symbol))
    return traces


def _caption(carriers: _Carriers, shown: int, pods: int, *, whole: bool) -> str:
    noun, count = carriers.noun, len(carriers.names)
    what, order = ("pods", ", those that came first on top") if noun == "node" else ("executions", "")
    which = f"{shown} of {count:,} {noun}s, from the busiest to the quietest" if shown < count else f"All {noun}s"
    some = f"all {pods:,} {what} on them" if whole else f"{pods:,} {what} of evenly chosen runs: others ran beside them"
    return f"{which}{order}, with {some}."


def _short(names: list[str]) -> list[str]:
    """Names without the beginning they share up to its last dash, as long as they stay distinct."""
    shared = 0
    if len(names) > 1:
        same = next((k for k, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)
        shared = names[0].rfind("-", 0, same) + 1
    return [f"…{name[shared:]}" if shared else name for name in names]
