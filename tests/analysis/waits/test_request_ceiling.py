"""Waits for pods that a ceiling on their requests explains, against sums by hand and queues whose cause is known."""

from dataclasses import replace
from heapq import heappop, heappush
from random import Random

import pytest

from harness.analysis.waits.request_ceiling import Ceiling, ceiling
from harness.model import Submission
from harness.model.phases import REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, RUNNING
from tests.support.timelines import GIB, Story

_RUNS = 120


def story(starts: list[float], lives: list[float], *, cores: float = 1.0, memory: float = 0.0) -> Story:
    """Runs that are due at 0, of one pod each."""
    made = Story(intended=len(starts))
    for seq, (start, life) in enumerate(zip(starts, lives, strict=True)):
        run = made.submit(seq)
        made.pod(run, "train", "a", (RUNNING, start, start + life))
        made.run(run, 0, start + life)
    made.node("a", -60, -50)
    made.sample(0, REQUESTED_CPU_CORES, cores, task="train")
    made.sample(0, REQUESTED_MEMORY_BYTES, memory, task="train")
    return made


def held_at(most: int, lives: list[float], retry_s: float = 0.0) -> list[float]:
    """When pods begin that wait until fewer than `most` live, and are tried again after up to `retry_s`."""
    random, live, at, starts = Random(7), list[float](), 1.0, list[float]()
    for life in lives:
        if len(live) == most:
            at = max(at, heappop(live) + random.uniform(0, retry_s))
        starts.append(at)
        heappush(live, at + life)
    return starts


def lives(spread: float, mean: float = 20.0, seed: int = 1) -> list[float]:
    random = Random(seed)
    return [mean * random.lognormvariate(0, spread) for _ in range(_RUNS)]


def found(made: Story, place) -> Ceiling:
    what = ceiling(made.timeline(place))
    assert what is not None
    return what


def test_pods_that_wait_until_others_end_are_below_a_ceiling(tmp_path):
    long = lives(0.5)
    what = found(story(held_at(4, long), long, cores=1.5), tmp_path)
    assert (what.tenant, what.resource, what.most, what.since_s) == ("", "cpu", 6.0, 0.0)
    assert what.pods == _RUNS - 4
    assert what.share == pytest.approx(1, abs=0.01)
    assert what.variance > 0.5


def test_what_passes_until_a_pod_is_tried_again_is_not_explained(tmp_path):
    long = lives(0.5)
    at_once = found(story(held_at(4, long), long), tmp_path / "at once").share
    later = found(story(held_at(4, long, retry_s=4.0), long), tmp_path / "later").share
    # A place is empty for 2 s of the 7 s between two pods, on average.
    assert at_once - later == pytest.approx(2 / (20 * 1.13 / 4 + 2), abs=0.1)


def test_pods_that_are_created_at_an_even_rate_are_below_none(tmp_path):
    what = found(story([5.0 * k for k in range(_RUNS)], lives(0.5)), tmp_path)
    assert what.share < 0.1
    assert what.variance > 0.5


def test_where_all_pods_live_as_long_the_variance_says_that_it_shows_nothing(tmp_path):
    what = found(story([5.0 * k for k in range(_RUNS)], [22.0] * _RUNS), tmp_path)
    assert what.share > 0.3
    assert what.variance == pytest.approx(0, abs=0.01)


def test_the_variance_is_that_of_pods_created_at_an_even_rate(tmp_path):
    """Half of them live for 10 s and half for 30 s: the mean difference is 10 s, at a pod every 5 s."""
    made = story([5.0 * k for k in range(_RUNS)], [(10.0, 30.0)[k % 2] for k in range(_RUNS)])
    span = 5.0 * (_RUNS - 1) + 30
    assert found(made, tmp_path).variance == pytest.approx(_RUNS / span * 10 / 2)


def test_a_ceiling_may_be_lowered_during_the_test(tmp_path):
    long = lives(0.5, seed=3)
    starts = [0.1 * k for k in range(12)]  # twelve at once, before
    later = held_at(3, long[12:])
    made = story([*starts, *(100 + each for each in later)], long)
    what = found(made, tmp_path)
    assert what.since_s > 0
    assert what.most == 3.0
    assert what.share > 0.5


@pytest.mark.parametrize(("cores", "memory", "resource", "most"), [
    (1.0, GIB, "cpu", 4.0), (0.0, GIB, "memory", 4.0 * GIB), (0.0, 0.0, "pods", 4.0),
])  # fmt: skip
def test_of_resources_that_explain_as_much_the_first_one_is_named(cores, memory, resource, most, tmp_path):
    long = lives(0.5)
    what = found(story(held_at(4, long), long, cores=cores, memory=memory), tmp_path)
    assert (what.resource, what.most) == (resource, most)


def test_the_resource_that_explains_more_is_named(tmp_path):
    """Small pods leave no memory and much CPU."""
    long, random = lives(0.5), Random(4)
    made = Story(intended=_RUNS)
    made.node("a", -60, -50)
    for seq, (start, life) in enumerate(zip(held_at(4, long), long, strict=True)):
        run = made.submit(seq)
        made.pod(run, random.choice(("small", "large")), "a", (RUNNING, start, start + life))
        made.run(run, 0, start + life)
    for task, cores in (("small", 0.1), ("large", 4.0)):
        made.sample(0, REQUESTED_CPU_CORES, cores, task=task)
        made.sample(0, REQUESTED_MEMORY_BYTES, GIB, task=task)
    assert found(made, tmp_path).resource == "memory"


@pytest.mark.parametrize(("before_s", "waited_for"), [(2.0, 0), (5.0, _RUNS - 4)])
def test_a_pod_is_due_when_the_last_pod_of_its_run_has_ended(before_s, waited_for, tmp_path):
    long = lives(0.5)
    starts = [50 + each for each in held_at(4, long)]
    made = story(starts, long)
    for seq, start in enumerate(starts):
        made.pod(
            f"run-{seq:04d}",
            "driver",
            "a",
            (RUNNING, 2, 3),
        )
        made.pod(f"run-{seq:04d}", "download", "a", (RUNNING, 4, start - (before_s if seq >= 4 else 1.0)))
    what = ceiling(made.timeline(tmp_path))
    assert (what.pods if what is not None else 0) == waited_for


def test_too_few_pods_say_nothing(tmp_path):
    long = lives(0.5)[:23]
    assert ceiling(story(held_at(4, long), long).timeline(tmp_path)) is None
    assert ceiling(Story(intended=1).timeline(tmp_path / "none")) is None


def test_tenants_have_ceilings_of_their_own(tmp_path):
    """The second tenant's pods come at an even rate."""
    long = lives(0.5)
    starts = held_at(4, long[::2])
    both = [starts[k // 2] if k % 2 == 0 else 5.0 * k for k in range(_RUNS)]
    made = story(both, long)
    made.tenants = "team-a;team-b"
    made.records = [
        replace(each, tenant=("team-a", "team-b")[each.seq % 2]) if isinstance(each, Submission) else each
        for each in made.records
    ]
    what = found(made, tmp_path)
    assert (what.tenant, what.most) == ("team-a", 4.0)
    assert what.share > 0.9
