"""The fast simulation: complete, exact and repeatable records."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest

from harness.model import Event, Node, Outcome, Sample, Scenario, Span, Submission
from harness.model.phases import (
    LAUNCHER_ERROR,
    PULLING,
    RUN,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORE_AVAILABLE_BYTES,
    STORING,
    UNSCHEDULABLE,
)
from harness.simulator.engine.distributions import Amount, Uniform, fixed
from harness.simulator.fast import Arrival, Record
from harness.simulator.faults import parse_fault
from harness.simulator.profile import Quota, Step
from harness.simulator.profile.file import load_profile
from tests.support.platforms import UNCACHED, pool, profile
from tests.support.simulated import simulate

ORIGIN_AT = 1_790_000_000 * 10**9


def burst(count: int, **values: object) -> list[Arrival]:
    return [Arrival(0.0, Scenario(str(number), "burst", values, {})) for number in range(count)]


def records(kind: type, everything: list[Record]) -> list:
    return [each for each in everything if isinstance(each, kind)]


@pytest.fixture(scope="module")
def demo() -> list[Record]:
    return list(simulate(load_profile("demo"), UNCACHED, burst(40), seed=3, origin_at=ORIGIN_AT))


def test_every_arrival_is_in_the_ledger_and_every_run_ends(demo: list[Record]) -> None:
    submissions: list[Submission] = records(Submission, demo)
    assert [each.seq for each in submissions] == list(range(40))
    assert {each.outcome for each in submissions} == {Outcome.ACCEPTED}
    assert all(each.due_at == each.sent_at == ORIGIN_AT for each in submissions)
    ends: list[Event] = [event for event in records(Event, demo) if event.kind == "Run"]
    assert {event.run for event in ends} == {each.run for each in submissions}
    assert {event.reason for event in ends} == {"SUCCEEDED"}


def test_a_run_has_two_n_plus_one_pods_whose_phases_follow_each_other(demo: list[Record]) -> None:
    pods: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)
    runs: dict[str, Span] = {}
    for span in records(Span, demo):
        if span.phase == RUN:
            runs[span.run] = span
        else:
            pods[span.run, span.step].append(span)
    assert len(pods) == 40 * 7
    for (run, _), spans in pods.items():
        assert spans[0].started_at >= runs[run].started_at
        assert (spans[-1].ended_at or 0) <= (runs[run].ended_at or 0)
        for before, after in pairwise(spans):
            assert before.ended_at == after.started_at
    tasks = {span.task for spans in pods.values() for span in spans}
    assert tasks == {"root-driver", "prepare", "prepare-driver", "train", "train-driver", "evaluate", "evaluate-driver"}


def test_a_step_runs_before_it_stores_and_a_pod_passes_no_phase_twice(demo: list[Record]) -> None:
    passed: defaultdict[str, list[str]] = defaultdict(list)
    for span in sorted(records(Span, demo), key=lambda span: span.started_at):
        if span.phase != RUN and span.started_at != span.ended_at:
            passed[span.step].append(span.phase)
    order = (SCHEDULING, UNSCHEDULABLE, PULLING, STARTING, RUNNING, STORING)
    assert all(phases == [phase for phase in order if phase in phases] for phases in passed.values())
    assert {phase for phases in passed.values() for phase in phases} == set(order)


def test_nodes_and_the_store_are_recorded(demo: list[Record]) -> None:
    nodes: list[Node] = records(Node, demo)
    assert len({node.name for node in nodes}) == len(nodes) > 3
    assert all(node.ready_at is not None and node.created_at <= node.ready_at for node in nodes)
    free = [sample.value for sample in records(Sample, demo) if sample.metric == STORE_AVAILABLE_BYTES]
    assert free == sorted(free, reverse=True)
    assert free[0] > free[-1]
    reasons = {event.reason for event in records(Event, demo)}
    assert {"FailedScheduling", "TriggeredScaleUp"} <= reasons


def test_the_same_seed_gives_the_same_bytes() -> None:
    def written(seed: int) -> bytes:
        return b"\n".join(map(orjson.dumps, simulate(load_profile("demo"), UNCACHED, burst(20), seed=seed)))

    assert written(5) == written(5)
    assert written(5) != written(6)


def test_steps_take_as_long_on_another_platform_with_the_same_seed() -> None:
    """What differs is then the platform's doing: with a larger quota, steps run in another order."""
    step = Step(duration=Amount(Uniform(2.0, 40.0)), cpu=fixed(0.01), output=fixed(0.0), failing=0.1)

    def took(pods: int) -> dict[tuple[int, str], float]:
        everything = list(simulate(profile(step=step, quota=Quota(pods=pods)), UNCACHED, burst(30), seed=5))
        number = {each.run: each.seq for each in records(Submission, everything)}
        spans = [each for each in records(Span, everything) if each.phase == RUNNING and "driver" not in each.task]
        return {(number[each.run], each.task): round((each.ended_at - each.started_at) / 1e9, 6) for each in spans}

    few, many = took(5), took(200)
    assert len(few) > 60
    assert few == many
    assert len(set(few.values())) == len(few)


def test_an_injected_fault_is_in_the_records() -> None:
    plan = parse_fault("store-full:1.41")
    assert plan is not None
    everything = list(simulate(load_profile("demo"), UNCACHED, burst(40), faults=(plan,), seed=3))
    said = [event.message for event in records(Event, everything) if event.reason == LAUNCHER_ERROR]
    assert said
    assert all("failed to upload output artifact" in each and "InternalError" in each for each in said)
    assert {event.reason for event in records(Event, everything) if event.kind == "Run"} >= {"FAILED"}


def test_runs_that_have_not_ended_at_the_horizon_stay_open() -> None:
    everything = list(simulate(profile(pool(cpu=0.05)), UNCACHED, burst(2), drain_s=100.0))
    assert all(span.ended_at is None for span in records(Span, everything) if span.phase == RUN)
    assert not [event for event in records(Event, everything) if event.kind == "Run"]


def test_a_run_that_is_refused_is_a_rejected_submission() -> None:
    its_profile = profile()
    broken = replace(its_profile, api=replace(its_profile.api, error_rate=1.0))
    (submission,) = records(Submission, list(simulate(broken, UNCACHED, burst(1))))
    assert (submission.outcome, submission.status, submission.run) == (Outcome.REJECTED, 500, None)
    (submission,) = records(Submission, list(simulate(its_profile, UNCACHED, burst(1, nonsense=1))))
    assert (submission.outcome, submission.status) == (Outcome.REJECTED, 400)


def test_no_arrivals_is_no_run() -> None:
    everything = list(simulate(profile(), UNCACHED, []))
    assert not records(Submission, everything)
    assert records(Node, everything)
