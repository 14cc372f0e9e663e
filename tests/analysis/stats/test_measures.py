import pytest

from harness.analysis.stats.compare import Measurement
from harness.analysis.stats.measures import (
    GOODPUT,
    IMBALANCE,
    MAKESPAN,
    MEAN,
    MONEY,
    P95,
    TAIL,
    THROUGHPUT,
    WAITING,
    gains,
    measured,
    primary,
)
from harness.model.phases import COMPUTING, FAILED, QUEUED, RUNNING, SUCCEEDED
from tests.support.timelines import Story


def pipeline(*, price=2.0, last=30.0):
    """Runs of 10, 20 and 40 s on one node; a fourth one fails after 30 s, or is in flight still."""
    story = Story(intended=4)
    story.node("n0", -100, -50, price=price)
    for seq, over in enumerate((10.0, 20.0, 40.0, last)):
        run = story.submit(seq, lag=0.5, service=0.25 * (seq + 1))
        pod = story.pod(run, "a", "n0", (RUNNING, 2.0, over))
        story.run(run, 1.0, over, FAILED if seq == 3 else SUCCEEDED)
    if last is not None:
        story.event(last, "Pod", pod, "OOMKilled", run=run)
    return story


def test_the_figures_of_a_test_by_hand(tmp_path):
    assert measured(pipeline().timeline(tmp_path)) == pytest.approx({
        MEAN: 70 / 3, "run.duration p50 (s)": 20.0, P95: 40.0, "submit.latency p95 (s)": 1.5,
        MAKESPAN: 40.0, THROUGHPUT: 270.0, "failed_ratio": 0.25,
        GOODPUT: 270.0, MONEY: 135.0,  # three runs in 40 s of a node that costs 2 an hour
        "work lost (share)": 28 / 92,
    })  # fmt: skip


def test_what_is_not_known_has_no_figure(tmp_path):
    assert MONEY not in measured(pipeline(price=None).timeline(tmp_path))
    assert GOODPUT not in measured(service().timeline(tmp_path / "b"))
    only_failed = Story(intended=1)
    only_failed.run(only_failed.submit(0), 0.0, 5.0, FAILED)
    assert MEAN not in measured(only_failed.timeline(tmp_path / "c"))


def test_with_runs_in_flight_the_mean_would_lack_the_longest(tmp_path):
    figures = measured(pipeline(last=None).timeline(tmp_path))
    assert MEAN not in figures
    assert figures["run.duration p50 (s)"] == 20.0


def service():
    """Two replicas: one computes 1 s and 3 s at once, the other 2 s and 4 s, of which half is a wait for it."""
    story = Story(intended=4, target="hetida")
    for seq in range(4):
        run = story.submit(seq, lag=0.0)
        waited = seq + 1.0 if seq == 3 else 0.0
        story.pod(run, "", f"runtime-{seq % 2}", (QUEUED, 0.0, waited), (COMPUTING, waited, waited + seq + 1.0))
        story.run(run, 0.0, waited + seq + 1.0)
    return story


def test_the_figures_of_replicas_by_hand(tmp_path):
    """Loads of 4 s and 6 s; the first is done 5 s before the other, which ends at 8 s; 4 of 14 s are waits."""
    figures = measured(service().timeline(tmp_path))
    assert [figures[name] for name in (WAITING, TAIL, IMBALANCE)] == pytest.approx([4 / 14, 5 / 8, 0.1])


@pytest.mark.parametrize(
    ("schedules", "metric"), [(["burst", "burst"], MAKESPAN), (["burst", "poisson"], MEAN), (["poisson"], MEAN)]
)
def test_bursts_are_judged_by_how_long_they_took_in_all(schedules, metric):
    assert primary(schedules) == metric


def twice(**variants):
    """Two tests of each variant, whose figures differ by 2 around those given."""
    return [
        Measurement(variant, "s", str(k), metric, value + 2 * k - 1)
        for variant, figures in variants.items()
        for metric, value in figures.items()
        for k in range(2)
    ]


def test_what_another_schedule_changes_is_told_in_means():
    measurements = twice(
        A={P95: 120.0, MAKESPAN: 3600.0, WAITING: 1.4, TAIL: 1.1, IMBALANCE: 1.25, "other": 1.0},
        B={P95: 60.0, MAKESPAN: 7200.0, WAITING: 1.2, TAIL: 1.05, IMBALANCE: 1.125},
        C={P95: 30.0},
        D={"other": 2.0},
    )
    even = (
        "B (even) against A (burst): run duration p95 60 s instead of 2 min; "
        "time executions wait for a replica 120% instead of 140%; "
        "time with some replicas idle at the end 105% instead of 110%; "
        "Gini coefficient of the replicas' load 1.12 instead of 1.25; makespan 2 h instead of 1 h."
    )
    assert gains(measurements, {"A": "burst", "B": "even", "C": "poisson", "D": "ramp"}) == (
        even, "C (poisson) against A (burst): run duration p95 30 s instead of 2 min.",
    )  # fmt: skip
    assert gains(measurements, {"A": "burst", "B": "burst"}) == ()
