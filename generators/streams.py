"""Random numbers that depend on the row, not on the order in which rows are drawn.

Every field has streams of its own, keyed by (seed, path, purpose). Word `i` of a stream is a pure function of the key
and `i` (Philox 4x64, a counter-based generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
so any prefix, block size and number of processes gives the same rows.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_WORDS_PER_COUNT = 4
_DIRECT_LIMIT = 65_536  # up to this size a permutation is a table
_ROUNDS = 8


class Stream(NamedTuple):
    """The key of a stream: `purpose` distinguishes several streams of the field `path`."""

    seed: int
    path: str
    purpose: str = ""


@cache
def _key(stream: Stream) -> tuple[int, int]:
    digest = hashlib.sha256(f"{stream.seed}\0{stream.path}\0{stream.purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")


def seed_of(stream: Stream) -> int:
    """A 128-bit seed for another generator, derived from the stream's key."""
    low, high = _key(stream)
    return low | high << 64


def words(stream: Stream, start: int, stop: int, per_row: int = 1) -> Words:
    """The random 64-bit words of rows [start, stop), `per_row` for each row, as a flat array."""
    first, count = start * per_row, (stop - start) * per_row
    generator = np.random.Philox(key=np.array(_key(stream), dtype=np.uint64))
    generator.advance(first // _WORDS_PER_COUNT)
    skip = first % _WORDS_PER_COUNT
    return generator.random_raw(count + skip)[skip:]


def uniform(raw: Words) -> Floats:
    """Words as numbers strictly between 0 and 1, on a grid of 2**-52 symmetric about 0.5; overwrites `raw`.

    The upper 52 bits become the fraction of a number in [1, 2), without conversion or allocation.
    """
    raw >>= np.uint64(12)
    raw |= np.uint64(0x3FF0000000000000)
    numbers: Floats = raw.view(np.float64)
    numbers -= 1.0 - 2.0**-53
    return numbers


def weighted(weights: Sequence[float] | Floats, draws: Floats) -> Ints:
    """For each of `draws` (in (0, 1)) the index at its share of the cumulative weight; never one of weight 0."""
    cumulative = np.cumsum(weights)
    index = np.searchsorted(cumulative, draws * cumulative[-1], side="right")
    chosen: Ints = np.minimum(index, int(np.flatnonzero(weights)[-1])).astype(np.int64)
    return chosen


def permuted(stream: Stream, rows: Ints, size: int) -> Ints:
    """The positions of `rows` (all in [0, size)) in a random permutation of [0, size).

    Small sizes shuffle a table. Large ones use a Feistel network (Black & Rogaway, "Ciphers with arbitrary finite
    domains", 2002): memory does not grow with `size`, and any row can be computed on its own.
    """
    if size <= _DIRECT_LIMIT:
        return _shuffle(stream, size)[rows]
    half = np.uint64(((size - 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << int(half)) - 1)
    keys = words(stream, 0, _ROUNDS)
    landed = rows.astype(np.uint64)
    outside = np.ones(len(landed), dtype=bool)
    while outside.any():
        left, right = landed[outside] >> half, landed[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(right, key) & mask)
        landed[outside] = left << half | right
        outside[outside] = landed[outside] >= size
    return landed.astype(np.int64)


@cache
def _shuffle(stream: Stream, size: int) -> Ints:
    return np.argsort(words(stream, 0, size), kind="stable").astype(np.int64)


def _mixed(value: Words, key: np.uint64) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014); products wrap modulo 2**64 on every machine."""
    value = value + key
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return value ^ value >> np.uint64(31)
