"""What evictions did to a test: by hand, and against what a simulated platform was told to do."""

import pytest

from harness.analysis.spot.advice import advice
from harness.analysis.spot.recorded import TaskAttempts, losses
from harness.analysis.timeline import Timeline
from harness.model.errors import ConfigError
from harness.model.phases import RUNNING, SCHEDULING
from harness.store.prices import Prices, keep_prices, parse_price
from harness.store.tables import load
from tests.support.timelines import Story


def story(*, price=None, on_demand=None):
    """Four runs on two spot machines and a steady one, for an hour; `cheap-1` is taken back after 1,000 s.

    Run 0 loses `train` after 400 s of work, begins it again 100 s later and succeeds. Run 1 loses it after 600 s and
    fails. Run 2 is not hit, and run 3 works on the steady machine.
    """
    told = Story(intended=4)
    told.node("cheap-0", 0.0, 0.0, pool="cheap", spot=True, price=price)
    told.node("cheap-1", 0.0, 0.0, 1000.0, pool="cheap", spot=True, price=price)
    told.node("steady", 0.0, 0.0, pool="steady", price=on_demand)
    runs = [told.submit(seq) for seq in range(4)]
    lost = [
        told.pod(runs[0], "train", "cheap-1", (SCHEDULING, 590.0, 600.0), (RUNNING, 600.0, 1000.0)),
        told.pod(runs[1], "train", "cheap-1", (SCHEDULING, 390.0, 400.0), (RUNNING, 400.0, 1000.0)),
    ]
    for pod, run in zip(lost, runs, strict=False):
        told.event(1000.0, "Pod", pod, "DeletionByPodGC", "node no longer exists", run=run)
    told.event(970.0, "Node", "cheap-1", "PreemptScheduled", "scheduled for preemption")
    again = told.pod(runs[0], "train-again", "cheap-0", (SCHEDULING, 1010.0, 1100.0), (RUNNING, 1100.0, 2000.0))
    told.records = [_renamed(record, again, "train") for record in told.records]
    told.pod(runs[2], "train", "cheap-0", (SCHEDULING, 0.0, 10.0), (RUNNING, 10.0, 810.0))
    told.pod(runs[3], "train", "steady", (SCHEDULING, 0.0, 10.0), (RUNNING, 10.0, 3600.0))
    for run, over, state in zip(runs, (2001.0, 1001.0, 811.0, 3600.0), ("SUCCEEDED", "FAILED", *["SUCCEEDED"] * 2),
                                strict=True):  # fmt: skip
        told.run(run, 0.0, over, state)
    return told


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return losses(story(price=0.09, on_demand=0.45).timeline(tmp_path_factory.mktemp("story")))


def _renamed(record, step, task):
    """The record with this task, if it is of that step."""
    from dataclasses import replace

    return replace(record, task=task) if getattr(record, "step", None) == step else record


def test_losses_are_counted_by_run_and_task(found):
    assert (found.hit, found.survived, found.abandoned) == (2, 1, 1)
    assert found.tasks == (TaskAttempts("train", 5, 2, 400 + 600 + 900 + 800 + 3590, 1000.0),)
    assert found.tasks[0].attempts == pytest.approx(5 / 3)


def test_the_rate_is_that_of_machines_with_the_interval_of_a_poisson_count(found):
    """One in 1 h + 1,000 s; Garwood's interval of a count of 1 is 0.0253 to 5.572."""
    rate = found.rate
    hours = 1 + 1000 / 3600
    assert (rate.losses, rate.hours) == (1, pytest.approx(hours))
    assert (rate.low, rate.high) == (pytest.approx(0.0253 / hours, rel=1e-2), pytest.approx(5.572 / hours, rel=1e-3))


def test_time_was_added_from_the_lost_attempts_start_to_that_of_the_next(found):
    added = found.added
    assert (added.count, added.mean) == (1, pytest.approx(500.0))


def test_other_pods_of_a_loop_are_no_further_attempts(tmp_path):
    """Of three iterations at once one is lost, and nothing follows it; in the second run, one follows."""
    told = Story(intended=2)
    told.node("cheap", 0.0, 0.0, pool="cheap", spot=True)
    for seq in range(2):
        run = told.submit(seq)
        for k in range(3):
            name = told.pod(run, f"train-{k}", "cheap", (RUNNING, 10.0 + k, 100.0 + k))
            told.records = [_renamed(record, name, "train") for record in told.records]
        told.event(101.0, "Pod", f"{run}-train-1", "EvictionByEvictionAPI", run=run)
        if seq:
            name = told.pod(run, "train-3", "cheap", (SCHEDULING, 101.0, 150.0), (RUNNING, 150.0, 240.0))
            told.records = [_renamed(record, name, "train") for record in told.records]
        told.run(run, 0.0, 300.0, "SUCCEEDED" if seq else "FAILED")
    found = losses(told.timeline(tmp_path))
    assert (found.hit, found.survived, found.abandoned) == (2, 1, 1)
    assert found.added.mean == pytest.approx(150.0 - 11.0)


def test_node_hours_and_money_are_lost_with_the_work(found):
    """1,000 of 2,700 s of work on spot machines were lost, of 1 h + 1,000 s of them at 0.09."""
    hours = 1 + 1000 / 3600
    assert found.lost_node_hours == pytest.approx(hours * 1000 / 2700)
    assert found.lost_money == pytest.approx(0.09 * hours * 1000 / 2700)


def test_spot_is_compared_with_the_same_useful_work_on_demand(found):
    paid = found.comparison
    hours = 1 + 1000 / 3600
    assert (paid.spot, paid.price_ratio) == (pytest.approx(0.09 * hours), pytest.approx(0.2))
    assert paid.on_demand == pytest.approx(0.45 * hours * (1 - 1000 / 2700))
    assert paid.saving == pytest.approx(1 - 0.2 / (1 - 1000 / 2700))
    assert paid.low <= paid.on_demand <= paid.high
    low, high = paid.saving_interval
    assert low <= paid.saving <= high


@pytest.mark.parametrize(("price", "on_demand"), [(None, 0.45), (0.09, None)])
def test_without_both_prices_nothing_is_compared(price, on_demand, tmp_path):
    assert losses(story(price=price, on_demand=on_demand).timeline(tmp_path)).comparison is None


def test_a_given_price_on_demand_counts_before_that_of_machines_of_the_same_size(tmp_path):
    folder = story(price=0.09, on_demand=0.45).write(tmp_path)
    keep_prices(folder, Prices(dict([parse_price("cheap@on-demand=0.9")])), load(folder)["nodes"])
    timeline = Timeline.from_frames(folder.read_plan(), load(folder))
    assert losses(timeline).comparison.price_ratio == pytest.approx(0.1)
    with pytest.raises(ConfigError, match="no node of the pool 'other@on-demand'"):
        keep_prices(folder, Prices(dict([parse_price("other@on-demand=0.9")])), load(folder)["nodes"])


def test_a_test_without_spot_machines_and_losses_has_none(tmp_path):
    told = Story(intended=1)
    told.node("steady", 0.0, 0.0)
    run = told.submit(0)
    told.pod(run, "train", "steady", (RUNNING, 0.0, 10.0))
    told.run(run, 0.0, 11.0)
    timeline = told.timeline(tmp_path)
    assert (losses(timeline), advice(timeline)) == (None, None)


@pytest.mark.parametrize(
    ("at_s", "clustered"),
    [
        ([1000.0, 1010.0, 1020.0, 9000.0, 9010.0, 9020.0, 30000.0, 30010.0], True),
        ([1000.0 + 4000.0 * k for k in range(8)], False),
        ([1000.0, 1001.0, 9000.0], False),  # too few to tell
    ],
)
def test_machines_taken_in_bursts_are_told_from_those_taken_one_by_one(at_s, clustered, tmp_path):
    told = Story(intended=1)
    for k, instant in enumerate(at_s):
        told.node(f"cheap-{k}", 0.0, 0.0, instant, pool="cheap", spot=True)
        told.event(instant, "Node", f"cheap-{k}", "PreemptScheduled")
    told.node("cheap", 0.0, 0.0, pool="cheap", spot=True)
    run = told.submit(0)
    told.pod(run, "train", "cheap", (RUNNING, 0.0, 40000.0))
    told.run(run, 0.0, 40000.0)
    assert losses(told.timeline(tmp_path)).clustered is clustered
