"""How sealed tables are laid out; what foreign ones may not do is in `test_parquet_pages.py`."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from harness.store.parquet import write

ROWS = 2**17
NAMES = [f"training-{k:06d}-system-container-impl-{k:010d}" for k in range(ROWS // 2)]
TABLE = pa.table({
    "step": [name for name in [*NAMES, *NAMES] for _ in range(2)],
    "at": pa.array([1_790_000_000 * 10**9 + 1000 * k for k in range(2 * ROWS)]),
    "value": pa.array([k / 7 for k in range(2 * ROWS)]),
})  # fmt: skip


def test_a_table_holds_each_text_of_a_batch_once():
    out = io.BytesIO()
    write(out, TABLE.schema, [TABLE])
    found = list(pq.ParquetFile(out, read_dictionary=["step"], pre_buffer=False).iter_batches(ROWS))
    assert [len(batch["step"].dictionary) for batch in found] == [len(NAMES)] * 2
    assert pa.Table.from_batches(found).cast(TABLE.schema) == TABLE


def test_instants_near_each_other_take_little_room():
    sizes = []
    for columns in (["value"], ["at", "value"]):
        out = io.BytesIO()
        write(out, TABLE.select(columns).schema, [TABLE.select(columns)])
        sizes.append(out.tell())
    assert sizes[1] - sizes[0] < len(TABLE) / 2  # bytes


def test_the_same_rows_in_any_parts_are_the_same_table():
    out = io.BytesIO()
    write(out, TABLE.schema, [TABLE.slice(0, 10), TABLE.slice(10)])
    assert pq.read_table(out) == TABLE
