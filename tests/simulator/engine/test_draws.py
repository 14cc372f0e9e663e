"""Random numbers that depend on what they are drawn for."""

from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.engine.distributions import Draws

PARTS = st.tuples(st.integers(0, 2**31), st.integers(0, 2**31), st.integers(0, 100))


@given(st.lists(PARTS, unique=True, max_size=20), st.randoms(use_true_random=False))
def test_a_part_draws_the_same_whatever_is_drawn_before_it(parts, shuffling):
    draws = Draws("7/steps")
    first = {part: draws.of(*part).random() for part in parts}
    shuffling.shuffle(parts)
    assert {part: draws.of(*part).random() for part in parts} == first
    assert len(set(first.values())) == len(parts)


def test_streams_of_other_seeds_differ():
    assert Draws("7/steps").of(0, 1, 0).random() != Draws("8/steps").of(0, 1, 0).random()


def test_a_part_s_first_draws_are_uniform():
    draws = Draws("7/steps")
    drawn = [draws.of(run, part, 0).random() for run in range(100) for part in range(100)]
    for tenth in range(10):
        assert 900 < sum(tenth <= 10 * each < tenth + 1 for each in drawn) < 1100  # 3.3 standard deviations
