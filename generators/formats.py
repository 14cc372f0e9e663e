"""File formats: how drawn columns become bytes. Adding one is one class here and its entry in `FORMATS`."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import polars as pl

from generators.columns import Column, Part, Text, join, quoted_cells

Columns = Mapping[str, Column]
_ROWS_PER_GROUP = 131_072  # of Parquet: fixed, so that the file does not depend on how it was drawn
_FORMULA = r"^[=+\-@\t\r]"  # a cell that begins so is run as a formula by spreadsheets (OWASP, "CSV Injection")


class Sink(Protocol):
    """Takes pieces in the order of their rows and writes them to one file."""

    def add(self, piece: bytes) -> None:
        """Write the next piece."""
        ...

    def draw(self, columns: Columns) -> None:
        """Write the next block, which was drawn in this process."""
        ...

    def finish(self) -> None:
        """Write what is still held back, and what comes last."""
        ...


class Format(Protocol):
    """Turns columns into pieces, in any process, and pieces into a file, in one."""

    def piece(self, columns: Columns) -> bytes:
        """The rows of a block."""
        ...

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """Something that writes pieces to `out`; `columns` are any block's, for their names and types."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """A file that is just its pieces, one after the other; `write` writes a block to it."""

    out: BinaryIO
    write: Callable[[Columns, BinaryIO], None]

    def add(self, piece: bytes) -> None:
        """Write it."""
        self.out.write(piece)

    def draw(self, columns: Columns) -> None:
        """Straight into the file: a copy of every block less."""
        self.write(columns, self.out)

    def finish(self) -> None:
        """Nothing is held back."""


@dataclass(frozen=True, slots=True)
class Csv:
    """RFC 4180 in UTF-8; a missing value is an empty cell, an empty text is ``""``.

    With `excel_safe` a text that a spreadsheet would run as a formula gets an apostrophe in front.
    """

    excel_safe: bool = False
    line_end: str = "\n"

    def piece(self, columns: Columns) -> bytes:
        """Rows without header."""
        buffer = io.BytesIO()
        self.write(columns, buffer)
        return buffer.getvalue()

    def write(self, columns: Columns, out: BinaryIO) -> None:
        """Rows without header, to a file."""
        # The cells are quoted already, which is done once for each value of a pool: half the time of Polars' own.
        frame = pl.DataFrame({name: self._cells(column) for name, column in columns.items()})
        frame.write_csv(out, include_header=False, line_terminator=self.line_end, quote_style="never")

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """The header is written at once."""
        out.write((",".join(quoted_cells(pl.Series(list(columns)))) + self.line_end).encode())
        return Stream(out, self.write)

    def _cells(self, column: Column) -> pl.Series:
        if self.excel_safe and not column.values.dtype.is_numeric():
            strings = column.text().series()
            risky = strings.str.contains(_FORMULA).fill_null(value=False)
            if risky.any():
                return quoted_cells(join(("'", Text(strings)), len(strings)).zip_with(risky, strings))
        return column.cells()


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One JSON object a line; a field that is a JSON document is nested, a missing value is null."""

    def piece(self, columns: Columns) -> bytes:
        """Lines."""
        buffer = io.BytesIO()
        self.write(columns, buffer)
        return buffer.getvalue()

    @staticmethod
    def write(columns: Columns, out: BinaryIO) -> None:
        """Lines, to a file."""
        import orjson

        parts: list[Part] = []
        for index, (name, column) in enumerate(columns.items()):
            parts += [("," if index else "{") + orjson.dumps(name).decode() + ":", column.json()]
        lines = join([*parts, "}"], len(next(iter(columns.values())).values))
        pl.DataFrame({"line": lines}).write_csv(out, include_header=False, quote_style="never")

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:  # noqa: ARG002  # there is no header
        """Lines need no header."""
        return Stream(out, self.write)


@dataclass(frozen=True, slots=True)
class Parquet:
    """Apache Parquet with typed columns; JSON documents are text."""

    def piece(self, columns: Columns) -> bytes:
        """An Arrow stream of one block."""
        buffer = io.BytesIO()
        self._frame(columns).write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
        return buffer.getvalue()

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """Collects pieces into row groups of a fixed size."""
        return _RowGroups(self, out, self._frame(columns).clear().to_arrow(compat_level=pl.CompatLevel.oldest()).schema)

    @staticmethod
    def _frame(columns: Columns) -> pl.DataFrame:
        return pl.DataFrame({name: column.values for name, column in columns.items()})


class _RowGroups:
    def __init__(self, form: Parquet, out: BinaryIO, schema: Any) -> None:
        import pyarrow.parquet as pq

        self._form = form
        self._writer = pq.ParquetWriter(out, schema, compression="zstd")
        self._held: list[Any] = []
        self._rows = 0

    def add(self, piece: bytes) -> None:
        import pyarrow as pa

        table = pa.ipc.open_stream(piece).read_all()
        self._held.append(table)
        self._rows += table.num_rows
        while self._rows >= _ROWS_PER_GROUP:
            whole = pa.concat_tables(self._held)
            self._writer.write_table(whole.slice(0, _ROWS_PER_GROUP).combine_chunks())
            self._held = [whole.slice(_ROWS_PER_GROUP)]
            self._rows -= _ROWS_PER_GROUP

    def draw(self, columns: Columns) -> None:
        self.add(self._form.piece(columns))

    def finish(self) -> None:
        import pyarrow as pa

        if self._rows:
            self._writer.write_table(pa.concat_tables(self._held).combine_chunks())
        self._writer.close()


# Format by the ending of a file's name.
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMATS = ("csv", "jsonl", "parquet")
