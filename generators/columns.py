"""Columns of drawn values, and how they become text, JSON and cells of a CSV.

A column may be assembled late: from a pool of few values and an index, or from parts of text. Work that can be done
once per value of the pool, or per literal part, is not done per row; that is where most of the speed comes from.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from generators.streams import Ints

INSTANT_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_ESCAPES = {'"': '\\"', "\\": "\\\\"} | {chr(code): f"\\u{code:04x}" for code in range(32)}
_SPECIAL = r"[\",\r\n]"  # cells with these characters are quoted (RFC 4180, section 2)
_NEEDS_QUOTES = re.compile(_SPECIAL)


@dataclass(frozen=True, slots=True)
class Text:
    """A string for every row: `strings` themselves, or those that `index` selects.

    `bare` strings are known to need no quotes in a CSV.
    """

    strings: pl.Series
    index: Ints | None = None
    bare: bool = False

    def map(self, change: Callable[[pl.Series], pl.Series]) -> "Text":
        """The text with `change` applied to its strings."""
        return Text(change(self.strings), self.index)

    def is_bare(self) -> bool:
        """Whether the strings need no quotes; inspects a pool, never every row."""
        return self.bare or (self.index is not None and not self.strings.str.contains(_SPECIAL).any())

    def series(self) -> pl.Series:
        """One string per row."""
        return self.strings if self.index is None else self.strings.gather(self.index)

    def slice(self, offset: int) -> "Text":
        """Only the row at `offset`."""
        if self.index is None:
            return Text(self.strings.slice(offset, 1), None, self.bare)
        return Text(self.strings, self.index[offset : offset + 1], self.bare)


Part = str | Text


class Column(Protocol):
    """The values of consecutive rows."""

    @property
    def is_json(self) -> bool:
        """Whether the strings are JSON documents, which go into a JSON line unquoted."""
        ...

    @property
    def values(self) -> pl.Series:
        """Int64, Float64, Boolean, String, Date or Datetime (UTC); null where a value is missing."""
        ...

    def text(self, form: str = "") -> Text:
        """The text of every value, in the format of Python's `format` or, for dates, of strftime.

        Raises:
            ValueError: the format does not apply to the values.
        """
        ...

    def json(self) -> Text:
        """Every value as JSON; a missing one is ``null``."""
        ...

    def cells(self) -> pl.Series:
        """Every value as a cell of a CSV, quoted where necessary."""
        ...

    def row(self, offset: int) -> "Column":
        """Only the row at `offset`."""
        ...


@dataclass(frozen=True, slots=True)
class Values:
    """A value for every row or, with `index`, a pool of values and each row's position in it.

    `bare` strings are known to need no quotes in a CSV; numbers, dates and booleans never do.
    """

    pool: pl.Series
    index: Ints | None = None
    is_json: bool = False
    bare: bool = False

    @property
    def values(self) -> pl.Series:
        """See `Column.values`."""
        return self.pool if self.index is None else self.pool.gather(self.index)

    def text(self, form: str = "") -> Text:
        """See `Column.text`; missing values stay missing."""
        if form:
            return Text(formatted(self.pool, form), self.index)
        return Text(as_text(self.pool), self.index, self._is_bare())

    def json(self) -> Text:
        """See `Column.json`; numbers and booleans as they are, everything else in quotes."""
        plain = self.is_json or self.pool.dtype.is_numeric() or self.pool.dtype == pl.Boolean
        strings = as_text(self.pool) if plain else quoted_json(as_text(self.pool))
        strings = strings.fill_null("null") if strings.null_count() else strings
        return Text(strings, self.index, plain and not self.is_json)

    def cells(self) -> pl.Series:
        """See `Column.cells`; each value of the pool is quoted once."""
        strings = as_text(self.pool)
        return Text(strings if self._is_bare() else quoted_cells(strings), self.index).series()

    def _is_bare(self) -> bool:
        return self.bare or not isinstance(self.pool.dtype, pl.String)

    def row(self, offset: int) -> Column:
        """See `Column.row`."""
        if self.index is None:
            return Values(self.pool.slice(offset, 1), None, self.is_json, self.bare)
        return Values(self.pool, self.index[offset : offset + 1], self.is_json, self.bare)


@dataclass(frozen=True, slots=True)
class Joined:
    """Text concatenated from parts, in `rows` rows; a row with a missing part is missing."""

    parts: tuple[Part, ...]
    rows: int
    is_json: bool = False

    @property
    def values(self) -> pl.Series:
        """The strings, each joined from its parts."""
        return join(self.parts, self.rows)

    def text(self, form: str = "") -> Text:
        """The concatenated strings, padded or cut by the format."""
        return Text(formatted(self.values, form) if form else self.values)

    def json(self) -> Text:
        """See `Column.json`; a document as it is, other text in quotes."""
        strings = self.values if self.is_json else quoted_json(self.values)
        return Text(strings.fill_null("null") if strings.null_count() else strings)

    def cells(self) -> pl.Series:
        """See `Column.cells`; the quotes of a document are doubled in its parts, before concatenation."""
        if not self.is_json:
            return self.values if self._is_bare() else quoted_cells(self.values)
        return join(('"', *(_doubled_part(part) for part in self.parts), '"'), self.rows)

    def _is_bare(self) -> bool:
        literals = "".join(part for part in self.parts if isinstance(part, str))
        texts = [part for part in self.parts if isinstance(part, Text)]
        return bool(literals) and not _NEEDS_QUOTES.search(literals) and all(text.is_bare() for text in texts)

    def row(self, offset: int) -> Column:
        """See `Column.row`."""
        parts = tuple(part if isinstance(part, str) else part.slice(offset) for part in self.parts)
        return Joined(parts, 1, self.is_json)


def join(parts: Sequence[Part], rows: int) -> pl.Series:
    """The parts concatenated row by row; a row with a missing part is missing."""
    columns = {str(k): part.series() for k, part in enumerate(parts) if isinstance(part, Text)}
    if not columns:
        return pl.Series(["".join(str(part) for part in parts)]).new_from_index(0, rows)
    if len(parts) == 1:
        return columns["0"]
    pieces = [pl.lit(part) if isinstance(part, str) else pl.col(str(k)) for k, part in enumerate(parts)]
    return pl.DataFrame(columns).select(pl.concat_str(pieces).alias("joined")).to_series()


def as_text(values: pl.Series) -> pl.Series:
    """Values as text, as in an unquoted cell."""
    if isinstance(values.dtype, pl.String):
        return values
    if isinstance(values.dtype, pl.Datetime):
        return values.dt.strftime(INSTANT_FORMAT)
    return values.cast(pl.String)


def formatted(values: pl.Series, form: str) -> pl.Series:
    """Values as formatted text; each distinct value is formatted once.

    Raises:
        ValueError: the format does not apply to the values.
    """
    if values.dtype.is_temporal():
        return values.dt.strftime(form)
    if values.dtype.is_integer() and form.startswith("0") and form.rstrip("d").isdigit():
        return values.cast(pl.String).str.zfill(int(form.rstrip("d")))
    distinct = values.unique().drop_nulls()
    written = [format(value, form) for value in distinct]
    return values.replace_strict(distinct, written, return_dtype=pl.String, default=None)


def quoted_json(strings: pl.Series) -> pl.Series:
    """Strings as JSON strings (RFC 8259, section 7)."""
    if strings.str.contains(r'["\\\x00-\x1f]').any():
        strings = strings.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    return join(('"', Text(strings), '"'), len(strings))


def quoted_cells(strings: pl.Series) -> pl.Series:
    """Strings as cells: quoted as in RFC 4180, and when empty, because an empty cell is a missing value."""
    special = strings.str.contains(_SPECIAL) | (strings.str.len_bytes() == 0)
    if not special.any():
        return strings
    quoted = join(('"', Text(_doubled(strings)), '"'), len(strings))
    return quoted.zip_with(special.fill_null(value=False), strings)


def _doubled_part(part: Part) -> Part:
    if isinstance(part, str):
        return part.replace('"', '""')
    return part if part.bare else part.map(_doubled)


def _doubled(strings: pl.Series) -> pl.Series:
    return strings.str.replace_all('"', '""', literal=True)


def with_missing(column: Column, missing: pl.Series) -> Column:
    """The column with nulls in the rows where `missing` is true."""
    return Values(column.values.set(missing, None), None, column.is_json)


def from_values(values: Sequence[object]) -> Values:
    """A column of Python values: numbers, booleans or text; mixed types become text, nested values JSON documents."""
    import orjson

    present = [value for value in values if value is not None]
    if any(isinstance(value, list | tuple | dict) for value in present):
        encoded = [None if value is None else orjson.dumps(value, default=str).decode() for value in values]
        return Values(pl.Series(encoded, dtype=pl.String), is_json=True)
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Values(pl.Series(values, dtype=pl.Boolean))
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in present if isinstance(value, int)):
        return Values(pl.Series(values, dtype=pl.Int64))
    if kinds and kinds <= {int, float}:
        return Values(pl.Series(values, dtype=pl.Float64, strict=False))
    return Values(pl.Series([None if value is None else _as_text(value) for value in values], dtype=pl.String))


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat else value)
