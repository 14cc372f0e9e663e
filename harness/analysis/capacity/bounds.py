"""Upper bounds on throughput by the operational laws: no resource serves more than servers / service demand.

    X <= min over the resources of  servers / D,   X <= N / (D + Z)  in a closed test
                                                   (Denning and Buzen 1978; Lazowska et al. 1984, chapter 5)

D is the service demand of one run at a resource. The resource with the smallest bound is the bottleneck, however much
the others are enlarged.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.acceptance import acceptance, plateau
from harness.analysis.services.database import Work, connection_seconds, database_work
from harness.analysis.services.executions import executions
from harness.analysis.services.saturation import saturation
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline, beginnings, floats, merged, peak, remembered
from harness.analysis.waits.storing import storing
from harness.analysis.waits.waits import segments, waits
from harness.model.phases import (
    CONTROLLER,
    LOADING,
    POD_PHASES,
    PRECEDENCE,
    SCHEDULING,
    SENDING,
    STORING,
    UNSCHEDULABLE,
)
from harness.model.units import format_duration

ADAPTERS = "adapters"
_MIN_SHARE = 0.15  # of the runs' time
_MIN_AT_ONCE = 3.0
_MIN_EXECUTIONS = 10  # executions of a replica
_A_POD_S = 2.0  # between two pods a healthy controller takes about a second, and platforms record whole seconds
_MAX_COMPUTING = 1 / 3  # of the workers' time: behind adapters at their limit, workers seldom compute
_UNHINDERED_QUANTILE = 0.05
_REFUTED = 1.05


@dataclass(frozen=True, slots=True)
class Bound:
    """The highest throughput that one resource allows.

    Attributes:
        part: "API server", "controller", "nodes", "artifact store", "adapters", "database", "database connections", or
            "runs in flight" of a closed test.
        per_hour: runs per hour.
        demand_s: service demand, the seconds of one server of this resource that a run needs.
        servers: their number: 1, the pods that fit on the nodes at once, connections, or the runs in flight.
        utilisation: the measured throughput of all runs as a share of `per_hour`.
        how: the measurements it was derived from.
    """

    part: str
    per_hour: float
    demand_s: float
    servers: float
    utilisation: float
    how: str


@remembered
def bounds(timeline: Timeline) -> tuple[Bound, ...]:
    """The bounds that this test shows, the smallest first; resources that never reached their limit have none.

    A bound below the measured throughput is left out: that resource waited for another one.
    """
    measured = throughput(timeline).over_per_hour
    parts = (_api, _controller, _nodes, _store, _adapters, _database, _connections, _in_flight)
    found = [
        bound for part in parts if (bound := part(timeline, measured)) is not None and bound.utilisation < _REFUTED
    ]
    return tuple(sorted(found, key=lambda bound: bound.per_hour))


def _api(timeline: Timeline, measured: float) -> Bound | None:
    flow = acceptance(timeline)
    if flow is None:
        return None
    per_hour = 3600 * flow.rate
    how = f"{flow.count:,} consecutive responses while submissions queued"
    return Bound("API server", per_hour, 1 / flow.rate, 1.0, measured / per_hour, how)


def _nodes(timeline: Timeline, measured: float) -> Bound | None:
    """Only where pods waited for a node: otherwise the nodes never reached their limit."""
    pods = timeline.pods
    if not len(timeline.waiting_for_run_nodes) or not timeline.is_over.any():
        return None
    on_node = timeline.of_runs(*(phase for phase in POD_PHASES if phase not in {UNSCHEDULABLE, SCHEDULING}))
    on_node &= ~timeline.on_virtual & ~timeline.drives_elsewhere
    start, end = floats(pods, "start_s")[on_node], floats(pods, "end_s")[on_node]
    end = np.where(np.isfinite(end), end, timeline.end_s)
    demand = float((end - start).sum()) / int(timeline.is_over.sum())
    if not demand:
        return None
    places = float(peak(start, end))
    per_hour = 3600 * places / demand
    how = f"at most {places:,.0f} pods ran at once, and the pods of a run take {format_duration(demand)} in total"
    return Bound("nodes", per_hour, demand, places, measured / per_hour, how)


def _controller(timeline: Timeline, measured: float) -> Bound | None:
    """The even pace at which pods are created, one after the other, while runs wait for their next one.

    Where only the first pod is slow to come, runs wait for a slot, not for the controller. Where the first one comes
    at once, the others wait for the controller's next look at their run, which it has time for.
    """
    over = timeline.is_over & np.isfinite(floats(timeline.runs, "over_s"))
    if waits(timeline).shares()[CONTROLLER] < _MIN_SHARE:
        return None
    between = segments(timeline, over)
    if not between.row.size:
        return None
    new = beginnings(between.row)
    waiting = (between.level == len(PRECEDENCE)) & (between.length > 0)
    asked = np.concatenate((floats(timeline.runs, "answered_s")[between.row[new]], between.start[waiting]))
    made = np.concatenate((between.start[new], between.end[waiting]))
    typical = float(np.median(between.length[waiting])) if waiting.any() else 0.0
    first = between.start[new] - floats(timeline.runs, "answered_s")[between.row[new]]
    flow = plateau(asked, made) if min(typical, float(np.median(first))) >= _A_POD_S else None
    if flow is None:
        return None
    a_run = made.size / int(over.sum())
    per_hour = 3600 * flow.rate / a_run
    how = f"runs got their next pod at {flow.rate:.1f}/s while others waited, and a run waits {a_run:.1f} times"
    return Bound("controller", per_hour, a_run / flow.rate, 1.0, measured / per_hour, how)


def _store(timeline: Timeline, measured: float) -> Bound | None:
    """The artifact store, shared by all that store at once; most of them in pods whose logs were not read.

    Where only a sample is known, pods are taken to store independently of each other: with a storing at once on
    average, some are in a share 1 - exp(-a) of the time (the M/G/∞ queue).
    """
    stored, over = storing(timeline), int(timeline.is_over.sum())
    if not stored.logs:
        return _shared(timeline, measured, "artifact store", (STORING,))
    known = timeline.pods[timeline.of_runs(STORING)]
    first, last = float(floats(known, "start_s").min()), float(np.nanmax(floats(known, "end_s"), initial=0.0))
    if stored.share < _MIN_SHARE or not over or last <= first:
        return None
    at_once = stored.total_s / (last - first)
    busy = (last - first) * -float(np.expm1(-at_once))
    return _sharing("artifact store", measured, over, busy, stored.total_s / busy)


def _adapters(timeline: Timeline, measured: float) -> Bound | None:
    """Only where loads are not long because the workers, which do one thing at a time, compute meanwhile."""
    if not timeline.executed:
        return None
    done = executions(timeline)
    moving = done.loading + done.sending
    quickest = min((float(np.median(s)) for s in done.by_replica(moving, _MIN_EXECUTIONS).values()), default=np.inf)
    if not moving.size or moving.sum() < done.computing.sum() or quickest < float(moving.mean()) / 2:
        return None  # a worker that is busy computing also loads slowly
    workers = saturation(timeline)
    if workers.waiting > workers.moving and workers.computing > _MAX_COMPUTING:
        return None  # the workers are at their limit, and loads wait for them
    return _shared(timeline, measured, ADAPTERS, (LOADING, SENDING))


def _shared(timeline: Timeline, measured: float, part: str, phases: tuple[str, ...]) -> Bound | None:
    """A processor-sharing resource: a run's service demand is its share of the busy time (utilisation law, U = X D).

    Where few requests overlap, or they take little of the runs' time, it was not at its limit.
    """
    share = sum(waits(timeline).shares()[phase] for phase in phases)
    over = int(timeline.is_over.sum())
    if share < _MIN_SHARE or not over:
        return None
    stretches = [timeline.stretches(phase) for phase in phases]
    start = np.concatenate([floats(stretch, "start_s") for stretch in stretches])
    end = np.nan_to_num(np.concatenate([floats(stretch, "end_s") for stretch in stretches]), nan=timeline.end_s)
    low, high = merged(start, np.maximum(start, end))
    busy = float((high - low).sum())
    return _sharing(part, measured, over, busy, float((end - start).sum()) / busy if busy > 0 else 0.0)


def _sharing(part: str, measured: float, over: int, busy: float, at_once: float) -> Bound | None:
    if at_once < _MIN_AT_ONCE:
        return None
    per_hour = 3600 * over / busy
    how = f"busy for {format_duration(busy)}, with {at_once:.1f} concurrent requests on average"
    return Bound(part, per_hour, busy / over, 1.0, measured / per_hour, how)


def _database(timeline: Timeline, measured: float) -> Bound | None:
    """The queries per second at which more active threads only made queries slower, over the queries of a run."""
    work, over = database_work(timeline), int(timeline.is_over.sum())
    if not isinstance(work, Work) or not work.at_limit or not over:
        return None
    a_run = work.mean * work.length_s / over
    per_hour = 3600 * work.most / a_run
    how = (
        f"at most {work.most:,.0f} queries/s: with {work.threads:.0f} active threads a query took "
        f"{work.crowded_s / work.alone_s:.1f} times as long as with few, and a run needs {a_run:,.1f}"
    )
    return Bound("database", per_hour, a_run / work.most, 1.0, measured / per_hour, how)


def _connections(timeline: Timeline, measured: float) -> Bound | None:
    """Where connections ran out: their number over the connection seconds that a run needs."""
    found, over = connection_seconds(timeline), int(timeline.is_over.sum())
    if found is None or not over:
        return None
    limit, seconds = found
    per_hour = 3600 * limit * over / seconds
    how = f"nearly all of {limit:,.0f} connections were open"
    return Bound("database connections", per_hour, seconds / over, limit, measured / per_hour, how)


def _in_flight(timeline: Timeline, measured: float) -> Bound | None:
    """In a closed test N runs are in flight: X <= N / (D + Z); D is the duration of a run that hardly waits, Z = 0."""
    if timeline.plan.schedule.get("model") != "closed" or not timeline.is_over.any():
        return None
    lasted = (floats(timeline.runs, "over_s") - floats(timeline.runs, "sent_s"))[timeline.is_over]
    lasted = lasted[np.isfinite(lasted) & (lasted > 0)]
    if not lasted.size:
        return None
    alone = float(np.quantile(lasted, _UNHINDERED_QUANTILE))
    count = float(peak(floats(timeline.runs, "sent_s"), floats(timeline.runs, "over_s")))
    per_hour = 3600 * count / alone
    how = f"at most {count:.0f} runs were in flight, and a fast one (p5) took {alone:.1f} s"
    return Bound("runs in flight", per_hour, alone, count, measured / per_hour, how)
