"""Reading spans, by far the largest table, in batches, so that no text is held twice.

Rows are sorted by run and step: comparing neighbours is enough to number runs and steps.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harness.model.phases import RUN

_REPEATED = ("phase", "task", "node", "reason")
_INSTANTS = ("started_at", "ended_at")
_BLOCK = 2**20  # rows
_CODEC = pa.Codec("zstd", 1)
COLUMNS = ("run", "step", *_REPEATED, *_INSTANTS)
DICTIONARIES = ["run", "step", *_REPEATED]


def numbered(batches: Iterable[pa.RecordBatch], count: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Join batches of the sorted table, each with all COLUMNS, `count` rows in all.

    Returns:
        The spans: run and step (int32, positions of their names), phase, task, node and reason (categories), started_at
        and ended_at (`Int64`). The runs: run (their ids), name ("" where none was recorded), which is the task of the
        span of a run as a whole and missing there. And the names of steps in blocks, in their order ("" for a run as a
        whole): count, texts (a compressed Arrow stream of one column).

    Raises:
        ValueError: the rows are not sorted by run.
    """
    ids: list[pa.Array] = []
    named: list[pd.Series[str]] = []  # of the spans of runs as a whole, by the number of the run
    names = _Blocks()
    run, step = _Sorted(count, ids.append), _Sorted(count, names.append)
    repeated = {name: _Repeated(count) for name in _REPEATED}
    instants = {name: _Instants(count) for name in _INSTANTS}
    low = 0
    for batch in batches:
        new = run.add(low, batch["run"], np.zeros(len(batch), dtype=bool))
        step.add(low, batch["step"], new)
        whole = _is(batch["phase"], RUN) & _is(batch["step"], "")
        texts = batch["task"].filter(pa.array(whole)).cast(pa.string()).fill_null("")
        named.append(pd.Series(texts, run.number[low : low + len(batch)][whole], dtype="str"))
        task = _without(batch["task"], whole)  # as many names as runs would be no categories
        for name, column in (repeated | instants).items():
            column.add(low, task if name == "task" else batch[name])
        low += len(batch)
    run_ids = (
        pa.concat_arrays(ids) if ids else pa.array([], pa.string())
    )  # pieces would be joined wherever some are taken
    if not _distinct(run_ids):
        raise ValueError("the spans of a run are not adjacent")
    columns = {
        "run": run.number,
        "step": step.number,
        **{name: repeated.pop(name).categories() for name in _REPEATED},
        **{name: pd.arrays.IntegerArray(column.values, column.missing) for name, column in instants.items()},
    }
    run_names = pd.concat(named) if named else pd.Series([], dtype="str")
    first = run_names[~run_names.index.duplicated()].reindex(range(len(run_ids)), fill_value="")
    runs = pd.DataFrame({"run": pd.Series(run_ids, dtype="str"), "name": first}, copy=False)
    return pd.DataFrame(columns, copy=False), runs, names.frame()


def _distinct(texts: pa.Array) -> bool:
    """Whether no text comes twice; sealed tables are sorted, which takes no table of all texts to see."""
    return bool(pc.all(pc.less(texts[:-1], texts[1:])).as_py() or pc.count_distinct(texts).as_py() == len(texts))


class _Sorted:
    """A column of adjacent equal texts: a number per row; `keep` is given each text once."""

    def __init__(self, count: int, keep: Callable[[pa.Array], None]) -> None:
        self.number = np.empty(count, dtype=np.int32)
        self._keep = keep
        self._last: tuple[Any, int] = (None, -1)

    def add(self, low: int, column: pa.Array, new: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Append a batch; a row that is `new` already gets a new number even if its text is equal."""
        if not len(column):
            return new
        texts = _encoded(column)
        code, (text, last) = texts.indices.to_numpy(), self._last
        new[1:] |= code[1:] != code[:-1]
        new[0] |= last < 0 or column[0].as_py() != text
        self._keep(texts.dictionary.take(pa.array(code[new])))
        number = np.cumsum(new, dtype=np.int32) + np.int32(last)
        self.number[low : low + number.size] = number
        self._last = column[-1].as_py(), int(number[-1])
        return new


class _Blocks:
    """A growing column of very many texts that are seldom read, compressed."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._counts: list[int] = []

    def append(self, texts: pa.Array) -> None:
        """Append texts, none of them missing, as one block."""
        out, batch = pa.BufferOutputStream(), pa.record_batch({"texts": texts})
        with pa.ipc.new_stream(out, batch.schema, options=pa.ipc.IpcWriteOptions(compression=_CODEC)) as stream:
            stream.write_batch(batch)
        self._blocks.append(out.getvalue().to_pybytes())
        self._counts.append(len(texts))

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({"count": np.array(self._counts, dtype=np.int64), "texts": self._blocks})


class _Repeated:
    """A column of repeated texts as category codes."""

    def __init__(self, count: int) -> None:
        self._codes: NDArray[np.signedinteger[Any]] = np.empty(count, dtype=np.int8)
        self._known: dict[str, int] = {}

    def add(self, low: int, column: pa.Array) -> None:
        texts = _encoded(column)
        at = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        there = np.flatnonzero(np.bincount(at + 1, minlength=1)[1:])  # a batch may know texts that none of its rows has
        code = np.full(len(texts.dictionary) + 1, -1)
        code[there] = [
            self._known.setdefault(text, len(self._known)) for text in texts.dictionary.take(there).to_pylist()
        ]
        least = np.min_scalar_type(-len(self._known) - 1)
        if least.itemsize > self._codes.itemsize:
            self._codes = self._codes.astype(least)
        self._codes[low : low + at.size] = code.astype(self._codes.dtype)[at]

    def categories(self) -> pd.Categorical:
        """Categories in alphabetical order; -1 for missing values."""
        names = sorted(self._known)
        place = {name: k for k, name in enumerate(names)}
        order = np.array([*(place[name] for name in self._known), -1], dtype=self._codes.dtype)
        for low in range(0, self._codes.size, _BLOCK):
            part = self._codes[low : low + _BLOCK]
            part[:] = order[part]
        return pd.Categorical.from_codes(self._codes, pd.Index(names, dtype="str"))


class _Instants:
    """A column of nanoseconds (19 digits, too many for a float), and a mask of missing ones."""

    def __init__(self, count: int) -> None:
        self.values = np.empty(count, dtype=np.int64)
        self.missing = np.empty(count, dtype=bool)

    def add(self, low: int, column: pa.Array) -> None:
        here = slice(low, low + len(column))
        self.values[here] = column.fill_null(0).to_numpy(zero_copy_only=False)
        self.missing[here] = column.is_null().to_numpy(zero_copy_only=False)


def _is(column: pa.Array, text: str) -> NDArray[np.bool_]:
    """Per row, none of which is missing: it is this text."""
    texts = _encoded(column)
    return np.asarray(texts.indices.to_numpy() == texts.dictionary.index(text).as_py(), dtype=np.bool_)


def _without(column: pa.Array, chosen: NDArray[np.bool_]) -> pa.DictionaryArray:
    """The column with the chosen rows missing."""
    texts = _encoded(column)
    left = pc.if_else(pa.array(chosen), pa.scalar(None, texts.indices.type), texts.indices)
    return pa.DictionaryArray.from_arrays(left, texts.dictionary)


def _encoded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
