"""Conditions: which pods a pipeline with If, Elif and Else makes, alone and in loops, at first and when retried."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import yaml
from kfp import dsl

from harness.simulator.cluster import Change
from harness.simulator.platform import Platform
from tests.support.kfp_sdk import branches, compiled, failing, flip, ran, step
from tests.support.platforms import ONE_SECOND, Journal, profile, submit, upload


def test_a_condition_on_a_parameter_decides_which_pods_a_run_has(tmp_path: Any) -> None:
    @dsl.pipeline
    def chosen(rate: float = 0.5):
        with dsl.If(rate > 0.3):
            step().set_display_name("high")
        with dsl.Else():
            step()
            step()

    for rate, executors in ((0.9, 1), (0.1, 2)):
        (run,), (pods,) = ran(tmp_path, chosen, rate=rate)
        # The root's driver, the branches' driver, one for each branch; 2 for each step of the branch that is taken.
        assert sum(pods.values()) == 2 + 2 + 2 * executors
        assert sum(count for (role, _), count in pods.items() if role == "executor") == executors
        assert run.state == "SUCCEEDED"


@dsl.pipeline
def tossed():
    face = flip().outputs["face"]
    with dsl.If(face == "heads"):
        step(number=1)
    with dsl.Elif(face == "tails"):
        step(number=2)
    with dsl.Else():
        step(number=3)


def test_a_condition_on_a_result_in_the_profile_is_decided_by_it(tmp_path: Any) -> None:
    coin = replace(ONE_SECOND, match="flip", results={"face": ("tails",)})
    _, pods = ran(tmp_path, tossed, 4, under=profile(steps=(coin, ONE_SECOND)))
    assert {tuple(branches(each)) for each in pods} == {("step-2",)}
    fair = replace(coin, results={"face": ("heads", "tails")})
    _, pods = ran(tmp_path, tossed, 200, under=profile(steps=(fair, ONE_SECOND)))
    assert Counter(branches(each)[0] for each in pods).keys() == {"step", "step-2"}


@pytest.mark.parametrize(("likely", "taken"), [(1.0, "step"), (0.0, "step-3")])
def test_a_condition_on_an_unknown_value_holds_with_the_profiles_probability(
    tmp_path: Any, likely: float, taken: str
) -> None:
    quick = profile()
    under = replace(quick, controller=replace(quick.controller, condition_holds=likely))
    _, pods = ran(tmp_path, tossed, 3, under=under)
    assert [branches(each) for each in pods] == [[taken]] * 3


def test_undecided_branches_are_taken_in_the_drawn_shares_one_in_each_run(tmp_path: Any) -> None:
    runs, pods = ran(tmp_path, tossed, 400)
    counts = Counter(task for each in pods for task in branches(each))
    assert sum(counts.values()) == len(runs) == 400
    for task, share in (("step", 0.5), ("step-2", 0.25), ("step-3", 0.25)):  # 4 standard deviations
        assert abs(counts[task] / 400 - share) < 4 * (share * (1 - share) / 400) ** 0.5


def test_tasks_after_a_skipped_condition_are_omitted_and_the_run_succeeds(tmp_path: Any) -> None:
    @dsl.pipeline
    def followed(flag: bool = False):
        with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
            step()
        step()

    # The SDK has no way to say it, the specification has.
    package = compiled(tmp_path, followed)
    spec = yaml.safe_load(package)
    spec["root"]["dag"]["tasks"]["step-2"]["dependentTasks"] = ["condition-1"]
    (run,), (pods,) = ran(tmp_path, yaml.safe_dump(spec).encode())
    assert pods == {("dag-driver", ""): 1, ("dag-driver", "condition-1"): 1}
    assert run.state == "SUCCEEDED"


def test_a_condition_inside_a_loop_is_decided_for_each_item(tmp_path: Any) -> None:
    @dsl.pipeline
    def looped(items: list = [{"a": 1}, {"a": 2}, {"a": 1}]):  # noqa: B006  # the SDK's way to say a default
        with dsl.ParallelFor(items) as item, dsl.If(item.a == 1):
            step()

    _, (pods,) = ran(tmp_path, looped)
    assert pods["executor", "step"] == 2
    # Root, loop, each iteration, each condition; and two for each step.
    assert sum(pods.values()) == 1 + 1 + 3 + 3 + 2 * 2


def test_a_retried_run_does_not_take_a_branch_that_was_not_taken(tmp_path: Any) -> None:
    @dsl.pipeline
    def mixed(flag: bool = False):
        with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
            step(number=7)
        flip()

    package = compiled(tmp_path, mixed)
    journal = Journal()
    under = failing("flip")
    platform = Platform(replace(under, controller=replace(under.controller, ttl_s=1e6)), 5, journal)
    run = submit(platform, upload(platform, package))[0]
    platform.loop.run(100)
    assert run.state == "FAILED"
    platform.steps.models = (under.steps[1],)
    platform.steps._matched.clear()
    platform.server.retry(run.id)
    platform.loop.run(200)
    assert run.state == "SUCCEEDED"
    assert Counter(pod.task for pod in journal.saw(Change.CREATED) if pod.role == "executor") == {"flip": 2}


def test_the_one_of_several_branches_feeds_a_later_condition(tmp_path: Any) -> None:
    @dsl.pipeline
    def chosen(flag: bool = True):
        with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
            one = flip().outputs["face"]
        with dsl.Else():
            other = flip().outputs["face"]
        with dsl.If(dsl.OneOf(one, other) == "heads"):
            step()

    quick = profile()
    for likely in (0.0, 1.0):
        under = replace(quick, controller=replace(quick.controller, condition_holds=likely))
        (run,), (pods,) = ran(tmp_path, chosen, under=under)
        assert run.state == "SUCCEEDED"
        assert pods["executor", "step"] == likely
        assert sum(count for (role, task), count in pods.items() if role == "executor" and task != "step") == 1
