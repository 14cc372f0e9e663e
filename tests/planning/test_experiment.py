import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.experiment import Experiment, Point, Question, Result, RunOrder
from harness.planning.experiment import answers, expected_tests, grid, likely_points, next_point


def carried_out(experiment, meets, results=()):
    results = list(results)
    while (point := next_point(experiment, results)) is not None:
        results.append(Result(point, meets(point)))
    return results


def test_a_grid_tests_every_point_once_in_an_order_that_its_seed_fixes():
    experiment = Experiment(Question.GRID, ("a", "b"), (10, 20), (1, 2, 3), 2, seed=1)
    points = [r.point for r in carried_out(experiment, lambda _: True)]
    assert len(points) == len(set(points)) == 2 * 2 * 3 * 2
    assert points == list(grid(experiment))
    assert points != list(grid(Experiment(Question.GRID, ("a", "b"), (10, 20), (1, 2, 3), 2, seed=2)))


def test_interleaved_variants_stay_together_and_rounds_follow_each_other():
    points = list(grid(Experiment(Question.GRID, ("a", "b"), (10, 20), (1, 2), 3)))
    assert [p.repetition for p in points] == [0] * 8 + [1] * 8 + [2] * 8
    for first, second in zip(points[::2], points[1::2], strict=True):
        assert (first.load, first.nodes) == (second.load, second.nodes)
        assert {first.variant, second.variant} == {"a", "b"}


def test_a_random_order_mixes_rounds():
    points = list(grid(Experiment(Question.GRID, ("a", "b"), (10, 20), (1, 2), 3, RunOrder.RANDOM)))
    assert [p.repetition for p in points] != sorted(p.repetition for p in points)


@given(st.integers(0, 12), st.sampled_from([1, 3]))
def test_both_searches_find_the_boundary(boundary, repetitions):
    nodes = Experiment(Question.FEWEST_NODES, ("a",), (100,), tuple(range(1, 13)), repetitions)
    (found,) = answers(nodes, carried_out(nodes, lambda p: p.nodes > boundary))
    assert found.value == (boundary + 1 if boundary < 12 else None)
    loads = Experiment(Question.LARGEST_LOAD, ("a",), tuple(range(1, 13)), (5,), repetitions)
    (found,) = answers(loads, carried_out(loads, lambda p: p.load <= boundary))
    assert found.value == (boundary or None)


def test_searches_of_variants_take_turns():
    experiment = Experiment(Question.FEWEST_NODES, ("a", "b"), (100,), tuple(range(1, 17)), 3)
    results = carried_out(experiment, lambda p: p.nodes >= (5 if p.variant == "a" else 9))
    assert [r.point.variant for r in results[:6]] == ["a", "b"] * 3
    assert [found.value for found in answers(experiment, results)] == [5, 9]


@given(st.sampled_from(list(Question)), st.integers(1, 6), st.integers(0, 9), st.integers(0, 5))
def test_the_likely_points_begin_with_the_next_and_hold_the_one_after_it(question, count, boundary, done):
    experiment = Experiment(question, ("a", "b"), (10, 20, 30), tuple(range(1, 9)), 3)
    results = carried_out(experiment, lambda p: p.nodes > boundary)[:done]
    likely = likely_points(experiment, results, count)
    point = next_point(experiment, results)
    assert likely[:1] == ([point] if point else [])
    assert len(set(likely)) == len(likely) <= count
    if count >= 3 and point:
        after = [next_point(experiment, [*results, Result(point, met)]) for met in (True, False)]
        assert set(likely) >= {each for each in after if each}


@pytest.mark.parametrize("boundary", [0, 1, 5, 8])
def test_about_as_many_tests_are_expected_as_there_will_be(boundary):
    every = Experiment(Question.GRID, ("a", "b"), (10, 20), (1, 2), 3)
    assert expected_tests(every) == len(carried_out(every, lambda _: True)) == 24
    search = Experiment(Question.FEWEST_NODES, ("a",), (100, 200), tuple(range(1, 9)), 3)
    assert abs(expected_tests(search) - len(carried_out(search, lambda p: p.nodes > boundary))) <= 4


@pytest.mark.parametrize("question", list(Question))
def test_an_interrupted_experiment_continues_without_repeating_a_point(question):
    experiment = Experiment(question, ("a", "b"), (50, 100, 200), (2, 4, 8, 16), 3, seed=3)

    def meets(point):
        return point.load / point.nodes * Random(repr(point)).lognormvariate(0, 0.2) < 15

    whole = carried_out(experiment, meets)
    points = [r.point for r in whole]
    assert len(set(points)) == len(points)
    for k in range(len(whole)):
        assert carried_out(experiment, meets, whole[:k]) == whole


def test_noisy_searches_need_few_tests_and_are_right_within_a_node():
    """±1 node in at least 95 % of 200 noisy platforms, with at most 60 % of the full grid's tests."""
    experiment = Experiment(Question.FEWEST_NODES, ("a",), (300,), tuple(range(1, 17)), 3)
    right = tests = 0
    for seed in range(200):
        random = Random(seed)
        per_node, jitter = random.uniform(25, 150), random.uniform(0.02, 0.1)

        def meets(point: Point, random=random, per_node=per_node, jitter=jitter):
            return point.load / (point.nodes * per_node) * random.lognormvariate(0, jitter) <= 1

        results = carried_out(experiment, meets)
        (found,) = answers(experiment, results)
        right += found.value is not None and abs(found.value - math.ceil(300 / per_node)) <= 1
        tests += len(results)
    assert right / 200 >= 0.95
    assert tests / 200 <= 0.6 * 16 * 3
