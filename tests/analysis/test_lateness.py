import json
from pathlib import Path

import pytest

from harness.analysis.lateness import judged_lateness, lateness
from harness.detectors.doubts import generator_lag
from harness.model.phases import GENERATOR_RATE
from tests.support.timelines import Story

RECORDED = json.loads((Path(__file__).parents[1] / "data/real/late_arrivals.json").read_text())
OBJECTIVE = "p95(submit.latency) < 1s"


def story_of(lags, *, every=0.1, lasting=20.0, slos=()) -> Story:
    """A run per lag, due `every` so many seconds."""
    story = Story(intended=len(lags), slos=slos)
    for seq, lag in enumerate(lags):
        story.run(story.submit(seq, due=every * seq, lag=lag), every * seq, every * seq + lasting)
    return story


def why(story, tmp_path):
    return " | ".join(judged_lateness(story.timeline(tmp_path)).reasons)


@pytest.mark.parametrize("name", [name for name in RECORDED if name != "source"])
@pytest.mark.parametrize("slos", [(), (OBJECTIVE,)])
def test_the_milliseconds_of_a_busy_machine_are_nothing_beside_real_runs(name, slos, tmp_path):
    """They matter where submit latency is an objective."""
    recorded = RECORDED[name]
    story = Story(intended=len(recorded["runs"]), slos=slos)
    story.sample(-0.5, GENERATOR_RATE, recorded["bare_loop_per_s"], worker="0")
    for seq, (lag_ms, lasted_s) in enumerate(recorded["runs"]):
        story.run(story.submit(seq, lag=lag_ms / 1000), 0.0, lasted_s)
    story.sample(recorded["observed_s"], GENERATOR_RATE, recorded["bare_loop_per_s"], worker="0")
    timeline = story.timeline(tmp_path)
    found = [finding for finding in generator_lag.detect(timeline) if finding.confidence > 0.8]
    assert bool(judged_lateness(timeline).reasons) is bool(found) is bool(slos)


@pytest.mark.parametrize(
    ("lag", "lasting", "slos", "late"),
    [
        (0.0049, 0.1, (), False),
        (0.0051, 0.1, (), True),  # of runs that are that short, 1 % can't be had
        (0.0051, 20.0, (), False),
        (0.0051, 20.0, ("p95(run.duration) < 1m",), False),
        (0.0051, 20.0, (OBJECTIVE,), True),
        (0.0051, 20.0, ("p99(submit.lag) < 1s",), True),
        (0.19, 20.0, (), False),
        (0.21, 20.0, (), True),  # more than 1 % of a run
        (0.21, 30.0, (), False),
    ],
)
def test_lateness_is_judged_by_what_it_could_change(lag, lasting, slos, late, tmp_path):
    assert bool(why(story_of([lag] * 100, lasting=lasting, slos=slos), tmp_path)) is late


@pytest.mark.parametrize(
    ("late", "count", "lag", "said"),
    [
        (3, 40, 0.06, "p99 60 ms, limit 50 ms"),
        (1, 40, 0.06, ""),  # by chance, if one in a hundred is
        (3, 200, 0.06, ""),
        (6, 200, 0.06, "p99"),
        (1, 40, 0.24, ""),
        (1, 40, 0.26, "maximum 260 ms, limit 250 ms"),
    ],
)
def test_of_few_arrivals_one_late_one_is_chance_and_three_are_not(late, count, lag, said, tmp_path):
    lags = [lag] * late + [0.001] * (count - late)
    found = why(story_of(lags, slos=(OBJECTIVE,)), tmp_path)
    assert said in found
    assert bool(found) is bool(said)


@pytest.mark.parametrize(
    ("late", "count", "slos", "said"),
    [
        (1, 900, (), "maximum"),
        (1, 2000, (), ""),
        (3, 2000, (), "p99.9 3 s, limit 1 s"),
        (1, 2000, (OBJECTIVE,), "maximum 3 s, limit 250 ms"),
    ],
)
def test_of_very_many_arrivals_one_in_a_thousand_may_leave_late(late, count, slos, said, tmp_path):
    found = why(story_of([3.0] * late + [0.001] * (count - late), slos=slos), tmp_path)
    assert said in found
    assert bool(found) is bool(said)


@pytest.mark.parametrize(("longest", "late"), [(0.9, False), (1.1, True)])
def test_one_arrival_may_leave_late_by_a_twentieth_of_a_run(longest, late, tmp_path):
    found = why(story_of([longest] + [0.001] * 199), tmp_path)
    assert ("5% of the median run duration" in found) is late


def test_runs_that_have_not_ended_last_at_least_until_the_observation_ends(tmp_path):
    story = Story(intended=20)
    for seq in range(20):
        story.run(story.submit(seq, due=seq, lag=0.1), seq, None)
    story.sample(100.0, GENERATOR_RATE, 2000.0, worker="0")
    assert not why(story, tmp_path)


@pytest.mark.parametrize(("stall_s", "bunched"), [(0.5, False), (3.0, True)])
def test_arrivals_that_a_stall_bunches_are_not_the_promised_load(stall_s, bunched, tmp_path):
    """Every ten seconds nothing leaves for a while, and then everything at once: short beside runs of ten minutes."""
    dues = [0.05 * seq for seq in range(1200)]
    found = why(story_of([max(stall_s - due % 10, 0.001) for due in dues], every=0.05, lasting=600.0), tmp_path)
    assert ("left in bunches: counts in windows of 1 s" in found) is bunched


@pytest.mark.parametrize("every", [0.0, 0.05, 1.0, 10.0])
def test_arrivals_that_all_leave_a_little_late_are_not_bunched(every, tmp_path):
    assert not why(story_of([0.6] * 300, every=every, lasting=600.0), tmp_path)


def test_the_costlier_bottleneck_stands_before_lateness_that_takes_less(tmp_path):
    def severity(lag):
        (finding,) = generator_lag.detect(story_of([lag] * 100).timeline(tmp_path / f"{lag}"))
        return finding.severity

    assert severity(0.21) < 0.03 < severity(2.0) < severity(10.0)


def sent_at(rates: dict[int, float], measured: dict[int, float]) -> Story:
    """A burst of 400: each worker sends at its rate what a bare loop sends at the one that was measured before."""
    story = Story(intended=400)
    for worker, rate in measured.items():
        story.sample(-0.5, GENERATOR_RATE, rate, worker=str(worker))
    for seq in range(400):
        worker, rank = seq % len(rates), seq // len(rates)
        lag = rank / rates[worker] + 0.001
        story.run(story.submit(seq, lag=lag, worker=worker), lag, 9.0)
    return story


@pytest.mark.parametrize("rate", [200.0, 5000.0])
def test_simultaneous_arrivals_may_be_sent_as_slowly_as_a_bare_loop_sends(tmp_path, rate):
    assert not why(sent_at({0: rate}, {0: rate}), tmp_path)


@pytest.mark.parametrize("rate", [200.0, 5000.0])
def test_a_burst_that_leaves_more_slowly_than_a_bare_loop_is_invalid(tmp_path, rate):
    assert "left late" in why(sent_at({0: rate / 3}, {0: rate}), tmp_path)


def test_each_worker_is_judged_by_its_own_machine(tmp_path):
    fast, slow = 4000.0, 400.0
    assert not why(sent_at({0: fast, 1: slow}, {0: fast, 1: slow}), tmp_path / "each")
    assert "left late" in why(sent_at({0: slow, 1: slow}, {0: fast, 1: slow}), tmp_path / "late")


def test_a_burst_of_a_folder_without_the_measurement_is_judged_too(tmp_path):
    assert not why(sent_at({0: 20_000.0}, {}), tmp_path / "quick")
    assert "left late" in why(sent_at({0: 100.0}, {}), tmp_path / "slow")


def test_lateness_begins_when_those_before_it_at_the_same_instant_could_have_left(tmp_path):
    """At 100 a second the third arrival of a worker's burst may leave 20 ms after it was due."""
    story = Story(intended=6)
    story.sample(-0.5, GENERATOR_RATE, 100.0, worker="0")
    story.sample(-0.5, GENERATOR_RATE, 0.0, worker="1")
    for seq, (worker, due, lag) in enumerate(
        [(0, 0.0, 0.005), (1, 0.0, 0.005), (0, 0.0, 0.015), (1, 0.0, 0.005), (0, 0.0, 0.015), (0, 1.0, 0.015)]
    ):
        story.run(story.submit(seq, due=due, lag=lag, worker=worker), due, 9.0)
    late = lateness(story.timeline(tmp_path))
    assert late.tolist() == pytest.approx([0.005, 0.005, 0.005, 0.005 - 1 / 2000, 0.0, 0.015], abs=1e-6)
