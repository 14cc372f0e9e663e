"""Executions of hetida designer in simulated time: arrivals in, the records of a run folder out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from uuid import UUID

import orjson

from harness.model import Event, Node, Outcome, Sample, Span, Submission, phases
from harness.simulator.engine.calendar import Calendar
from harness.simulator.fast.records import SOURCE, Arrival, Record
from harness.simulator.hetida import execution
from harness.simulator.hetida.execution import CALLING, FULL, HANDLING, LOADING, SENDING, Ending, Job
from harness.simulator.hetida.requests import backend_request
from harness.simulator.hetida.service import ReplicaUsage
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile

# Errors as the load generator would record the responses of the served endpoints.
_ERRORS = {
    Ending.RAISED: "EXECUTING_COMPONENT_CODE · ValueError: simulated failure of an operator",
    Ending.LOAD_FAILED: "HTTP 500 · Failure while calling the runtime: load failed",
    Ending.SEND_FAILED: "SENDING_DATA_TO_ADAPTERS · AdapterHandlingException: sending data to the adapter failed: 503",
    Ending.RESET: "HTTP 500 · Failure while calling the runtime: reset",
}


@dataclass(slots=True)
class _Sent:
    """An arrival and its outcome."""

    arrival: Arrival
    run: str
    job: Job | None = None
    over: float | None = None


def simulate_executions(
    platform: Platform, package: bytes, arrivals: Sequence[Arrival], calendar: Calendar, horizon: float
) -> Iterator[Record]:
    """Execute the transformation in `package` (exported, with its test wiring) through the backend.

    Args:
        platform: a platform with hetida designer, with all faults injected.
        package: the exported transformation (JSON).
        arrivals: sorted by due time.
        calendar: of the submitter, whose clock is right.
        horizon: simulated seconds; runs that have not ended by then stay open.
    """
    loop, settings, service = platform.loop, platform.profile.hetida, platform.hetida
    assert settings is not None
    assert service is not None
    request = backend_request({}, orjson.loads(package))
    runs = Random(f"{platform.seed}/runs")
    every = [_Sent(arrival, str(UUID(int=runs.getrandbits(128)))) for arrival in arrivals]
    for each in every:
        loop.at(each.arrival.due_s, _execute, platform, each, request.name, request.sources(), request.sinks())
    usage = ReplicaUsage(loop, service)
    for each in reversed(every):  # the last one first: once it has ended, few others are left
        while each.over is None and loop.next_at <= horizon:
            loop.run(loop.next_at)
    yield from _nodes(platform.profile, calendar)
    for seq, each in enumerate(every):
        yield from _records(seq, each, calendar, named=settings.runtime.names_replicas)
    last = max((sent.over for sent in every if sent.over is not None), default=0.0)
    if platform.profile.metrics_server:
        for at_s, index, cores in usage.samples(last):
            yield Sample(phases.POD_CPU_CORES, calendar.ns(at_s), cores, {"pod": replica_name(index)})
    for replica in service.replicas:
        labels = {"pod": replica_name(replica.index), "node": _node_name(platform.profile, replica.index)}
        yield Sample(phases.REPLICA_WORKERS, calendar.ns(0.0), float(settings.runtime.workers), labels)
    for at_s, count in _in_flight(every):
        yield Sample(phases.RUNS_IN_FLIGHT, calendar.ns(at_s), float(count))


def _execute(platform: Platform, sent: _Sent, name: str, sources: list[str], sinks: list[str]) -> None:
    service, values = platform.hetida, sent.arrival.scenario.values
    assert service is not None

    def ended(_: Job) -> None:
        sent.over = platform.loop.now

    sent.job = service.execute(service.work(name, sources, sinks, values), ended)


def _node_name(profile: Profile, index: int) -> str:
    """The node of a replica, or the one with this number."""
    assert profile.hetida is not None
    return f"{profile.pools[0].name}-{index % profile.hetida.runtime.nodes}"


def _nodes(profile: Profile, calendar: Calendar) -> Iterator[Node]:
    assert profile.hetida is not None
    begun_at, pool, runtime = calendar.ns(0.0), profile.pools[0], profile.hetida.runtime
    for index in range(runtime.nodes):
        yield Node(
            _node_name(profile, index), pool.name, begun_at, begun_at, None, runtime.cores, pool.memory,
            price=pool.price, source=SOURCE,
        )  # fmt: skip


def _records(seq: int, sent: _Sent, calendar: Calendar, *, named: bool) -> Iterator[Record]:
    """What an arrival leaves; if `named`, its answer names the replica, as a balancer does. Nothing names workers."""
    scenario, due_at = sent.arrival.scenario, calendar.ns(sent.arrival.due_s)
    over_at = None if sent.over is None else calendar.ns(sent.over)
    job = sent.job
    answered = over_at is not None
    yield Submission(
        seq, scenario.id, scenario.run_name, due_at, due_at, over_at,
        Outcome.ACCEPTED if answered else Outcome.REJECTED, sent.run if answered else None, 0,
        200 if answered else None, None if answered else "no answer before the end", scenario.tenant,
    )  # fmt: skip
    if job is None or over_at is None:
        return
    yield Span(sent.run, "", phases.RUN, due_at, over_at, task=scenario.run_name, source=SOURCE)
    if job.ending is Ending.OK:
        node = replica_name(job.replica) if named else None
        for attempt, phase, begun, ended in _stretches(job):
            yield Span(
                sent.run, sent.run, phase, calendar.ns(begun), calendar.ns(ended), attempt=attempt, node=node,
                source=SOURCE,
            )  # fmt: skip
    assert job.ending is not None
    well = job.ending is Ending.OK
    yield Event(
        over_at, "Run", sent.run, phases.SUCCEEDED if well else phases.FAILED, _ERRORS.get(job.ending, ""), SOURCE,
        sent.run, type="Normal" if well else "Warning",
    )  # fmt: skip


def replica_name(index: int) -> str:
    """The pod of a replica."""
    return f"runtime-{index}"


def _stretches(job: Job) -> Iterator[tuple[int, str, float, float]]:
    """(attempt, phase, begin, end); between two steps the execution queues for the worker's event loop."""
    began, ended = job.began, job.ended
    computing = execution.COMPUTING
    yield 0, phases.BACKEND, began[FULL], began[CALLING]
    yield 0, phases.QUEUED, began[CALLING], began[LOADING]
    yield 0, phases.LOADING, began[LOADING], ended[LOADING]
    yield 1, phases.QUEUED, ended[LOADING], began[computing]
    yield 0, phases.COMPUTING, began[computing], ended[computing]
    yield 0, phases.SENDING, began[SENDING], ended[SENDING]
    yield 2, phases.QUEUED, ended[SENDING], ended[HANDLING]


def _in_flight(every: Sequence[_Sent]) -> Iterator[tuple[float, int]]:
    """The number of running executions at 101 equidistant instants."""
    ends = sorted(sent.over for sent in every if sent.over is not None)
    last = ends[-1] if ends else 0.0
    for k in range(101):
        at_s = last * k / 100
        begun = sum(sent.arrival.due_s <= at_s for sent in every)
        yield at_s, begun - sum(end <= at_s for end in ends)
