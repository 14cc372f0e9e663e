"""Untrusted tables: read within bounds, and checked before anything is computed.

A dictionary turns 2 MB into 100 GB of equal texts, so texts stay dictionaries until the size of the whole is known.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness import reading
from harness.model.errors import ConfigError
from harness.store.checks import Column, columns, problem_of_text
from harness.store.folder import DAMAGED, MOST_RECORDS, RunFolder
from harness.store.parquet_pages import decompressed_bytes

_LEAST_BYTES = 2**28
_EXPANSION = 100  # decoded bytes per byte of the file; real tables have 5 to 30
_BATCH = 2**17  # rows
_DICTIONARY_BYTES = 2**24  # of a batch's texts
_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def schema(kind: type) -> pa.Schema:
    """The schema of a kind's table: one column per field, in their order; a mapping is a JSON string."""
    return pa.schema([pa.field(column.name, _ARROW[column.kind]) for column in columns(kind)])


def write(out: BinaryIO, columns: pa.Schema, parts: Iterable[pa.Table]) -> None:
    """Write a table that is small, and quick to read in batches.

    A text that is repeated within a batch is stored once, so that readers need not look for equal ones; whole numbers,
    most of which are instants, are stored as differences.
    """
    texts = [field.name for field in columns if field.type == pa.string()]
    numbers = [field.name for field in columns if field.type == pa.int64()]
    with pq.ParquetWriter(
        out, columns, compression="zstd", use_dictionary=texts, dictionary_pagesize_limit=_DICTIONARY_BYTES,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    ) as table:  # fmt: skip
        for part in parts:
            table.write_table(part, row_group_size=_BATCH)


def read_table(folder: RunFolder, name: str, kind: type) -> pa.Table:
    """The whole table of a kind in the file `name`.

    Raises:
        ConfigError: it is damaged, not such a table, or a small file that expands to gigabytes.
    """
    wanted = schema(kind)
    with batches(folder, name, kind, wanted.names) as (found, _):
        parts = list(found)
    return pa.Table.from_batches(parts, wanted)


@contextmanager
def batches(
    folder: RunFolder, name: str, kind: type, names: list[str], dictionaries: Collection[str] = ()
) -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
    """The checked batches of a table's columns `names`, and the number of rows; `dictionaries` stay such.

    Raises:
        ConfigError: as `read_table`, also while the batches are read.
    """
    path = folder.path / name
    try:
        with folder.open_file(name, MOST_RECORDS) as source:
            most = _check_pages(source, path)
            texts = {field.name for field in schema(kind) if field.type == pa.string()}
            given = pq.read_schema(source)
            _check_columns(given, kind, names, path)
            present = [name for name in names if name in given.names]
            with _opened(source, [name for name in present if name in texts]) as table:
                bounded = _bounded(table, present, most, path)
                checked = (_decoded(check(each, kind, path), dictionaries) for each in bounded)
                yield (_completed(each, kind, names) for each in checked), table.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, error) from error


def check_expansion(path: Path) -> None:
    """Check that any Parquet file does not expand to gigabytes from a few megabytes.

    Raises:
        OSError: it can't be opened.
        ConfigError: it does, or is damaged.
    """
    with reading.open_file(path) as source:
        try:
            most = _check_pages(source, path)
            given = pq.read_schema(source)
            texts = [field.name for field in given if _is_text(field.type)]
            with _opened(source, texts) as table:
                for _ in _bounded(table, given.names, most, path):
                    pass
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(path, error) from error


def check(rows: pa.RecordBatch | pa.Table, kind: type, source: object) -> Any:
    """The rows of a kind once their values are known to be such records'; missing ones have their default.

    Raises:
        ConfigError: naming the first column with a value that no record has.
    """
    try:
        rows.validate(full=True)  # texts are UTF-8
    except pa.ArrowInvalid as error:
        raise damaged(source, error) from error
    for column in columns(kind):
        place = rows.schema.get_field_index(column.name)
        if place < 0:
            continue
        values = rows.column(place)
        if values.null_count and not column.optional:
            if not isinstance(column.default, str | int | float):
                raise _wrong(source, column.name, "is missing")
            values = pc.fill_null(_plain(values), column.default)
            rows = rows.set_column(place, column.name, values)
        if problem := _problem(column, values):
            raise _wrong(source, column.name, problem)
    return rows


def _problem(column: Column, values: pa.Array | pa.ChunkedArray) -> str:
    if column.kind is int and len(values):
        low, high = pc.min_max(values).as_py().values()
        if low is not None and not column.bounds[0] <= low <= high <= column.bounds[1]:
            return "is out of range"
    if column.choices or column.is_mapping:
        texts = pc.unique(_plain(values)).to_pylist()
        return next(filter(None, (problem_of_text(column, text) for text in texts)), "")
    return ""


def _decoded(rows: pa.RecordBatch, dictionaries: Collection[str]) -> pa.RecordBatch:
    names = rows.schema.names
    kept = (rows[name] if name in dictionaries else _plain(rows[name]) for name in names)
    return pa.RecordBatch.from_arrays(list(kept), names)


def _completed(rows: pa.RecordBatch, kind: type, names: list[str]) -> pa.RecordBatch:
    """The columns `names`; the default for one that older versions do not write."""
    missing = {column.name: column.default for column in columns(kind) if column.name not in rows.schema.names}
    if not missing.keys() & set(names):
        return rows
    filled = [
        rows[name] if name not in missing else pa.array([missing[name]] * len(rows), schema(kind).field(name).type)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(filled, names)


def _plain(values: pa.Array | pa.ChunkedArray) -> Any:
    """The values without a dictionary."""
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def damaged(source: object, error: Exception) -> ConfigError:
    """What pyarrow says about a damaged file, in one sentence."""
    return ConfigError(f"{source} is damaged: {next(iter(str(error).splitlines()), type(error).__name__)}", DAMAGED)


def _wrong(source: object, name: str, problem: str) -> ConfigError:
    return ConfigError(f"{source}: '{name}' {problem} in a row", DAMAGED)


def _check_columns(given: pa.Schema, kind: type, names: list[str], path: object) -> None:
    found = {field.name: field.type for field in given}
    defaults = {column.name for column in columns(kind) if isinstance(column.default, str | int | float)}
    for field in schema(kind):
        if field.name not in names:
            continue
        of = found.get(field.name)
        if of is None:
            if field.name not in defaults:
                raise ConfigError(f"{path} has no column '{field.name}'", DAMAGED)
        elif (of.value_type if pa.types.is_dictionary(of) else of) != field.type:
            raise ConfigError(f"{path}: the column '{field.name}' is of type {of}, not {field.type}", DAMAGED)


def _check_pages(source: BinaryIO, path: object) -> int:
    """Check what the file claims before anything is decompressed; returns how large it may be when it is decoded."""
    most = max(_LEAST_BYTES, _EXPANSION * source.seek(0, os.SEEK_END))
    if decompressed_bytes(source, path) > most:
        raise _expands(path)
    return most


def _opened(source: BinaryIO, dictionaries: list[str]) -> pq.ParquetFile:
    """A table whose columns `dictionaries` are read as such; Arrow would keep all it read until the end."""
    return pq.ParquetFile(source, read_dictionary=dictionaries, pre_buffer=False)


def _is_text(kind: pa.DataType) -> bool:
    of = pa.types
    texts = (of.is_string, of.is_large_string, of.is_string_view, of.is_binary, of.is_large_binary, of.is_binary_view)
    return any(is_such(kind) for is_such in texts)


def _bounded(table: pq.ParquetFile, names: list[str], most: int, path: object) -> Iterator[pa.RecordBatch]:
    """The batches, until their decoded size exceeds `most`."""
    decoded = rows = 0
    if 8 * table.metadata.num_rows > most:
        raise _expands(path)
    try:
        # Each of Arrow's own threads would keep the memory that it once needed.
        for batch in _ahead(table.iter_batches(_BATCH, columns=names, use_threads=False)):
            decoded += sum(map(_decoded_bytes, batch.columns))
            if decoded > most:
                raise _expands(path)
            rows += len(batch)
            yield batch
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, error) from error
    if rows != table.metadata.num_rows:
        raise ConfigError(f"{path} has {rows:,} of {table.metadata.num_rows:,} rows", DAMAGED)


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, of which a thread decompresses the next one while the last one is used."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _decoded_bytes(column: pa.Array) -> int:
    """The size of a column with its dictionary written out."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + 4 * len(column)


def _expands(path: object) -> ConfigError:
    return ConfigError(f"{path} expands to far more than its size", DAMAGED)
