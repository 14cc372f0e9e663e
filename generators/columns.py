"""A column of drawn values, and how its values are written as text and as JSON."""

from dataclasses import dataclass

import polars as pl

INSTANT_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_ESCAPES = {'"': '\\"', "\\": "\\\\"} | {chr(code): f"\\u{code:04x}" for code in range(32)}


@dataclass(frozen=True, slots=True)
class Column:
    """Values of some consecutive rows: Int64, Float64, Boolean, String, Date or Datetime (UTC).

    With `is_json` the strings are JSON documents: written as they are into a cell, nested into a JSON line.
    """

    values: pl.Series
    is_json: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def text(self) -> pl.Series:
        """Every value as the text of its cell; a missing value stays missing."""
        if self.values.dtype == pl.String:
            return self.values
        if isinstance(self.values.dtype, pl.Datetime):
            return self.values.dt.strftime(INSTANT_FORMAT)
        return self.values.cast(pl.String)

    def json(self) -> pl.Series:
        """Every value as JSON text; a missing value is ``null``."""
        plain = self.is_json or self.values.dtype.is_numeric() or self.values.dtype == pl.Boolean
        text = self.text() if plain else _quoted(self.text())
        return text.fill_null("null") if text.null_count() else text


def _quoted(text: pl.Series) -> pl.Series:
    if text.str.contains(r'["\\\x00-\x1f]').any():
        text = text.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    return join(['"', text, '"'], len(text))


def join(parts: list[str | pl.Series], rows: int) -> pl.Series:
    """Texts and columns of texts, put together row by row; a row with a missing part is missing."""
    columns = {str(k): part for k, part in enumerate(parts) if isinstance(part, pl.Series)}
    if not columns:
        return pl.Series(["".join(str(part) for part in parts)]).new_from_index(0, rows)
    pieces = [pl.col(str(k)) if isinstance(part, pl.Series) else pl.lit(part) for k, part in enumerate(parts)]
    return pl.DataFrame(columns).select(pl.concat_str(pieces).alias("joined")).to_series()


def from_values(values: list[object]) -> Column:
    """A column of Python values; when they are of several types, or nested, they are JSON or text.

    Numbers stay numbers, booleans booleans, text text; nested values become JSON documents.
    """
    import orjson

    present = [value for value in values if value is not None]
    if any(isinstance(value, list | tuple | dict) for value in present):
        encoded = [None if value is None else orjson.dumps(value, default=str).decode() for value in values]
        return Column(pl.Series(encoded, dtype=pl.String), is_json=True)
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Column(pl.Series(values, dtype=pl.Boolean))
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in present if isinstance(value, int)):
        return Column(pl.Series(values, dtype=pl.Int64))
    if kinds and kinds <= {int, float}:
        return Column(pl.Series(values, dtype=pl.Float64, strict=False))
    return Column(pl.Series([None if value is None else _as_text(value) for value in values], dtype=pl.String))


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat else value)
