"""Columns of frames as arrays, and positions in them."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_BLOCK = 2**20  # rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Looked = TypeVar("Looked", bound=np.generic)


def floats(frame: pd.DataFrame, name: str) -> Floats:
    """A numeric column as a read-only array; missing values are NaN."""
    if frame[name].dtype == np.float64:
        return frame[name].to_numpy()
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def after(instants: "pd.Series[int]", start_at: int) -> Floats:
    """UTC nanoseconds (Int64) as seconds after `start_at`; subtracted as integers, so that no digit is lost."""
    missing = instants.isna().to_numpy(dtype=bool)
    integers = instants.to_numpy(dtype=np.int64, na_value=start_at, copy=True)
    integers -= start_at
    seconds: Floats = integers / 1e9
    seconds[missing] = np.nan
    return seconds


def position(values: "pd.Series[str]", among: "pd.Series[str]") -> Ints:
    """The position of each value's first occurrence in `among`; -1 where it is missing."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    found = pc.index_in(pa.array(values), value_set=pa.array(among))
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def within(values: "pd.Series[str]", among: Iterable[str]) -> Bools:
    """Whether each value is `among` these; missing ones are not. Pandas' `isin` makes objects of all of them."""
    if not len(values):
        return np.zeros(0, dtype=np.bool_)
    known = pa.array(among if isinstance(among, pd.Series) else [*among], pa.string())
    return np.asarray(pc.is_in(pa.array(values, pa.string()), value_set=known, skip_nulls=True).to_numpy(False))


class Pattern(Protocol):
    """What is searched for in texts: a regular expression, or a row of the catalogue."""

    def search(self, text: str, /) -> object | None:
        """What was found; none where it is not there."""
        ...


def containing(texts: "pd.Series[str]", *patterns: Pattern) -> Bools:
    """Whether a pattern is found in each text; missing ones are "". Equal texts, as events repeat them, are one."""
    column = pa.array(texts, pa.string()).fill_null("")
    # A large column comes in chunks, each of which would have a dictionary of its own.
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    known = whole.dictionary_encode()
    each = known.dictionary.to_pylist()
    found = np.array([any(one.search(text) is not None for one in patterns) for text in each], dtype=np.bool_)
    return np.asarray(found[known.indices.to_numpy()], dtype=np.bool_)


def category(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """A column of repeated texts as categories in alphabetical order, among them "", also for missing values."""
    known = column.astype("category").cat
    names = sorted({"", *known.categories})
    place = {name: k for k, name in enumerate(names)}
    new = np.array([*(place[name] for name in known.categories), place[""]], np.min_scalar_type(-len(names) - 1))
    codes = looked_up(new, known.codes.to_numpy())  # the last one is that of missing values
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(names, dtype="str")), column.index)


def blocks(count: int) -> Iterator[slice]:
    """Slices of very many rows, in order: intermediate columns of all rows would be as large as the rows."""
    return (slice(low, min(low + _BLOCK, count)) for low in range(0, count, _BLOCK))


def looked_up(values: NDArray[Looked], at: "NDArray[np.integer[Any]]") -> NDArray[Looked]:
    """``values[at]``, in blocks: NumPy would make 64-bit positions of all of `at`, of codes eight times their size."""
    found = np.empty(at.size, dtype=values.dtype)
    for here in blocks(at.size):
        found[here] = values[at[here]]
    return found


def summed(numbers: "NDArray[np.integer[Any]]", weights: Floats, chosen: Bools, count: int) -> Floats:
    """The sum of the chosen weights by number, from 0 to `count` - 1; in blocks, as `looked_up`."""
    sums = np.zeros(count)
    for here in blocks(numbers.size):
        kept = chosen[here]
        sums += np.bincount(numbers[here][kept], weights[here][kept], count)
    return sums


def occurring(codes: "NDArray[np.integer[Any]]", count: int) -> Bools:
    """Whether each of the codes from 0 to `count` - 1 occurs; -1 may."""
    found = np.zeros(count + 1, dtype=np.bool_)
    for here in blocks(codes.size):
        found[codes[here]] = True
    return found[:-1]


def evenly(count: int, most: int) -> Ints:
    """At most `most` evenly spaced positions out of `count`, the first and the last included."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(most, count)).astype(np.int64))


def distinct(numbers: "NDArray[np.integer[Any]]") -> int:
    """The number of distinct values, of which equal ones are adjacent."""
    return int(np.count_nonzero(numbers[1:] != numbers[:-1])) + 1 if numbers.size else 0


def beginnings(numbers: "NDArray[np.integer[Any]]") -> Ints:
    """The first position of each run of equal, adjacent values."""
    return np.flatnonzero(begins(numbers))


def begins(numbers: "NDArray[np.integer[Any]]") -> Bools:
    """Whether each value is the first of equal, adjacent ones."""
    new = np.ones(numbers.size, dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    return new


def shifted(frame: pd.DataFrame, start_at: int, **names: str) -> pd.DataFrame:
    """The frame with columns of UTC nanoseconds as seconds after `start_at`, under new names."""
    columns = {new: after(frame[old], start_at) for old, new in names.items()}
    return frame.drop(columns=list(names)).assign(**columns).reset_index(drop=True)
