import re

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.timeline.columns import after, beginnings, containing, distinct, evenly, position, within


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


def test_a_pattern_is_searched_in_each_text_and_missing_ones_are_empty():
    texts = pd.Series(["quota exceeded", None, "fine", "quota exceeded"], dtype="str")
    assert containing(texts, re.compile("quota")).tolist() == [True, False, False, True]
    assert containing(texts, re.compile("^$")).tolist() == [False, True, False, False]


def test_no_texts_are_found_nowhere():
    nothing, some = pd.Series([], dtype="str"), pd.Series(["a"], dtype="str")
    assert containing(nothing, re.compile("a")).size == position(nothing, some).size == within(nothing, some).size == 0


def test_a_column_in_chunks_is_searched_as_a_whole():
    texts = pd.concat([pd.Series(["a", "b"], dtype="str"), pd.Series(["b", None, "a"], dtype="str")])
    assert pa.array(texts).num_chunks == 2
    assert containing(texts, re.compile("a")).tolist() == [True, False, False, False, True]
