"""The simulation as fast as it can: arrivals in, the records of a run folder out.

The records are those that a test against the served platform would have left, but exact: no stamp is rounded, nothing
was overlooked between two polls, and the same seed gives the same records.
"""

import gc
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.model import Event, Node, Outcome, Sample, Scenario, Span, Submission
from harness.model.phases import (
    LIST_SECONDS,
    NODE_CPU_CORES,
    PULLING,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUN,
    RUNNING,
    RUNS_IN_FLIGHT,
    SCHEDULING,
    STARTING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    STORING,
    UNSCHEDULABLE,
)  # fmt: skip
from harness.simulator import cluster
from harness.simulator.cluster import Change, Pod, Shape
from harness.simulator.faults import plant
from harness.simulator.hetida.fast import simulate_executions
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.graph import EXECUTOR
from harness.simulator.kfp.records import OVER, Run
from harness.simulator.kfp.workflow import Workflow
from harness.simulator.kube.usage import Meter
from harness.simulator.platform import Platform, Skew
from harness.simulator.profile import FaultPlan, Profile

SOURCE = "simulator"
_LOOK_S = 15.0  # between two samples, and two questions whether all is over
_MOST_METERED = 100  # nodes; summing up the pods of more would cost more than simulating them
_ACCEPTED = 200
_LIST_S = 0.02  # for rendering a page of runs
_EXPLAINED_ANEW_S = 1.0
_ALWAYS_SHOWN = {SCHEDULING, UNSCHEDULABLE, RUNNING}  # phases of no length, too
# Reason and type of the events that changes of pods are recorded as.
_REASONS: Mapping[Change, tuple[str, str]] = {
    Change.UNSCHEDULABLE: ("FailedScheduling", "Warning"),
    Change.SCALE_UP: ("TriggeredScaleUp", "Normal"),
    Change.NO_SCALE_UP: ("NotTriggerScaleUp", "Normal"),
    Change.REFUSED: ("FailedCreate", "Warning"),
    Change.PREEMPTED: ("Preempted", "Normal"),
}

Record = Submission | Span | Event | Node | Sample


@dataclass(frozen=True, slots=True)
class Arrival:
    """A scenario, due so long after the start."""

    due_s: float
    scenario: Scenario


@dataclass(slots=True)
class _Submitted:
    """An arrival on its way."""

    arrival: Arrival
    answered: float | None = None
    run: Run | None = None
    error: RpcError | None = None


@dataclass(slots=True)
class _Notes:
    """A witness of what spans don't tell: nodes, and why pods wait."""

    nodes: dict[str, cluster.Node] = field(default_factory=dict)
    events: list[tuple[float, str, str, str, str, str | None, str]] = field(default_factory=list)
    platform: Platform | None = None
    _explained: dict[Shape, tuple[float, str]] = field(default_factory=dict)

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """Keep what a pod waits for."""
        if change not in _REASONS:
            return
        reason, kind = _REASONS[change]
        if change is Change.UNSCHEDULABLE:
            detail = self._why(pod.shape)
        elif change is Change.REFUSED:
            detail = f"Error creating: {detail}"
        run = pod.owner.run_id if isinstance(pod.owner, Workflow) else None
        self.events.append((self._now, "Pod", pod.name, reason, detail, run, kind))

    def node_changed(self, node: cluster.Node, reason: str = "", message: str = "") -> None:
        """Keep the node, and what its end was."""
        self.nodes[node.name] = node
        if reason and reason != "NodeReady":
            warns = "Warning" if reason == "PreemptScheduled" else "Normal"
            self.events.append((self._now, "Node", node.name, reason, message, None, warns))

    @property
    def _now(self) -> float:
        return self.platform.loop.now if self.platform is not None else 0.0

    def _why(self, shape: Shape) -> str:
        """The scheduler's sentence; it looks at every node, so equal pods share it for a moment."""
        said = self._explained.get(shape)
        if said is None or self._now - said[0] > _EXPLAINED_ANEW_S:
            assert self.platform is not None
            said = self._explained[shape] = (self._now, self.platform.cluster.scheduler.ranks.explain(shape))
        return said[1]


def simulate(
    profile: Profile,
    package: bytes,
    arrivals: Sequence[Arrival],
    *,
    faults: Sequence[FaultPlan] = (),
    seed: int = 0,
    origin_at: int = 0,
    drain_s: float = 86_400.0,
) -> Iterator[Record]:
    """Run the arrivals on the platform.

    Args:
        profile: the platform.
        package: the compiled pipeline (IR YAML), or the exported transformation where hetida designer is simulated.
        arrivals: in the order in which they are due.
        faults: planted besides those of the profile.
        seed: of everything random.
        origin_at: UTC ns at which the simulated time begins.
        drain_s: simulated seconds after the last arrival; what is not over by then stays open.

    Raises:
        ConfigError: the profile names an unknown fault.
        RpcError: the package is not a pipeline.
    """
    with _without_collections():
        platform, notes = _prepare(profile, seed, (*profile.faults, *faults))
        if platform.hetida is not None:
            yield from simulate_executions(platform, package, arrivals, origin_at, drain_s)
            return
        pipeline = platform.server.create_pipeline("", "", "", package)
        submitted = [_Submitted(arrival) for arrival in arrivals]
        for each in submitted:
            platform.loop.at(each.arrival.due_s, _submit, platform, pipeline.id, each)
        horizon = (arrivals[-1].due_s if arrivals else 0.0) + drain_s
        samples = list(_run(platform, submitted, horizon))
        samples += _in_flight(submitted, [at for metric, at, _, _ in samples if metric == STORE_CAPACITY_BYTES])
        yield from _records(platform, notes, submitted, samples, origin_at)


def _prepare(profile: Profile, seed: int, faults: Iterable[FaultPlan]) -> tuple[Platform, _Notes]:
    notes = _Notes()
    platform = notes.platform = Platform(profile, seed, notes)
    for fault in faults:
        plant(platform, fault)
    return platform, notes


@contextmanager
def _without_collections() -> Iterator[None]:
    """Nothing of a simulation is garbage before it is over; looking for it costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # What was made meanwhile counts as old: to look through it now would find next to no garbage.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _submit(platform: Platform, pipeline_id: str, submitted: _Submitted) -> None:
    scenario = submitted.arrival.scenario

    def answered(result: Run | RpcError) -> None:
        submitted.answered = platform.loop.now
        if isinstance(result, RpcError):
            submitted.error = result
        else:
            submitted.run = result

    try:
        version = platform.server.version(pipeline_id, "")
        run = platform.server.prepare_run(scenario.run_name, "", version, scenario.values, by_reference=True)
    except RpcError as error:
        answered(error)
    else:
        platform.server.start_run(run, answered)


_Measured = tuple[str, float, float, Mapping[str, str]]


def _run(platform: Platform, submitted: Sequence[_Submitted], horizon: float) -> Iterator[_Measured]:
    """Let time pass until every run is over; yields samples at intervals."""
    loop, store, meter = platform.loop, platform.store, Meter(platform)
    volume = {"volume": store.installed.claim, "namespace": platform.profile.namespace}
    unseen = list(submitted)  # but for the last ones that are over: looking at all of them each time adds up
    while True:
        yield STORE_CAPACITY_BYTES, loop.now, store.capacity, volume
        yield STORE_AVAILABLE_BYTES, loop.now, store.free, volume
        yield LIST_SECONDS, loop.now, _LIST_S + platform.server.listing_s(), {"endpoint": "ListRuns"}
        nodes = platform.cluster.nodes
        for node in nodes.values() if len(nodes) <= _MOST_METERED else ():
            yield NODE_CPU_CORES, loop.now, meter.cores(node), {"node": node.name}
        while unseen and _over(unseen[-1]):
            unseen.pop()
        if not unseen or loop.now >= horizon or not loop.pending:
            return
        loop.run(min(horizon, loop.now + _LOOK_S))


def _over(submitted: _Submitted) -> bool:
    run = submitted.run
    return submitted.error is not None or (run is not None and run.state in OVER)


def _in_flight(submitted: Sequence[_Submitted], looks: Sequence[float]) -> Iterator[_Measured]:
    """How many runs had been accepted and were not over, as far as the API server knew."""
    runs = [(each.answered or 0.0, each.run) for each in submitted if each.run is not None]
    begun = sorted(answered for answered, _ in runs)
    ended = sorted(run.history[-1][0] for _, run in runs if run.state in OVER)
    for at in looks:
        yield RUNS_IN_FLIGHT, at, float(bisect_right(begun, at) - bisect_right(ended, at)), {}


# --- records ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stamps:
    origin_at: int
    skew: Skew

    def at(self, t: float) -> int:
        """UTC ns of simulated seconds."""
        if self.skew.by_s:
            t += self.skew.at(t)
        return self.origin_at + round(t * 1e9)

    def when(self, t: float | None) -> int | None:
        """The same, where it has happened."""
        return None if t is None else self.at(t)


def _records(
    platform: Platform, notes: _Notes, submitted: Sequence[_Submitted], samples: Sequence[_Measured], origin_at: int
) -> Iterator[Record]:
    own, stamps = _Stamps(origin_at, Skew()), _Stamps(origin_at, platform.skew)
    yield from _submissions(submitted, own)
    for node in notes.nodes.values():
        yield _node(node, stamps)
    for at, kind, name, reason, message, run, warns in notes.events:
        yield Event(stamps.at(at), kind, name, reason, message, SOURCE, run, type=warns)
    for metric, at, value, labels in samples:
        yield Sample(metric, own.at(at), value, labels)
    for each in submitted:
        if each.run is not None and each.run.id in platform.server.runs:
            yield from _run_records(each.run, stamps)
    yield from _requests(submitted, stamps)


def _submissions(submitted: Sequence[_Submitted], stamps: _Stamps) -> Iterator[Submission]:
    for seq, each in enumerate(submitted):
        arrival, due_at = each.arrival, stamps.at(each.arrival.due_s)
        error = each.error
        yield Submission(
            seq,
            arrival.scenario.id,
            arrival.scenario.run_name,
            due_at,
            due_at,
            stamps.when(each.answered),
            Outcome.ACCEPTED if each.run is not None else Outcome.REJECTED,
            each.run.id if each.run is not None else None,
            0,
            error.code.http if error is not None else _ACCEPTED if each.run is not None else None,
            error.message if error is not None else None if each.run is not None else "no answer before the end",
        )


def _node(node: cluster.Node, stamps: _Stamps) -> Node:
    return Node(
        node.name, node.pool.name, stamps.at(node.created), stamps.when(node.ready), stamps.when(node.gone),
        node.cpu / 1000, float(node.memory), float(node.gpu), node.pool.pods, node.pool.spot, node.pool.price, SOURCE,
    )  # fmt: skip


def _run_records(run: Run, stamps: _Stamps) -> list[Span | Event]:
    """A run's span and end, and those of its pods."""
    over = run.state in OVER
    ended_at = stamps.when(run.finished) if over else None
    found: list[Span | Event] = [Span(run.id, "", RUN, stamps.at(run.created), ended_at, task=run.name, source=SOURCE)]
    if ended_at is not None:
        kind = "Normal" if run.state == "SUCCEEDED" else "Warning"
        said_at = stamps.at(run.history[-1][0])  # when the API server learned of it
        found.append(Event(said_at, "Run", run.id, run.state, run.error, SOURCE, run.id, type=kind))
    assert run.workflow is not None
    for step in run.workflow.steps:
        for pod in step.pods if step is not None else ():
            _add_pod(found, run.id, pod, stamps)
    return found


def _requests(submitted: Sequence[_Submitted], stamps: _Stamps) -> Iterator[Sample]:
    """What pods request: once a task, and once more for each pod that differs."""
    usual: dict[str, tuple[int, int, int]] = {}
    workflows = [each.run.workflow for each in submitted if each.run is not None and each.run.workflow is not None]
    steps = (step for workflow in workflows for step in workflow.steps if step is not None)
    for pod in (pod for step in steps for pod in step.pods):
        task, (cpu, memory, gpu, *_) = _task(pod), pod.shape
        known = usual.get(task)
        if known == (cpu, memory, gpu):
            continue
        usual.setdefault(task, (cpu, memory, gpu))
        at, labels = stamps.at(pod.created), {"task": task} if known is None else {"pod": pod.name}
        yield Sample(REQUESTED_CPU_CORES, at, cpu / 1000, labels)
        yield Sample(REQUESTED_MEMORY_BYTES, at, float(memory), labels)
        yield Sample(REQUESTED_GPUS, at, float(gpu), labels)


def _task(pod: Pod) -> str:
    return pod.task if pod.role == EXECUTOR else f"{pod.task or 'root'}-driver"


def _add_pod(found: list[Span | Event], run_id: str, pod: Pod, stamps: _Stamps) -> None:
    """The phases of a pod's life so far, one after the other; a pod that was lost ends in whichever it was."""
    task = _task(pod)
    node, name, over = pod.node.name if pod.node is not None else None, pod.name, pod.finished
    phases = [(SCHEDULING, pod.scheduled), (PULLING, pod.pulled), (STARTING, pod.started)]
    phases += (RUNNING, pod.main_ended), (STORING, over)
    if pod.unschedulable is not None:
        phases[:1] = (SCHEDULING, pod.unschedulable), (UNSCHEDULABLE, pod.scheduled)
    # Where one phase ends, the next one begins: each instant is made a stamp once.
    begun, begun_at = pod.created, stamps.at(pod.created)
    for phase, end in phases:
        until = over if end is None else end
        if until is None:
            found.append(Span(run_id, name, phase, begun_at, None, task, 0, node, SOURCE))
        elif until > begun or phase in _ALWAYS_SHOWN:
            until_at = stamps.at(until)
            found.append(Span(run_id, name, phase, begun_at, until_at, task, 0, node, SOURCE))
            begun, begun_at = until, until_at
        if end is None:
            break
    if pod.exit_code and over is not None:
        text = pod.message or f"container main ended with exit code {pod.exit_code}"
        found.append(Event(stamps.at(over), "Pod", name, pod.reason, text, SOURCE, run_id, type="Warning"))
