"""Columns of drawn values, and how they become text, JSON and cells of a CSV."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from generators.streams import Bools, Ints

Array = NDArray[Any]
_SPECIAL = '",\r\n'  # cells with these characters are quoted (RFC 4180, section 2)
_WORDS = np.array(["false", "true"], dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The values of consecutive rows.

    Attributes:
        values: shape (n,): int64, float64, bool, datetime64[D], [s] or [ms] (UTC), or text, as objects.
        missing: the rows without a value, whatever `values` holds there; none where every row has one.
        is_json: the texts are JSON documents, which go into a JSON line unquoted.
    """

    values: Array
    missing: Bools | None = None
    is_json: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> str:
        """NumPy's letter of the type: i, f, b, M for dates and times, O for text."""
        return self.values.dtype.kind

    def to_list(self) -> list[Any]:
        """The values as Python's; None where one is missing."""
        return list(self.filled(None).tolist())

    def filled(self, value: object) -> Array:
        """The values, with this one where one is missing."""
        if self.missing is None:
            return self.values
        filled = self.values.astype(object) if value is None else self.values.copy()
        filled[self.missing] = value
        return filled

    def take(self, rows: Ints | Bools | slice) -> "Column":
        """The column of these rows."""
        return replace(self, values=self.values[rows], missing=None if self.missing is None else self.missing[rows])

    def text(self, form: str = "") -> "Column":
        """The text of every value, in the format of Python's `format` or, for dates, of strftime.

        Raises:
            ValueError: the format does not apply to the values.
        """
        if not form and self.kind == "O":
            return self
        strings = np.full(len(self), None)
        there = slice(None) if self.missing is None else ~self.missing
        strings[there] = _formatted(self.values[there], form) if form else _written(self.values[there])
        return Column(strings, self.missing)

    def json(self) -> "Column":
        """Every value as JSON; a missing one is ``null``."""
        strings = self.text().filled("")
        if not self.is_json and self.kind in "OM":
            strings = objects(map(encode_basestring, strings), len(self))
        return Column(Column(strings, self.missing).filled("null"), is_json=True)

    def cells(self) -> Array:
        """Every value as a cell of a CSV, quoted where necessary: also when it is empty, for that is a missing one."""
        strings = self.text()
        if self.kind == "O":
            there = strings.values if self.missing is None else strings.values[~self.missing]
            whole = "".join(there)
            if not all(there) or any(each in whole for each in _SPECIAL):
                strings = Column(objects(map(quoted, strings.filled("")), len(self)), self.missing)
        return strings.filled("")


def objects(values: Iterable[object], count: int) -> Array:
    """So many values as objects."""
    return np.fromiter(values, dtype=object, count=count)


def texts(cells: Sequence[str | None]) -> Column:
    """A column of text; None is missing."""
    missing = np.array([cell is None for cell in cells], dtype=bool)
    return Column(objects(cells, len(cells)), missing if missing.any() else None)


def column_of(values: Sequence[object], kind: "np.dtype[Any]") -> Column:
    """A column of Python values of one type; None is missing."""
    missing = np.array([value is None for value in values], dtype=bool)
    blank = np.zeros(1, dtype=kind)[0]
    found = np.array([blank if value is None else value for value in values], dtype=kind)
    return Column(found, missing if missing.any() else None)


def from_values(values: Sequence[object]) -> Column:
    """A column of Python values: numbers, booleans or text; mixed types become text, nested values JSON documents."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, list | tuple | dict) for value in present):
        encoded = [None if value is None else orjson.dumps(value, default=str).decode() for value in values]
        return replace(texts(encoded), is_json=True)
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return column_of(values, np.dtype(bool))
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in present if isinstance(value, int)):
        return column_of(values, np.dtype(np.int64))
    if kinds and kinds <= {int, float}:
        return column_of(values, np.dtype(np.float64))
    return texts([None if value is None else _as_text(value) for value in values])


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat else value)


def with_missing(column: Column, missing: Bools) -> Column:
    """The column without values in the rows where `missing` is true, too."""
    return replace(column, missing=missing if column.missing is None else column.missing | missing)


def missing_in(columns: Iterable[Column]) -> Bools | None:
    """The rows in which a value of any column is missing; none where there are none."""
    masks = [column.missing for column in columns if column.missing is not None]
    return np.logical_or.reduce(masks) if masks else None


def join(parts: Sequence[str | Column], rows: int) -> Column:
    """The parts, literal or columns of text, concatenated row by row; a row with a missing part is missing."""
    columns = [part for part in parts if isinstance(part, Column)]
    strings = (repeat(part, rows) if isinstance(part, str) else part.filled("") for part in parts)
    return Column(objects(map("".join, zip(*strings, strict=True)), rows), missing_in(columns))


def quoted(cell: str) -> str:
    """A cell, in quotes where it is empty or has special characters."""
    if cell and not any(each in cell for each in _SPECIAL):
        return cell
    return '"' + cell.replace('"', '""') + '"'


def _written(values: Array) -> Array:
    """Values as text, as in an unquoted cell."""
    match values.dtype.kind:
        case "b":
            return _WORDS[values.astype(np.int64)]
        case "M":
            instants = np.datetime_as_string(values).astype(object)
            return instants if values.dtype == np.dtype("datetime64[D]") else instants + "Z"
        case _:
            return objects(map(repr, values.tolist()), len(values))


def _formatted(values: Array, form: str) -> Array:
    """Values as formatted text; each distinct value is formatted once."""
    distinct, place = np.unique(values, return_inverse=True)
    write = (lambda value: value.strftime(form)) if values.dtype.kind == "M" else (lambda value: format(value, form))
    return objects(map(write, distinct.tolist()), len(distinct))[place]
