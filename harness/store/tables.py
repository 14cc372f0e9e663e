"""Sealing: JSON lines become Parquet tables whose schemas are derived from the records.

Sealing twice gives the same bytes as once. The JSON lines stay: they are the records, the tables are an index.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from harness.model import ConfigError, Event, Node, Sample, Span, Submission
from harness.model.phases import POD_COST
from harness.store import files, spans
from harness.store.checks import problem
from harness.store.folder import DAMAGED, KINDS, MANIFEST, MOST_RECORDS, SCHEDULE, TABLES, RunFolder
from harness.store.newest import Newest
from harness.store.parquet import batches, check, damaged, read_table, schema, write
from harness.store.parquet_pages import decompressed_bytes
from harness.store.prices import kept_prices, priced

__all__ = ["RUNS", "STEPS", "load", "read", "schema", "seal"]

# Of records with the same key the last one counts, and rows are sorted by key; kinds without a key keep every record.
_KEYS: Mapping[type, tuple[str, ...]] = {
    Submission: ("seq",),
    Span: ("run", "step", "phase", "attempt"),
    Node: ("name",),
}
RUNS, STEPS = "runs", "steps"  # of `load`
_LINES_SIZE = b"pipeswarm.lines_size"  # of a table: bytes of the lines that it was made of
_SORT: Mapping[type, tuple[str, ...]] = {Sample: ("at", "metric", "labels"), Event: ("at", "kind", "object", "reason")}


def seal(folder: RunFolder) -> Mapping[str, int]:
    """Write ``tables/*.parquet`` and return the number of dropped torn lines by kind.

    A table made of the lines that are there now, or whose lines are gone, is left alone.

    Raises:
        ConfigError: the folder can't be written.
    """
    try:
        files.make_folder(folder.path, TABLES)
        torn: dict[str, int] = {}
        for kind, name in KINDS.items():
            if _is_sealed(folder, kind):
                continue
            size = files.size_of(folder.path, _lines(kind))
            frame, torn[name] = _read_lines(folder, kind)
            rows = pa.Table.from_pandas(frame, schema=schema(kind), preserve_index=False)
            rows = rows.replace_schema_metadata({_LINES_SIZE: str(size)})
            with files.replacing(folder.path, _table(kind)) as out:
                write(out, rows.schema, [rows])
    except OSError as error:
        what = f"{folder.path / TABLES} can't be written: {error.strerror}"
        raise ConfigError(what, "free some space, or give a writable run folder") from error
    return torn


def _lines(kind: type) -> str:
    return f"{KINDS[kind]}.jsonl"


def _table(kind: type) -> str:
    return f"{TABLES}/{KINDS[kind]}.parquet"


def load(folder: RunFolder, newest: Newest | None = None) -> dict[str, pd.DataFrame]:
    """The frames by kind ("submissions", "spans", …), from the sealed tables, or from the lines of an unsealed run.

    Instants stay integer nanoseconds; a missing one is pandas' `<NA>` (columns are `Int64`). Of spans, by far the
    largest table, only the columns that the analysis reads are loaded; the ids and names of their runs and the names
    of their steps are tables of their own, "runs" and "steps" (`harness.store.spans.numbered`). Given prices replace
    recorded and measured ones (`harness.store.prices`), and what OpenCost allocated. With `newest`, only the records
    of that window.
    """
    # Batch after batch is freed: this pool reuses the memory for the next batch, Arrow's own returns it first.
    pa.set_memory_pool(pa.system_memory_pool())
    frames = {name: read(folder, kind, newest) for kind, name in KINDS.items() if kind is not Span}
    release_memory()  # intermediate tables are larger than the result
    frames[KINDS[Span]], frames[RUNS], frames[STEPS] = _spans(folder, newest)
    _check_arrivals(folder, frames[KINDS[Submission]])
    prices = kept_prices(folder)
    frames["nodes"] = priced(frames["nodes"], frames["samples"], prices)
    if prices.by_pool:
        frames["samples"] = frames["samples"][frames["samples"]["metric"] != POD_COST]
    release_memory()
    return frames


def release_memory() -> None:
    """Give freed memory back to the system: an allocator keeps what it may need again, of a large test gigabytes."""
    pa.system_memory_pool().release_unused()


def _check_arrivals(folder: RunFolder, submissions: pd.DataFrame) -> None:
    """The manifest, the schedule and the ledger agree on the number of arrivals.

    Raises:
        ConfigError: they don't, so that shares of the intended arrivals would mean nothing.
    """
    scheduled = folder.count_arrivals()
    if scheduled is None:
        return
    plan = folder.read_plan()
    if plan.schedule.get("model") == "closed":
        return  # its schedule is written when the test is over
    if scheduled != plan.intended:
        what = f"'intended' is {plan.intended:,}, but {SCHEDULE} has {scheduled:,} arrivals"
        raise ConfigError(f"{folder.path / MANIFEST}: {what}", DAMAGED)
    seq = int(submissions["seq"].max()) if len(submissions) else -1
    if seq >= scheduled:
        raise ConfigError(f"{folder.path}: arrival {seq:,} was recorded, but only {scheduled:,} were due", DAMAGED)


def read(folder: RunFolder, kind: type, newest: Newest | None = None) -> pd.DataFrame:
    """The records of one kind, from the sealed table or from the lines; with `newest`, those of that window.

    Raises:
        ConfigError: they are damaged, or no such records.
    """
    if newest is None and _is_sealed(folder, kind):
        return _frame(read_table(folder, _table(kind), kind))
    return _read_lines(folder, kind, newest)[0]


def _is_sealed(folder: RunFolder, kind: type) -> bool:
    """Whether the kind's table was made of the lines that are there now, or there is a table and no lines.

    Lines are only appended: their size shows a change. Modification times don't, once a clock was set back.
    """
    if not folder.has(_table(kind)):
        return False
    size = files.size_of(folder.path, _lines(kind))
    if size is None:
        return True
    try:
        with folder.open_file(_table(kind), MOST_RECORDS) as source:
            decompressed_bytes(source, _table(kind))
            made_of = (pq.read_schema(source).metadata or {}).get(_LINES_SIZE)
    except (OSError, ConfigError, pa.ArrowException):  # a link, or damaged: the lines are the records
        return False
    return bool(made_of == str(size).encode())


def _spans(folder: RunFolder, newest: Newest | None) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    if newest is None and _is_sealed(folder, Span):
        with batches(folder, _table(Span), Span, list(spans.COLUMNS), spans.DICTIONARIES) as (found, count):
            return spans.numbered(found, count)
    frame, _ = _read_lines(folder, Span, newest)
    rows = pa.Table.from_pandas(frame, schema=schema(Span), preserve_index=False).to_batches()
    return spans.numbered(rows, len(frame))


def _read_lines(folder: RunFolder, kind: type, newest: Newest | None = None) -> tuple[pd.DataFrame, int]:
    """All records of a kind as a frame, deduplicated and in canonical order, and the number of dropped lines."""
    path = folder.path / _lines(kind)
    if newest is not None:
        lines = newest.read(kind)
    else:
        lines = folder.read_bytes(_lines(kind), MOST_RECORDS) if folder.has(_lines(kind)) else b""
    whole = lines.rfind(b"\n") + 1
    torn = int(whole < len(lines))
    table, bad = _parse(lines[:whole], kind, path)
    frame = _frame(check(table, kind, path))
    if newest is not None:
        frame = newest.chosen(frame, kind)
    if kind in _KEYS:
        key = list(_KEYS[kind])
        frame = frame.drop_duplicates(key, keep="last").sort_values(key, kind="stable", ignore_index=True)
    else:
        frame = frame.sort_values(list(_SORT[kind]), kind="stable", ignore_index=True)
    return frame, torn + bad


def _parse(lines: bytes, kind: type, path: Path) -> tuple[pa.Table, int]:
    """The rows of whole lines, and the number of dropped ones.

    Raises:
        ConfigError: naming the first line whose values are not a record's.
    """
    columns = schema(kind)
    if not lines:
        return columns.empty_table(), 0
    try:
        return _read_json(lines, columns), 0
    except pa.ArrowInvalid:
        # A writer was killed within a line, and another one appended to it: keep the lines that parse.
        good = list(_whole(lines, kind, path))
        bad = lines.count(b"\n") - len(good)
    if not good:
        return columns.empty_table(), bad
    try:
        return _read_json(b"\n".join(good) + b"\n", columns), bad
    except pa.ArrowInvalid as error:
        raise damaged(path, error) from error


def _read_json(lines: bytes, columns: pa.Schema) -> pa.Table:
    options = pj.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore")
    blocks = pj.ReadOptions(block_size=min(max(2**20, len(lines)), 2**30))  # a line has to fit into a block
    return pj.read_json(io.BytesIO(lines), read_options=blocks, parse_options=options).select(columns.names)


def _whole(lines: bytes, kind: type, path: Path) -> Iterator[bytes]:
    for number, line in enumerate(lines.split(b"\n"), 1):
        try:
            raw = orjson.loads(line)
        except ValueError:
            continue
        if wrong := problem(kind, raw):
            raise ConfigError(f"{path}, line {number}: {wrong}", DAMAGED)
        yield line


def _frame(table: pa.Table) -> pd.DataFrame:
    """A frame whose nullable integers stay integers: an instant of 19 digits does not fit into a float."""
    whole = table.combine_chunks()  # texts in pieces are joined again each time that rows are picked
    frame: pd.DataFrame = whole.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return frame
