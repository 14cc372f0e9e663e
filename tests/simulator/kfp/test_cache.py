"""The execution cache: which steps of a later run are not computed again."""

from typing import Any

from kfp import dsl

from harness.simulator.cluster import Change
from harness.simulator.platform import Platform
from harness.simulator.profile import Controller
from tests.support.kfp_sdk import compiled, step
from tests.support.platforms import Journal, profile, submit, upload


def test_the_cache_answers_a_step_whose_own_inputs_are_the_same(tmp_path: Any) -> None:
    @dsl.pipeline
    def two(number: int = 1, other: int = 1):
        step(number=number)
        step(number=other)

    package = compiled(tmp_path, two)
    journal = Journal()
    platform = Platform(profile(), 5, journal)
    version = upload(platform, package)
    executors = []
    for number, other in ((1, 2), (1, 3), (4, 3), (2, 1)):
        journal.pods.clear()
        submit(platform, version, number=number, other=other)
        platform.loop.run(platform.loop.now + 100)
        executors.append([pod.task for pod in journal.saw(Change.CREATED) if pod.role == "executor"])
    # The last run's steps were computed before, each as the other's task: equal components with equal inputs.
    assert executors == [["step", "step-2"], ["step-2"], ["step"], []]


def test_steps_inside_loops_are_answered_from_the_cache_too(tmp_path: Any) -> None:
    @dsl.pipeline
    def looped(items: list = [1, 2]):  # noqa: B006  # the SDK's way to say a default
        with dsl.ParallelFor(items) as item:
            step(number=item)

    package = compiled(tmp_path, looped)
    journal = Journal()
    platform = Platform(profile(controller=Controller(requeue_s=0.0)), 5, journal)
    version = upload(platform, package)
    executors = []
    for items in ([1, 2], [2, 3], [3, 1]):
        journal.pods.clear()
        submit(platform, version, items=items)
        platform.loop.run(platform.loop.now + 1000)
        executors.append(sum(pod.role == "executor" for pod in journal.saw(Change.CREATED)))
    assert executors == [2, 1, 0]
