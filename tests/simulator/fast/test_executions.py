"""A whole test in simulated time: its records are those of a run folder, exact and reproducible."""

import itertools
from pathlib import Path

import pytest

from harness.model import Event, Outcome, Scenario, Span, Submission
from harness.model.phases import COMPUTING, RUN, SERVICE_PHASES, SUCCEEDED
from harness.simulator.fast import Arrival
from harness.simulator.faults import parse_fault
from harness.simulator.profile.file import load_profile
from tests.support.simulated import simulate

PACKAGE = (Path(__file__).parents[3] / "harness/targets/anomaly_detection.json").read_bytes()


def simulated(count=120, spacing_s=0.1, profile="hetida-pattern-1", fault=None, **more):
    arrivals = [Arrival(k * spacing_s, Scenario(str(k), "s", {"window": 30}, {})) for k in range(count)]
    faults = [parse_fault(fault)] if fault else []
    return list(simulate(load_profile(profile), PACKAGE, arrivals, faults=faults, origin_at=10**18, **more))


def of(records, kind):
    return [record for record in records if isinstance(record, kind)]


def test_each_arrival_has_a_row_an_end_and_phases_that_add_up_to_it():
    records = simulated()
    rows, spans = of(records, Submission), of(records, Span)
    assert [row.seq for row in rows] == list(range(120))
    assert {row.outcome for row in rows} == {Outcome.ACCEPTED}
    assert {event.reason for event in of(records, Event)} == {SUCCEEDED}
    whole = {span.run: span.ended_at - span.started_at for span in spans if span.phase == RUN}
    assert whole == {row.run: row.answered_at - row.sent_at for row in rows}
    for run, length in whole.items():
        parts = [span for span in spans if span.run == run and span.phase != RUN]
        assert sum(part.ended_at - part.started_at for part in parts) == pytest.approx(length, abs=10)
        assert {part.phase for part in parts} <= set(SERVICE_PHASES)


def test_a_worker_computes_one_execution_at_a_time():
    spans = [
        span for span in of(simulated(spacing_s=0.01, profile="hetida-pattern-3"), Span) if span.phase == COMPUTING
    ]
    assert len({span.node for span in spans}) == 12, "replicas of one worker"
    for node in {span.node for span in spans}:
        turns = sorted((span.started_at, span.ended_at) for span in spans if span.node == node)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(turns))


def test_records_name_at_most_the_replica_as_answers_do(tmp_path):
    assert {span.node for span in of(simulated(), Span)} == {None, "runtime-0", "runtime-1", "runtime-2"}
    profile = tmp_path / "unnamed.yaml"
    profile.write_text(
        "hetida: {runtime: {replicas: 2, workers: 2, names_replicas: false}, adapters: [{id: plants}]}\n"
    )
    assert {span.node for span in of(simulated(profile=str(profile)), Span)} == {None}


def test_the_same_seed_gives_the_same_records_and_another_does_not():
    assert simulated(seed=3) == simulated(seed=3)
    assert simulated(seed=3) != simulated(seed=4)


def test_littles_law_holds():
    """L = λ W over the whole run: executions under way, integrated, are the sum of their times."""
    rows = of(simulated(300, 0.05), Submission)
    changes = sorted([(row.sent_at, 1) for row in rows] + [(row.answered_at, -1) for row in rows])
    area, level, last = 0, 0, changes[0][0]
    for at, step in changes:
        area, level, last = area + level * (at - last), level + step, at
    assert area == sum(row.answered_at - row.sent_at for row in rows)


def test_a_broken_execution_is_a_failed_run_with_its_reason():
    records = simulated(fault="adapter-errors:2")
    failed = [event for event in of(records, Event) if event.reason != SUCCEEDED]
    said = {event.message.partition(" · ")[0] for event in failed}
    assert said == {"HTTP 500", "SENDING_DATA_TO_ADAPTERS"}


def test_executions_that_have_not_ended_have_no_answer():
    rows = of(simulated(50, 0.0, drain_s=0.5), Submission)
    assert {row.outcome for row in rows} == {Outcome.ACCEPTED, Outcome.REJECTED}
    assert all((row.run is None) == (row.answered_at is None) for row in rows)


def test_least_connections_end_a_burst_sooner_than_two_blind_choices():
    def makespan(profile):
        return max(row.answered_at for row in of(simulated(600, 0.0, profile, seed=7), Submission)) - 10**18

    assert makespan("hetida-least-connections") < 0.95 * makespan("hetida-pattern-1")
    assert makespan("hetida-pattern-2") > 2 * makespan("hetida-pattern-1"), "one core's work by one worker of four"
