"""File formats: how drawn columns become bytes. A new one is a class and its entries in `SUFFIXES` and `FORMATS`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from generators.columns import Array, Column, join, objects, quoted

Columns = Mapping[str, Column]
_ROWS_PER_GROUP = 131_072  # of Parquet: fixed, so that the file does not depend on the blocks it was drawn in
_FORMULA = tuple("=+-@\t\r")  # spreadsheets run a cell that begins like this as a formula (OWASP, "CSV Injection")


class Sink(Protocol):
    """Writes pieces, given in the order of their rows, to one file."""

    def add(self, piece: bytes) -> None:
        """Write the next piece."""
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
    """A sink for formats whose pieces are simply concatenated."""

    out: BinaryIO

    def add(self, piece: bytes) -> None:
        """See `Sink.add`."""
        self.out.write(piece)

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
        rows = zip(*(self._cells(column) for column in columns.values()), strict=True)
        return "".join([",".join(row) + self.line_end for row in rows]).encode()

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """See `Format.sink`; writes the header immediately."""
        out.write((",".join(map(quoted, columns)) + self.line_end).encode())
        return Stream(out)

    def _cells(self, column: Column) -> Array:
        if self.excel_safe and column.kind not in "if":
            safe = (f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in column.text().filled(""))
            column = Column(objects(safe, len(column)), column.missing)
        return column.cells()


class JsonLines:
    """One JSON object per line; fields that are JSON documents are nested, missing values are null."""

    def piece(self, columns: Columns) -> bytes:
        """One line per row."""
        import orjson

        parts: list[str | Column] = []
        for index, (name, column) in enumerate(columns.items()):
            parts += [("," if index else "{") + orjson.dumps(name).decode() + ":", column.json()]
        return "".join(join([*parts, "}\n"], len(column)).values).encode()

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:  # noqa: ARG002  # there is no header
        """See `Format.sink`; there is no header."""
        return Stream(out)


class Parquet:
    """Apache Parquet with typed columns; JSON documents are text."""

    def piece(self, columns: Columns) -> bytes:
        """The block as an Arrow stream."""
        import pyarrow as pa

        table, out = self._table(columns), pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
        return bytes(out.getvalue())

    def sink(self, out: BinaryIO, columns: Columns) -> Sink:
        """See `Format.sink`; collects pieces into row groups of a fixed size."""
        return _RowGroups(out, self._table(columns).schema)

    @staticmethod
    def _table(columns: Columns) -> Any:
        import pyarrow as pa

        kinds = {"O": pa.string()}
        return pa.table({
            name: pa.array(column.values, kinds.get(column.kind), mask=column.missing)
            for name, column in columns.items()
        })  # fmt: skip


class _RowGroups:
    def __init__(self, out: BinaryIO, schema: Any) -> None:
        import pyarrow.parquet as pq

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

    def finish(self) -> None:
        import pyarrow as pa

        if self._rows:
            self._writer.write_table(pa.concat_tables(self._held).combine_chunks())
        self._writer.close()


# Formats by file name suffix.
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
FORMATS = ("csv", "jsonl", "parquet")
