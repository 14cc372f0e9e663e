"""What nodes lacked while pods waited, against sums by hand."""

from dataclasses import replace

import pytest

from harness.analysis.waits.lacking import EPHEMERAL, Lacking, amount_of, lacking
from harness.model import Node
from harness.model.phases import (
    NODE_CPU_CORES,
    NODE_MEMORY_BYTES,
    REQUESTED_CPU_CORES,
    REQUESTED_EPHEMERAL_BYTES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUNNING,
    SCHEDULING,
    UNSCHEDULABLE,
)
from tests.support.timelines import GIB, Story


def crowded(*, gpu: float = 0.0, ephemeral: float = 0.0, waits_until: float | None = 50.0, **large: float) -> Story:
    """From 10 s on a `train` of 3 cores waits, for 40 s. It could run on `a`, `b` and, from 30 to 40 s, `d`.

    A `prep` takes 2 of the 4 cores of `a` and 14 of its 16 GiB; another `train` takes 3 of the 8 cores of `b` until
    20 s; `d` is too small. The large node `elsewhere` belongs to a pool on which no `train` ever ran.
    """
    story = Story(intended=4)
    story.node("a", -60, -50)
    story.node("b", -60, -50, cpu=8.0, gpu=1.0, **large)
    story.node("d", 20, 30, 40, cpu=2.0)
    story.node("elsewhere", -60, -50, pool="other", cpu=64.0, memory=256 * GIB)
    runs = [story.submit(seq) for seq in range(3)]
    story.pod(runs[0], "prep", "a", (SCHEDULING, 0, 1), (RUNNING, 1, 100))
    story.pod(runs[1], "train", "b", (RUNNING, 0, 20))
    story.pod(runs[2], "train", None, (UNSCHEDULABLE, 10, waits_until))
    if waits_until is not None:
        story.pod(runs[2], "train", "b", (SCHEDULING, waits_until, 55), (RUNNING, 55, 60))
    for seq, run in enumerate(runs):
        story.run(run, 0, 100 - seq)
    for task, cores, memory in (("prep", 2.0, 14 * GIB), ("train", 3.0, 4 * GIB)):
        story.sample(0, REQUESTED_CPU_CORES, cores, task=task)
        story.sample(0, REQUESTED_MEMORY_BYTES, memory, task=task)
        story.sample(0, REQUESTED_GPUS, gpu if task == "train" else 0.0, task=task)
        story.sample(0, REQUESTED_EPHEMERAL_BYTES, ephemeral, task=task)
    return story


def found(story: Story, place) -> Lacking:
    what = lacking(story.timeline(place))
    assert what is not None
    return what


_NODE_SECONDS = 40 + 40 + 10  # of a, b and d, while the pod waits


def test_each_node_lacks_what_a_waiting_pod_requests_beyond_its_room(tmp_path):
    what = found(crowded(), tmp_path)
    assert what.task == "train"
    assert what.shares == {
        "cpu": pytest.approx((40 + 10) / _NODE_SECONDS),  # a and d; b has 5 of 8 cores left
        "memory": pytest.approx(40 / _NODE_SECONDS),  # a
        "pods": 0.0,
    }
    assert what.scarcest == "cpu"
    assert what.fixed == 0.0
    assert what.too_large == {}


def test_what_is_held_is_a_share_of_what_the_nodes_of_the_pool_can_allocate(tmp_path):
    held = found(crowded(), tmp_path).held
    assert held["cpu"] == pytest.approx((2 * 40 + 3 * 10) / (4 * 40 + 8 * 40 + 2 * 10))
    assert held["memory"] == pytest.approx((14 * 40 + 4 * 10) / (16 * _NODE_SECONDS))
    assert held["pods"] == pytest.approx((40 + 10) / (110 * _NODE_SECONDS))


def test_gpus_are_lacked_where_there_are_none_or_another_pod_has_them(tmp_path):
    what = found(crowded(gpu=1.0), tmp_path)
    assert what.shares["gpu"] == pytest.approx((40 + 10 + 10) / _NODE_SECONDS)  # a and d have none, b one
    assert what.fixed == pytest.approx(what.shares["gpu"])
    assert what.scarcest == "gpu"
    assert what.held["gpu"] == pytest.approx(10 / 40)


def test_places_for_pods_are_lacked_where_all_are_taken(tmp_path):
    what = found(crowded(pods=1), tmp_path)
    assert what.shares["pods"] == pytest.approx(10 / _NODE_SECONDS)  # b, while the other `train` runs there
    assert what.fixed == pytest.approx(10 / _NODE_SECONDS)


@pytest.mark.parametrize(("known", "share"), [(True, (40 + 40) / _NODE_SECONDS), (False, None)])
def test_ephemeral_storage_counts_where_each_node_says_how_much_it_has(known, share, tmp_path):
    story = crowded(ephemeral=6 * GIB)
    if known:
        nodes = [each for each in story.records if isinstance(each, Node)]
        story.records += [replace(node, ephemeral=(5 if node.name == "b" else 10) * GIB) for node in nodes]
    shares = found(story, tmp_path).shares
    assert shares.get("ephemeral") == (share and pytest.approx(share))  # a holds 6 of 10, b has 5; d has room


def test_a_request_beyond_the_largest_node_of_all_is_too_large(tmp_path):
    story = crowded()
    story.sample(0, REQUESTED_CPU_CORES, 65.0, task="train")
    assert found(story, tmp_path).too_large == {"cpu": (65.0, 64.0)}


def test_use_counts_between_the_first_and_the_last_instant_of_waiting(tmp_path):
    story = crowded()
    story.sample(5, NODE_CPU_CORES, 4.0, node="a")  # nobody waits yet
    story.sample(20, NODE_CPU_CORES, 1.0, node="a")
    story.sample(20, NODE_CPU_CORES, 4.0, node="b")
    story.sample(30, NODE_CPU_CORES, 64.0, node="elsewhere")
    story.sample(60, NODE_CPU_CORES, 4.0, node="a")
    assert found(story, tmp_path).used == {"cpu": pytest.approx((1 / 4 + 4 / 8) / 2)}
    story.sample(20, NODE_MEMORY_BYTES, 4 * GIB, node="b")
    assert found(story, tmp_path / "more").used["memory"] == pytest.approx(1 / 4)


def test_a_pod_that_still_waits_waits_until_the_end(tmp_path):
    timeline = crowded(waits_until=None).timeline(tmp_path)
    what = lacking(timeline)
    assert what is not None
    node_seconds = 2 * (timeline.end_s - 10) + 10
    assert what.shares["cpu"] == pytest.approx((timeline.end_s - 10 + 10) / node_seconds, rel=0.02)


def test_the_task_whose_pods_waited_longest_decides(tmp_path):
    story = crowded()
    for seq in (3, 4):
        story.pod(story.submit(seq), "prep", None, (UNSCHEDULABLE, 10, 31))
    what = found(story, tmp_path)
    assert what.task == "prep"
    assert what.shares["cpu"] < 0.1  # of 2 cores each node has as many


def test_pools_on_which_only_other_tasks_ran_do_not_count(tmp_path):
    story = crowded()
    story.pod(story.submit(3), "prep", "elsewhere", (RUNNING, 0, 100))
    assert found(story, tmp_path).shares["cpu"] == pytest.approx((40 + 10) / _NODE_SECONDS)


def test_a_pod_that_still_runs_holds_its_room(tmp_path):
    story = crowded()
    story.pod(story.submit(3), "train", "b", (RUNNING, 12, None))
    story.pod(story.submit(4), "train", "b", (RUNNING, 12, 45))
    assert found(story, tmp_path).shares["cpu"] == pytest.approx((40 + 10 + 33) / _NODE_SECONDS)


def test_where_no_pod_of_the_task_ever_ran_all_nodes_of_the_runs_count(tmp_path):
    story = crowded()
    story.pod(story.submit(3), "never", None, (UNSCHEDULABLE, 10, 90))
    story.sample(0, REQUESTED_CPU_CORES, 5.0, task="never")
    what = found(story, tmp_path)
    assert what.task == "never"
    assert 0.4 < what.shares["cpu"] < 0.7  # of a, b and d only b has 5 cores, and not all of the time


@pytest.mark.parametrize("missing", [UNSCHEDULABLE, REQUESTED_CPU_CORES])
def test_without_waits_or_requests_nothing_is_known(missing, tmp_path):
    story = crowded()
    story.records = [
        each for each in story.records if missing not in (getattr(each, "phase", ""), getattr(each, "metric", ""))
    ]
    assert lacking(story.timeline(tmp_path)) is None


def waited_for(*waits: tuple[float, float]) -> Story:
    """A `train` waits in each of these stretches, for a node of 4 cores on which a `prep` holds 2 from 0 to 20 s."""
    story = Story(intended=1 + len(waits))
    story.node("a", -60, -50)
    prep = story.submit(0)
    story.pod(prep, "prep", "a", (RUNNING, 0, 20))
    story.run(prep, 0, 20)
    for seq, (begun, end) in enumerate(waits, start=1):
        run = story.submit(seq)
        story.pod(run, "train", None, (UNSCHEDULABLE, begun, end))
        story.pod(run, "train", "a", (RUNNING, 100, 110))
        story.run(run, 0, 110)
    for task, amount in (("prep", 2.0), ("train", 3.0)):
        story.sample(0, REQUESTED_CPU_CORES, amount, task=task)
    return story


def test_each_second_that_a_pod_waits_counts_once(tmp_path):
    assert found(waited_for((10, 20), (60, 80), (70, 80)), tmp_path / "a").shares["cpu"] == pytest.approx(10 / 40)
    assert found(waited_for((10, 20), (12, 20)), tmp_path / "b").shares["cpu"] == 1.0


@pytest.mark.parametrize(("end", "known"), [(10.0, False), (10.5, True)])
def test_short_waits_count_and_those_of_no_length_do_not(end, known, tmp_path):
    assert (lacking(waited_for((10.0, end)).timeline(tmp_path)) is not None) is known


def test_pods_that_are_not_yet_placed_and_those_of_unknown_size_hold_nothing(tmp_path):
    story = waited_for((30, 50))
    for seq in (2, 3):
        story.pod(story.submit(seq), "prep", "a", (SCHEDULING, 25, 60))
    for seq in range(4, 8):
        story.pod(story.submit(seq), "unknown", "a", (RUNNING, 25, 60))
    assert found(story, tmp_path).shares["cpu"] == 0.0


def test_of_what_no_node_has_nothing_is_held(tmp_path):
    story = waited_for((10, 30))
    story.sample(0, REQUESTED_GPUS, 1.0, task="train")
    what = found(story, tmp_path)
    assert what.shares["gpu"] == 1.0
    assert what.held["gpu"] == 0.0


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 0.5, "0.5 cores"),
        ("gpu", 2.0, "2 GPUs"),
        ("pods", 6.0, "6 pods"),
        ("memory", 1.5 * GIB, "1.5 GiB of memory"),
        (EPHEMERAL, 10 * GIB, "10.0 GiB of ephemeral storage"),
    ],
)
def test_amounts_are_said_in_words(resource, amount, words):
    assert amount_of(resource, amount) == words


def test_a_pod_that_requests_more_than_the_first_one_of_its_task_holds_and_needs_that(tmp_path):
    story = crowded()
    for pod, cores in (("run-0001-train", 7.0), ("run-0002-train", 1.5)):
        story.sample(0, REQUESTED_CPU_CORES, cores, pod=pod)
    what = found(story, tmp_path)
    assert what.held["cpu"] == pytest.approx((2 * 40 + 7 * 10) / (4 * 40 + 8 * 40 + 2 * 10))
    assert what.shares["cpu"] == pytest.approx(10 / _NODE_SECONDS)  # b, while the other holds 7 of its 8 cores
