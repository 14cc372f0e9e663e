"""File formats: how drawn columns become bytes. A new one is a class and its entries in `SUFFIXES` and `FORMATS`."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import polars as pl

from generators.columns import Column, Part, Text, join, quoted_cells

Columns = Mapping[str, Column]
_ROWS_PER_GROUP = 131_072  # of Parquet: fixed, so that the file does not depend on the blocks it was drawn in
_FORMULA = r"^[=+\-@\t\r]"  # spreadsheets run a cell that begins like this as a formula (OWASP, "CSV Injection")


class Sink(Protocol):
    """Writes pieces, given in the order of their rows, to one file."""

    def add(self, piece: bytes) -> None:
        """Write the next piece, which another process has encoded."""
        ...

    def draw(self, columns: Columns) -> None:
        """Encode and write the next block, drawn in this process."""
        ...

    def finish(self) -> None:
        """Write buffered rows and the end of the file."""
        ...


class Format(Protocol):
    """Encodes columns as pieces, in any process, and writes pieces to a file, in one process."""

    def piece(self, columns: Columns) -> bytes:
        """The encoded rows of a block."""
        ...

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """A sink for `out`; `columns` of any block give the names and types."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """A sink for formats whose pieces are simply concatenated; `write` encodes a block."""

    out: BinaryIO
    write: Callable[[Columns, BinaryIO], None]

    def add(self, piece: bytes) -> None:
        """See `Sink.add`."""
        self.out.write(piece)

    def draw(self, columns: Columns) -> None:
        """See `Sink.draw`; encodes straight into the file, which saves copying every block."""
        self.write(columns, self.out)

    def finish(self) -> None:
        """See `Sink.finish`; nothing is buffered."""


@dataclass(frozen=True, slots=True)
class Csv:
    """RFC 4180 in UTF-8; a missing value is an empty cell, an empty text is ``""``.

    With `excel_safe`, text that a spreadsheet would run as a formula is prefixed with an apostrophe.
    """

    excel_safe: bool = False
    line_end: str = "\n"

    def piece(self, columns: Columns) -> bytes:
        """Rows without the header."""
        buffer = io.BytesIO()
        self.write(columns, buffer)
        return buffer.getvalue()

    def write(self, columns: Columns, out: BinaryIO) -> None:
        """Write rows, without the header, to a file."""
        # The cells are already quoted, once per value of a pool: half the time of Polars' own quoting.
        frame = pl.DataFrame({name: self._cells(column) for name, column in columns.items()})
        frame.write_csv(out, include_header=False, line_terminator=self.line_end, quote_style="never")

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """See `Format.sink`; writes the header immediately."""
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
    """One JSON object per line; fields that are JSON documents are nested, missing values are null."""

    def piece(self, columns: Columns) -> bytes:
        """One line per row."""
        buffer = io.BytesIO()
        self.write(columns, buffer)
        return buffer.getvalue()

    @staticmethod
    def write(columns: Columns, out: BinaryIO) -> None:
        """Write one line per row to a file."""
        import orjson

        parts: list[Part] = []
        for index, (name, column) in enumerate(columns.items()):
            parts += [("," if index else "{") + orjson.dumps(name).decode() + ":", column.json()]
        lines = join([*parts, "}"], len(next(iter(columns.values())).values))
        pl.DataFrame({"line": lines}).write_csv(out, include_header=False, quote_style="never")

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:  # noqa: ARG002  # there is no header
        """See `Format.sink`; there is no header."""
        return Stream(out, self.write)


@dataclass(frozen=True, slots=True)
class Parquet:
    """Apache Parquet with typed columns; JSON documents are text."""

    def piece(self, columns: Columns) -> bytes:
        """The block as an Arrow stream."""
        buffer = io.BytesIO()
        self._frame(columns).write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
        return buffer.getvalue()

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """See `Format.sink`; collects pieces into row groups of a fixed size."""
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


# Formats by file name suffix.
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMATS = ("csv", "jsonl", "parquet")
