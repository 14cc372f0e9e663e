"""Sealing: JSON lines become Parquet tables whose schemas are derived from the records.

Sealing twice gives the same bytes as once. The JSON lines stay: they are the records, the tables are an index.
"""

import io
import os
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from harness.model.errors import ConfigError
from harness.model.records import Event, Node, Sample, Span, Submission
from harness.store import spans
from harness.store.folder import KINDS, TABLES, RunFolder
from harness.store.prices import kept_prices, priced

# Of records with the same key the last one counts, and rows are sorted by key; kinds without a key keep every record.
_KEYS: Mapping[type, tuple[str, ...]] = {
    Submission: ("seq",),
    Span: ("run", "step", "phase", "attempt"),
    Node: ("name",),
}
STEPS = "steps"  # of `load`
_LINES_SIZE = b"pipeswarm.lines_size"  # of a table: bytes of the lines that it was made of
_SORT: Mapping[type, tuple[str, ...]] = {Sample: ("at", "metric", "labels"), Event: ("at", "kind", "object", "reason")}


def schema(kind: type) -> pa.Schema:
    """The table's schema: one column per field, in their order; a mapping is a JSON string."""
    hints = get_type_hints(kind)
    return pa.schema([pa.field(f.name, _arrow_type(hints[f.name])) for f in fields(kind)])


def _arrow_type(hint: Any) -> pa.DataType:
    if isinstance(hint, UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    if hint is bool:
        return pa.bool_()
    if hint is int:
        return pa.int64()
    if hint is float:
        return pa.float64()
    if hint is str or (isinstance(hint, type) and issubclass(hint, Enum)) or not isinstance(hint, type):
        return pa.string()
    raise TypeError(f"a record's field can't have the type {hint}")


def seal(folder: RunFolder) -> Mapping[str, int]:
    """Write ``tables/*.parquet`` and return the number of dropped torn lines by kind.

    A table made of the lines that are there now, or whose lines are gone, is left alone.

    Raises:
        ConfigError: the folder can't be written.
    """
    directory = folder.path / TABLES
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{directory} can't be created: {error.strerror}", "give a writable run folder") from error
    torn: dict[str, int] = {}
    for kind, name in KINDS.items():
        if _sealed(folder, kind) is not None:
            continue
        size = _lines_size(folder, kind)
        target = directory / f"{name}.parquet"
        frame, torn[name] = _read_lines(folder, kind)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        table = pa.Table.from_pandas(frame, schema=schema(kind), preserve_index=False)
        table = table.replace_schema_metadata({_LINES_SIZE: str(size)})
        pq.write_table(table, partial, compression="zstd")
        partial.replace(target)
    return torn


def load(folder: RunFolder) -> dict[str, pd.DataFrame]:
    """The frames by kind ("submissions", "spans", …), from the sealed tables, or from the lines of an unsealed run.

    Instants stay integer nanoseconds; a missing one is pandas' `<NA>` (columns are `Int64`). Of spans, by far the
    largest table, only the columns that the analysis reads are loaded; the names of their steps are a table of their
    own, "steps" (`harness.store.spans.numbered`). Given prices replace recorded ones (`harness.store.prices`).
    """
    # Batch after batch is freed: this pool reuses the memory for the next batch, Arrow's own returns it first.
    pa.set_memory_pool(pa.system_memory_pool())
    frames: dict[str, pd.DataFrame] = {}
    for kind, name in KINDS.items():
        if kind is Span:
            frames[name], frames[STEPS] = _spans(folder)
        else:
            frames[name] = read(folder, kind)
    frames["nodes"] = priced(frames["nodes"], kept_prices(folder))
    pa.system_memory_pool().release_unused()  # intermediate tables are larger than the result
    return frames


def read(folder: RunFolder, kind: type) -> pd.DataFrame:
    """The records of one kind, from the sealed table or from the lines."""
    sealed = _sealed(folder, kind)
    return _frame(pq.read_table(sealed)) if sealed is not None else _read_lines(folder, kind)[0]


def _sealed(folder: RunFolder, kind: type) -> Path | None:
    """The table of a kind, if it was made of the lines that are there now, or if there are none.

    Lines are only appended: their size tells. Modification times don't, once a clock was set back.
    """
    table = folder.path / TABLES / f"{KINDS[kind]}.parquet"
    if not table.is_file():
        return None
    size = _lines_size(folder, kind)
    if size is None:
        return table
    try:
        made_of = (pq.read_schema(table).metadata or {}).get(_LINES_SIZE)
    except (OSError, pa.ArrowException):  # damaged: the lines are the records
        return None
    return table if made_of == str(size).encode() else None


def _lines_size(folder: RunFolder, kind: type) -> int | None:
    lines = folder.path / f"{KINDS[kind]}.jsonl"
    return lines.stat().st_size if lines.is_file() else None


def _spans(folder: RunFolder) -> tuple[pd.DataFrame, pd.DataFrame]:
    sealed = _sealed(folder, Span)
    if sealed is not None:
        with pq.ParquetFile(sealed, read_dictionary=spans.DICTIONARIES) as table:
            batches = table.iter_batches(spans.ROWS, columns=list(spans.COLUMNS))
            return spans.numbered(batches, table.metadata.num_rows)
    frame, _ = _read_lines(folder, Span)
    batches = pa.Table.from_pandas(frame, schema=schema(Span), preserve_index=False).to_batches()
    return spans.numbered(batches, len(frame))


def _read_lines(folder: RunFolder, kind: type) -> tuple[pd.DataFrame, int]:
    """All records of a kind as a frame, deduplicated and in canonical order, and the number of dropped lines."""
    path = folder.path / f"{KINDS[kind]}.jsonl"
    lines = path.read_bytes() if path.is_file() else b""
    whole = lines.rfind(b"\n") + 1
    torn = int(whole < len(lines))
    table, bad = _parse(lines[:whole], schema(kind))
    frame = _frame(table)
    if kind in _KEYS:
        key = list(_KEYS[kind])
        frame = frame.drop_duplicates(key, keep="last").sort_values(key, kind="stable", ignore_index=True)
    else:
        frame = frame.sort_values(list(_SORT[kind]), kind="stable", ignore_index=True)
    return frame, torn + bad


def _parse(lines: bytes, columns: pa.Schema) -> tuple[pa.Table, int]:
    if not lines:
        return columns.empty_table(), 0
    options = pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore")
    try:
        return pj.read_json(io.BytesIO(lines), parse_options=options).select(columns.names), 0
    except pa.ArrowInvalid:
        # A writer was killed within a line, and another one appended to it: keep the lines that parse.
        good = [line for line in lines.splitlines() if _is_whole(line)]
        bad = lines.count(b"\n") - len(good)
        if not good:
            return columns.empty_table(), bad
        table = pj.read_json(io.BytesIO(b"\n".join(good) + b"\n"), parse_options=options)
        return table.select(columns.names), bad


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def _frame(table: pa.Table) -> pd.DataFrame:
    """A frame whose nullable integers stay integers: an instant of 19 digits does not fit into a float."""
    frame: pd.DataFrame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return frame
