"""Which workflows may run, by Argo's two limits."""

import pytest

from harness.simulator.workflows.work_queue import Throttler


class Workflows:
    """Workflows that ask once, and again when they are told to."""

    def __init__(self, most: int = 0, most_of_each: int = 0) -> None:
        self.throttler = Throttler(most, most_of_each)
        self.running: list[str] = []

    def ask(self, name: str, priority: int = 0, created: float = 0.0) -> None:
        namespace, _, key = name.partition("/")
        start = lambda: self.running.append(name)  # noqa: E731
        if self.throttler.admit((namespace, key), start, priority=priority, created=created):
            self.running.append(name)

    def end(self, name: str) -> None:
        namespace, _, key = name.partition("/")
        self.throttler.remove((namespace, key))


@pytest.mark.parametrize(
    ("limits", "running"),
    [
        ((0, 0), ["a/1", "a/2", "b/1", "b/2"]),
        ((3, 0), ["a/1", "a/2", "b/1"]),
        ((0, 1), ["a/1", "b/1"]),
        ((1, 2), ["a/1"]),
        ((3, 1), ["a/1", "b/1"]),
    ],
)
def test_the_limit_in_all_and_that_of_each_namespace_hold_together(limits, running):
    workflows = Workflows(*limits)
    for name in ("a/1", "a/2", "b/1", "b/2"):
        workflows.ask(name)
    assert workflows.running == running
    assert workflows.throttler.waiting == 4 - len(running)


def test_a_full_namespace_does_not_hold_up_the_others():
    workflows = Workflows(most_of_each=1)
    for name in ("a/1", "a/2", "a/3", "b/1"):
        workflows.ask(name)
    workflows.end("a/1")
    assert workflows.running == ["a/1", "b/1", "a/2"]


def test_the_next_one_is_that_of_the_highest_priority_and_then_the_oldest():
    workflows = Workflows(most=1)
    workflows.ask("a/first")
    workflows.ask("a/young", created=3.0)
    workflows.ask("b/old", created=2.0)
    workflows.ask("a/urgent", priority=5, created=9.0)
    for name in ("a/first", "a/urgent", "b/old"):
        workflows.end(name)
    assert workflows.running == ["a/first", "a/urgent", "b/old", "a/young"]


def test_one_that_asks_again_has_its_place_and_one_that_left_takes_none():
    workflows = Workflows(most=1)
    workflows.ask("a/1")
    workflows.ask("a/1")
    workflows.ask("a/2")
    workflows.ask("a/3")
    workflows.end("a/2")  # it was deleted before it started
    workflows.end("a/1")
    assert workflows.running == ["a/1", "a/1", "a/3"]


def test_a_raised_limit_lets_in_those_that_wait():
    workflows = Workflows(most=1, most_of_each=1)
    for name in ("a/1", "a/2", "b/1"):
        workflows.ask(name)
    workflows.throttler.limit_to(2, 1)
    assert workflows.running == ["a/1", "b/1"]
    workflows.throttler.limit_to(0, 0)
    assert workflows.running == ["a/1", "b/1", "a/2"]
