import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators import streams
from generators.streams import Stream

MASK = 2**64 - 1


def philox(counter, key, rounds=10):
    """Philox 4x64 as its paper defines it."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        low, high = c[0] * 0xD2E7470EE14C6C93, c[2] * 0xCA5A826395121157
        c = [(high >> 64) ^ c[1] ^ k[0], high & MASK, (low >> 64) ^ c[3] ^ k[1], low & MASK]
        k = [(k[0] + 0x9E3779B97F4A7C15) & MASK, (k[1] + 0xBB67AE8584CAA73B) & MASK]
    return c


def test_the_reference_agrees_with_the_published_vector():
    # The first of the known answers that come with Random123.
    assert philox([0] * 4, [0] * 2)[:2] == [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC]


def test_word_i_is_the_reference_at_counter_1_plus_i_by_4():
    stream = Stream(5, "field", "purpose")
    found = streams.words(stream, 0, 40)
    key = streams._key(stream)
    expected = [word for block in range(10) for word in philox([1 + block, 0, 0, 0], key)]
    assert found.tolist() == expected


@settings(deadline=None)
@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 7))
def test_any_range_equals_the_same_rows_of_the_whole(a, b, per_row):
    start, stop = sorted((a, b))
    whole = streams.words(Stream(1, "x"), 0, 500, per_row)
    assert np.array_equal(streams.words(Stream(1, "x"), start, stop, per_row), whole[start * per_row : stop * per_row])


def test_streams_of_other_fields_purposes_and_seeds_differ():
    names = [Stream(1, "a"), Stream(2, "a"), Stream(1, "b"), Stream(1, "a", "null"), Stream(1, "a\0null")]
    assert len({streams.words(name, 0, 1)[0] for name in names}) == len(names)


def test_uniforms_are_open_symmetric_and_on_their_grid():
    ends = streams.uniform(np.array([0, MASK], dtype=np.uint64))
    assert ends.tolist() == [2.0**-53, 1 - 2.0**-53]
    words = streams.words(Stream(1, "x"), 0, 1000)
    expected = [((int(word) >> 12) + 0.5) / 2**52 for word in words]
    assert streams.uniform(words.copy()).tolist() == expected


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 65_536, 65_537, 100_003])
def test_a_permutation_hits_every_place_once(size):
    landed = streams.permuted(Stream(3, "x"), np.arange(size), size)
    assert np.array_equal(np.sort(landed), np.arange(size))


@settings(deadline=None)
@given(st.integers(1, 2**52), st.lists(st.integers(0, 2**52), min_size=1, max_size=20))
def test_a_permutation_stays_inside_and_apart_however_large(size, rows):
    rows = np.array(sorted({row % size for row in rows}))
    landed = streams.permuted(Stream(3, "x"), rows, min(size, 2**52)) if size > 65_536 else None
    if landed is not None:
        assert landed.min() >= 0
        assert landed.max() < size
        assert len(set(landed.tolist())) == len(rows)


def test_a_large_permutation_looks_random():
    landed = streams.permuted(Stream(3, "x"), np.arange(20_000), 10**9)
    correlation = np.corrcoef(np.arange(20_000), landed)[0, 1]
    assert abs(correlation) < 0.03
    assert abs(landed.mean() / 10**9 - 0.5) < 0.01
