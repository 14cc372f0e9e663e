"""Runs of a pipeline in simulated time: arrivals in, the records of a run folder out."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from harness.model import Outcome, Sample, Scenario, Submission
from harness.model.phases import (
    LIST_SECONDS,
    NODE_CPU_CORES,
    RUNS_IN_FLIGHT,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
)  # fmt: skip
from harness.simulator.engine.calendar import Calendar
from harness.simulator.fast.recorder import Recorder
from harness.simulator.fast.records import Arrival, Compact
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kube_objects.usage import Meter
from harness.simulator.platform import Platform

SAMPLE_S = 15.0  # interval between samples, and between checks for the end
_MOST_METERED = 100  # nodes; adding up the pods of more would cost more than simulating them
_ACCEPTED = 200
_PAGE = 20  # runs of a page, by default


Answered = Callable[[str | RpcError], None]  # with the run's id
Submit = Callable[[Scenario, Answered], None]


def simulate_runs(
    recorder: Recorder, submit: Submit, arrivals: Sequence[Arrival], calendar: Calendar, horizon: float, sample_s: float
) -> Iterator[Compact]:
    """Submit runs to the recorder's platform.

    Args:
        recorder: a listener of the platform, after `follow`, with all faults injected.
        submit: starts one run.
        arrivals: sorted by due time.
        calendar: of the submitter, whose clock is right.
        horizon: simulated seconds; runs that have not ended by then stay open.
        sample_s: simulated seconds between samples.
    """
    platform = recorder.platform
    loop, meter = platform.loop, Meter(platform)
    ledger = _Ledger(platform, submit, arrivals, calendar)
    recorder.when_over = ledger.run_over
    for seq, arrival in enumerate(arrivals):
        loop.at(arrival.due_s, ledger.submit, seq)
    while True:
        yield from _samples(platform, meter, calendar)
        yield Sample(RUNS_IN_FLIGHT, calendar.ns(loop.now), float(ledger.in_flight))
        if not ledger.unsettled or loop.now >= horizon or not loop.pending:
            break
        loop.run(min(horizon, loop.now + sample_s))
        yield from recorder.take()
    yield from ledger.rows()
    yield from recorder.rest()


def _samples(platform: Platform, meter: Meter, calendar: Calendar) -> Iterator[Sample]:
    """The samples that a collector would take now."""
    store, nodes = platform.store, platform.cluster.nodes
    recent = islice(reversed(platform.server.runs.values()), _PAGE)
    at, volume = (
        calendar.ns(platform.loop.now),
        {"volume": store.installed.claim, "namespace": platform.profile.namespace},
    )
    yield Sample(STORE_CAPACITY_BYTES, at, store.capacity, volume)
    yield Sample(STORE_AVAILABLE_BYTES, at, store.free, volume)
    if platform.server.catalogue.pipelines:  # otherwise KFP is not asked
        yield Sample(LIST_SECONDS, at, platform.server.listing_s(recent), {"endpoint": "ListRuns"})
    for node in nodes.values() if len(nodes) <= _MOST_METERED else ():
        yield Sample(NODE_CPU_CORES, at, meter.cores(node), {"node": node.name})


class _Ledger:
    """Submits the arrivals and records their outcomes.

    Attributes:
        in_flight: accepted runs that have not ended according to the API server.
        unsettled: arrivals that were not rejected and whose run has not ended.
    """

    def __init__(self, platform: Platform, submit: Submit, arrivals: Sequence[Arrival], calendar: Calendar) -> None:
        self._platform = platform
        self._submit = submit
        self._arrivals = arrivals
        self._calendar = calendar
        self._answered: dict[int, Submission] = {}
        self.in_flight = 0
        self.unsettled = len(arrivals)

    def submit(self, seq: int) -> None:
        """Submit the arrival with this number."""
        self._submit(self._arrivals[seq].scenario, partial(self._learn, seq))

    def _learn(self, seq: int, answer: str | RpcError) -> None:
        self._answered[seq] = self._row(seq, answer)
        if isinstance(answer, str):
            self.in_flight += 1
        else:
            self.unsettled -= 1

    def run_over(self) -> None:
        """Count a run's end, once the platform shows it."""
        self.in_flight -= 1
        self.unsettled -= 1

    def rows(self) -> Iterator[Submission]:
        """The submissions of all arrivals, in order."""
        for seq in range(len(self._arrivals)):
            yield self._answered.get(seq) or self._row(seq, None)

    def _row(self, seq: int, answer: str | RpcError | None) -> Submission:
        arrival, calendar = self._arrivals[seq], self._calendar
        due_at = calendar.ns(arrival.due_s)
        answered_at = calendar.ns(self._platform.loop.now) if answer is not None else None
        run: str | None = None
        status: int | None = None
        error: str | None = None
        if isinstance(answer, str):
            run, status = answer, _ACCEPTED
        elif answer is not None:
            status, error = answer.code.http, answer.message
        else:
            error = "no answer before the end"
        outcome = Outcome.REJECTED if run is None else Outcome.ACCEPTED
        scenario = arrival.scenario
        return Submission(
            seq, scenario.id, scenario.run_name, due_at, due_at, answered_at, outcome, run, 0, status, error,
            scenario.tenant,
        )  # fmt: skip
