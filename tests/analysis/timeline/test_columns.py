import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.timeline.columns import after, beginnings, distinct, evenly, position


@given(count=st.integers(0, 500), most=st.integers(1, 60))
def test_positions_are_spread_evenly_from_the_first_to_the_last(count, most):
    places = evenly(count, most).tolist()
    assert len(places) == min(count, most)
    assert places == sorted(set(places))
    if count:
        assert places[0] == 0
    if count > 1 < most:
        assert places[-1] == count - 1
        assert np.ptp(np.diff(places)) <= 1


@given(at=st.lists(st.one_of(st.none(), st.integers(0, 10**18)), max_size=20))
def test_instants_lose_no_digit(at):
    start_at = 1_790_000_000 * 10**9
    seconds = after(pd.Series([None if k is None else start_at + k for k in at], dtype="Int64"), start_at)
    for given_at, told in zip(at, seconds.tolist(), strict=True):
        assert (np.isnan(told)) if given_at is None else told == given_at / 1e9


@given(values=st.lists(st.sampled_from("abcd")), among=st.lists(st.sampled_from("abc")))
def test_a_position_is_that_of_the_first_occurrence(values, among):
    found = position(pd.Series(values, dtype="str"), pd.Series(among, dtype="str"))
    assert found.tolist() == [among.index(v) if v in among else -1 for v in values]


@given(st.lists(st.integers(0, 5)))
def test_adjacent_equal_numbers_are_counted_once(numbers):
    assert distinct(np.sort(np.array(numbers, dtype=np.int64))) == len(set(numbers))


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(1, 4)), max_size=20))
def test_a_run_of_equal_numbers_begins_where_the_number_changes(stretches):
    numbers = np.array([number for number, count in stretches for _ in range(count)], dtype=np.int32)
    expected = [k for k in range(numbers.size) if k == 0 or numbers[k] != numbers[k - 1]]
    assert beginnings(numbers).tolist() == expected
    assert distinct(numbers) == len(expected)
