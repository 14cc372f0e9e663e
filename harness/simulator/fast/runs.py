"""Runs of a pipeline in simulated time: arrivals in, the records of a run folder out."""

from collections.abc import Iterator, Sequence
from functools import partial

from harness.model import Outcome, Sample, Submission
from harness.model.phases import (
    LIST_SECONDS,
    NODE_CPU_CORES,
    RUNS_IN_FLIGHT,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
)  # fmt: skip
from harness.simulator.engine.calendar import Calendar
from harness.simulator.fast.recorder import Recorder
from harness.simulator.fast.records import Arrival, Record
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.kube_objects.usage import Meter
from harness.simulator.platform import Platform

_LOOK_S = 15.0  # between two samples, and two questions whether all is over
_MOST_METERED = 100  # nodes; summing up the pods of more would cost more than simulating them
_ACCEPTED = 200
_LIST_S = 0.02  # for rendering a page of runs


def simulate_runs(
    recorder: Recorder, package: bytes, arrivals: Sequence[Arrival], calendar: Calendar, horizon: float
) -> Iterator[Record]:
    """Submit runs of the pipeline in `package` to the recorder's platform.

    Args:
        recorder: a listener of the platform, whose faults are planted.
        package: the compiled pipeline (IR YAML).
        arrivals: in the order in which they are due.
        calendar: of who submits.
        horizon: simulated seconds; what is not over by then stays open.

    Raises:
        RpcError: the package is not a pipeline.
    """
    platform = recorder.platform
    loop, meter = platform.loop, Meter(platform)
    pipeline = platform.server.catalogue.create_pipeline("", "", "", package)
    ledger = _Ledger(platform, pipeline.id, arrivals, calendar)
    platform.run_watchers += (recorder.run_over, ledger.run_over)
    for seq, arrival in enumerate(arrivals):
        loop.at(arrival.due_s, ledger.submit, seq)
    while True:
        yield from _samples(platform, meter, calendar)
        yield Sample(RUNS_IN_FLIGHT, calendar.ns(loop.now), float(ledger.in_flight))
        if not ledger.unsettled or loop.now >= horizon or not loop.pending:
            break
        loop.run(min(horizon, loop.now + _LOOK_S))
        yield from recorder.take()
    yield from ledger.rows()
    yield from recorder.rest()


def _samples(platform: Platform, meter: Meter, calendar: Calendar) -> Iterator[Sample]:
    """What a collector would measure now."""
    store, nodes = platform.store, platform.cluster.nodes
    at, volume = (
        calendar.ns(platform.loop.now),
        {"volume": store.installed.claim, "namespace": platform.profile.namespace},
    )
    yield Sample(STORE_CAPACITY_BYTES, at, store.capacity, volume)
    yield Sample(STORE_AVAILABLE_BYTES, at, store.free, volume)
    yield Sample(LIST_SECONDS, at, _LIST_S + platform.server.listing_s(), {"endpoint": "ListRuns"})
    for node in nodes.values() if len(nodes) <= _MOST_METERED else ():
        yield Sample(NODE_CPU_CORES, at, meter.cores(node), {"node": node.name})


class _Ledger:
    """Submits the arrivals, and knows what became of each.

    Attributes:
        in_flight: runs that were accepted and are not over, as far as the API server knows.
        unsettled: arrivals that were neither rejected nor have a run that is over.
    """

    def __init__(self, platform: Platform, pipeline_id: str, arrivals: Sequence[Arrival], calendar: Calendar) -> None:
        self._platform = platform
        self._pipeline_id = pipeline_id
        self._arrivals = arrivals
        self._calendar = calendar
        self._answered: dict[int, Submission] = {}
        self.in_flight = 0
        self.unsettled = len(arrivals)

    def submit(self, seq: int) -> None:
        """Send an arrival."""
        server, scenario = self._platform.server, self._arrivals[seq].scenario
        try:
            version = server.catalogue.version(self._pipeline_id, "")
            run = server.prepare_run(scenario.run_name, "", version, scenario.values, by_reference=True)
        except RpcError as error:
            self._learn(seq, error)
        else:
            server.start_run(run, partial(self._learn, seq))

    def _learn(self, seq: int, answer: Run | RpcError) -> None:
        self._answered[seq] = self._row(seq, answer)
        if isinstance(answer, Run):
            self.in_flight += 1
        else:
            self.unsettled -= 1

    def run_over(self, _: Run) -> None:
        """The API server learned of a run's end."""
        self.in_flight -= 1
        self.unsettled -= 1

    def rows(self) -> Iterator[Submission]:
        """All arrivals, in their order."""
        for seq in range(len(self._arrivals)):
            yield self._answered.get(seq) or self._row(seq, None)

    def _row(self, seq: int, answer: Run | RpcError | None) -> Submission:
        arrival, calendar = self._arrivals[seq], self._calendar
        due_at = calendar.ns(arrival.due_s)
        answered_at = calendar.ns(self._platform.loop.now) if answer is not None else None
        what: tuple[Outcome, str | None, int, int | None, str | None]
        if isinstance(answer, Run):
            what = Outcome.ACCEPTED, answer.id, 0, _ACCEPTED, None
        elif answer is not None:
            what = Outcome.REJECTED, None, 0, answer.code.http, answer.message
        else:
            what = Outcome.REJECTED, None, 0, None, "no answer before the end"
        return Submission(seq, arrival.scenario.id, arrival.scenario.run_name, due_at, due_at, answered_at, *what)
