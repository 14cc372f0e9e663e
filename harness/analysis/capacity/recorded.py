"""Recorded tests as observations of capacity, with the other inputs of a capacity answer."""

from dataclasses import dataclass
from math import expm1

import numpy as np

from harness.analysis.capacity.bounds import ADAPTERS, bounds
from harness.analysis.capacity.caps import Cap, caps
from harness.analysis.capacity.model import Observation
from harness.analysis.capacity.progress import steady_state, work
from harness.analysis.cost.virtual import virtual_pods
from harness.analysis.ledger import ledger
from harness.analysis.services.service_replicas import service_replicas
from harness.analysis.services.workers import workers
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline, floats, mean_active, occurring
from harness.analysis.validity import validity
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.model.phases import RUNNING

_CONSTANT = 0.05  # relative change of the node count that still counts as constant
_ARRIVALS = 0.5  # last arrival after this share of the test: the schedule set the duration, not the platform
_FAILED = 0.01
_LOADS = (
    "executions loaded and sent data for longer than they computed: if their adapters are at a limit, more replicas do "
    "not help; a test on another number of replicas tells"
)
_ARRIVALS_DECIDED = "the test shows nothing about capacity: its arrivals set its duration; use a burst"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a test shows about capacity.

    Attributes:
        observations: empty when the test shows nothing about capacity; the warnings give the reason.
        step_s: median duration of the longest task, which is lost when its node is; none without pods.
        price: of a node, per hour; none when unknown.
        lacks: the resource that the scheduler lacked most ("cpu", "memory", "pods"); "" when none.
        warnings: the limits of the observations, as text.
        caps: what the test showed to be limited, however many nodes there are.
        unit: what `Observation.nodes` counts: "node", or "replica" of a service, by its answers or by Kubernetes.
        workers_each: worker processes of each replica; 0 where they are not known, or differ.
    """

    observations: tuple[Observation, ...]
    step_s: float | None
    price: float | None
    lacks: str
    warnings: tuple[str, ...]
    caps: tuple[Cap, ...] = ()
    unit: str = "node"
    workers_each: int = 0


def recorded(timeline: Timeline) -> Recorded:
    """The observations of one test; where its number of nodes changed, one per stretch with a constant number."""
    observations, warnings = _observations(timeline)
    price = floats(timeline.run_nodes, "price")
    lacks = scheduling_wait(timeline).lacks
    return Recorded(
        observations,
        _step_s(timeline),
        float(price.mean()) if price.size and np.isfinite(price).all() else None,
        _resource(lacks[0][0]) if lacks else "",
        warnings,
        caps(timeline),
        "replica" if _replicas(timeline) else "node",
        service_replicas(timeline).each,
    )


def _replicas(timeline: Timeline) -> int:
    """How many the service has: as Kubernetes shows them, or as its answers name them; 0 where neither does."""
    named = workers(timeline)
    return max(len(service_replicas(timeline).pods), len(named.workers) if named is not None else 0)


def eviction_factor(step_s: float, evictions_per_hour: float, replacement_s: float) -> float:
    """By what factor work takes longer when nodes are reclaimed at random.

    A step of length d that restarts after each eviction (rate r) takes (exp(r d) - 1) / r on average, the expected
    completion time under preempt-repeat with exponential failures (Daly, Future Generation Computer Systems 22, 2006);
    a reclaimed node is missing for `replacement_s`.
    """
    rate = evictions_per_hour / 3600
    if rate <= 0:
        return 1.0
    return expm1(rate * step_s) / (rate * step_s) * (1 + rate * replacement_s)


def _observations(timeline: Timeline) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    warnings = [f"the test is INVALID: {reason}" for reason in validity(timeline).reasons]
    counts, over, elsewhere = ledger(timeline), throughput(timeline), virtual_pods(timeline)
    replicas = _replicas(timeline)
    if replicas and counts.succeeded:
        return _of_service(timeline, replicas, counts.succeeded, warnings)
    if not counts.succeeded or not len(timeline.run_nodes):
        missing = "no run succeeded" if not counts.succeeded else "no node was observed"
        if counts.succeeded and elsewhere is not None:
            missing = "all pods ran on virtual nodes, which have no size to fit to and are charged by pod"
        return (), (*warnings, f"the test shows nothing about capacity: {missing}")
    if counts.share(counts.failed) > _FAILED:
        warnings.append(f"{counts.failed:,} of {counts.intended:,} runs failed: only successful runs count")
    done = work(timeline) if elsewhere is not None else None
    of_machines = 1.0 if done is None else done.of_machines
    if elsewhere is not None:
        warnings.append(
            f"{elsewhere.share:.0%} of the pods' time was on virtual nodes, which are no machines: {of_machines:.0%} "
            "of the work was done by machines, and the answer is for machines alone"
        )
    ready, gone = floats(timeline.run_nodes, "ready_s"), floats(timeline.run_nodes, "gone_s")
    edges = np.linspace(0.0, max(over.makespan_s, 1e-9), 21)
    nodes = mean_active(ready, gone, edges)
    mean = float(nodes.mean())
    due = floats(timeline.runs, "due_s")
    steady = tuple(
        Observation(of_machines * per_hour * (end - start) / 3600, count, end - start, steady=True)
        for count, per_hour, start, end in zip(*_stretches(timeline), strict=True)
    )
    whole = Observation(of_machines * counts.succeeded, mean, over.makespan_s)
    if float(np.nanmax(due)) > _ARRIVALS * over.makespan_s:
        if not steady:
            return (), (*warnings, _ARRIVALS_DECIDED)
        return steady, tuple(warnings)
    if float(nodes.max() - nodes.min()) <= _CONSTANT * mean or not steady:
        if float(nodes.max() - nodes.min()) > _CONSTANT * mean:
            warnings.append(f"the nodes varied from {nodes.min():.0f} to {nodes.max():.0f}: counted as {mean:.1f}")
        return (whole,), tuple(warnings)
    return (*steady, whole), tuple(warnings)


def _of_service(
    timeline: Timeline, replicas: int, succeeded: int, warnings: list[str]
) -> tuple[tuple[Observation, ...], tuple[str, ...]]:
    warnings.append("a replica stands for one with as many workers and cores as those tested")
    if any(bound.part == ADAPTERS for bound in bounds(timeline)):
        warnings.append(_LOADS)
    took_s = throughput(timeline).makespan_s
    if float(np.nanmax(floats(timeline.runs, "due_s"))) > _ARRIVALS * took_s:
        return (), (*warnings, _ARRIVALS_DECIDED)
    return (Observation(succeeded, replicas, took_s),), tuple(warnings)


def _stretches(timeline: Timeline) -> tuple[list[float], list[float], list[float], list[float]]:
    state = steady_state(timeline)
    return state.nodes.tolist(), state.per_hour.tolist(), state.start_s.tolist(), state.end_s.tolist()


def _step_s(timeline: Timeline) -> float | None:
    pods, ended = timeline.pods, timeline.of_runs(RUNNING)
    ended &= np.isfinite(floats(pods, "end_s"))
    length, tasks = timeline.seconds_of(ended), pods["task"].cat
    task = tasks.codes.to_numpy()[ended]
    there = np.flatnonzero(occurring(task, len(tasks.categories)))
    return max((float(np.median(length[task == code])) for code in there.tolist()), default=None)


def _resource(lack: str) -> str:
    """``cpu`` of "Insufficient cpu", ``pods`` of "Too many pods"."""
    return lack.rsplit(" ", 1)[-1]
