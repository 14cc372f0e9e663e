import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.planning.search import Search, Tally, largest_passing


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_every_boundary_is_that_of_a_linear_scan_in_both_directions(count, repetitions):
    for boundary in range(count + 1):
        loads = list(range(1, count + 1))
        linear = max((load for load in loads if load <= boundary), default=None)
        for guess in (None, *range(count)):
            assert largest_passing(loads, boundary.__ge__, repetitions=repetitions, guess=guess) == linear
        nodes = list(range(count, 0, -1))
        fewest = min((n for n in nodes if n > boundary), default=None)
        for guess in (None, *range(count)):
            assert largest_passing(nodes, boundary.__lt__, repetitions=repetitions, guess=guess) == fewest


@given(st.integers(1, 5000), st.data())
def test_a_search_takes_logarithmically_many_trials(count, data):
    boundary = data.draw(st.integers(0, count))
    guess = data.draw(st.none() | st.integers(0, count - 1))
    tried = []

    def passes(load):
        tried.append(load)
        return load < boundary

    found = largest_passing(range(count), passes, guess=guess)
    assert found == (boundary - 1 if boundary else None)
    assert len(tried) == len(set(tried))
    assert len(tried) <= (math.ceil(math.log2(count + 1)) if guess is None else 2 * math.ceil(math.log2(count + 1)) + 2)


def test_a_good_guess_saves_trials():
    tried = []

    def passes(load):
        tried.append(load)
        return load <= 37

    assert largest_passing(range(1, 1001), passes, guess=35) == 37
    assert tried == [36, 37, 39, 38]


def test_the_possible_range_contains_the_answer_and_is_exact_without_noise():
    search = Search(5, 3)
    assert search.possible({1: Tally(3, 0), 2: Tally(0, 3)}) == (2, 2)
    assert search.possible({1: Tally(2, 1), 2: Tally(0, 3)}) == (1, 2)
    assert search.possible({1: Tally(3, 0), 2: Tally(1, 2)}) == (2, 3)
    assert search.possible({4: Tally(3, 0)}) == (5, 5)
    assert search.possible({}) == (0, 0)


def test_no_candidate_is_no_answer():
    assert largest_passing([], lambda _: True) is None


@given(st.dictionaries(st.integers(0, 7), st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any)))
def test_the_boundary_contradicts_the_fewest_trials(given_results):
    tallies = {at: Tally(*counts) for at, counts in given_results.items()}

    def contradicted(cut):
        return sum(tally.fails if at < cut else tally.passes for at, tally in tallies.items())

    found = Search(8).boundary(tallies)
    assert contradicted(found) == min(contradicted(cut) for cut in range(9))


def test_the_search_is_a_function_of_its_results():
    """Interrupted after any trial, it continues to the same answer without an extra trial."""
    search = Search(16, repetitions=3)

    def run_to_end(tallies):
        while (at := search.next(tallies)) is not None:
            tallies = tallies | {at: tallies.get(at, Tally()).after(passed=at < 11)}
            yield dict(tallies)

    whole = list(run_to_end({}))
    for k, state in enumerate(whole):
        rest = list(run_to_end(state))
        assert len(rest) == len(whole) - k - 1
    assert search.boundary(whole[-1]) == 11


def test_a_platform_that_is_not_monotone_is_detected():
    tallies = {0: Tally(2, 0), 2: Tally(0, 2), 3: Tally(2, 0), 4: Tally(2, 0), 5: Tally(0, 2)}
    assert Search(6, 3).contradictions(tallies) == (2,)
    assert Search(6, 3).contradictions({0: Tally(1), 1: Tally(0, 1)}) == ()


def test_noisy_searches_are_right_within_one_node_with_few_trials():
    """± 1 node in at least 95 % of 200 noisy platforms, with at most 60 % of a full grid's trials."""
    right = trials = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        needed, noise = random.uniform(2, 20), random.uniform(0.02, 0.08)

        def meets(nodes, random=random, needed=needed, noise=noise):
            nonlocal trials
            trials += 1
            return needed / nodes * math.exp(noise * random.standard_normal()) <= 1.0

        found = largest_passing(list(range(20, 0, -1)), meets, repetitions=3)
        right += found is not None and abs(found - math.ceil(needed)) <= 1
    assert right / 200 >= 0.95
    assert trials / 200 <= 0.6 * 20 * 3
