"""Cycles that have grown old are looked for, but never while somebody would notice."""

import gc
import weakref
from collections.abc import Iterator
from math import inf

import pytest

from harness.simulator.garbage import Collector


class Node:
    """Refers to itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collector() -> Iterator[Collector]:
    before = gc.get_threshold()
    yield Collector()
    gc.set_threshold(*before)
    gc.unfreeze()


def old_garbage() -> "weakref.ref[Node]":
    node = Node()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(node)


def test_what_has_grown_old_is_found_when_nobody_asks_and_nothing_is_due(collector: Collector) -> None:
    dead = old_garbage()
    collector.look(5_000, quiet_s=inf)  # they have just come
    assert dead() is not None
    assert collector.look(5_000, quiet_s=inf)
    assert dead() is None


@pytest.mark.parametrize(
    ("requests", "quiet_s"), [((10, 10), inf), ((5_000, 5_001), inf), ((5_000, 5_000), 0.0)],
    ids=["little can have come together", "somebody asks", "something is due"],
)  # fmt: skip
def test_it_is_left_alone_otherwise(collector: Collector, requests: tuple[int, int], quiet_s: float) -> None:
    dead = old_garbage()
    for count in requests:
        assert not collector.look(count, quiet_s)
    assert dead() is not None


def test_it_is_looked_for_once(collector: Collector) -> None:
    assert [collector.look(5_000, inf) for _ in range(4)] == [False, True, False, False]


@pytest.mark.usefixtures("collector")
def test_python_itself_looks_at_the_young_only() -> None:
    dead = old_garbage()
    many = [[number] for number in range(300_000)]
    assert dead() is not None, len(many)
