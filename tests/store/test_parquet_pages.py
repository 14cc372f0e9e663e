"""What a Parquet file claims about its sizes is compared with its pages, before Arrow allocates anything."""

import io
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.model.errors import ConfigError
from harness.store import parquet
from harness.store.parquet_pages import decompressed_bytes

WHOLE = pa.schema([pa.field("a", pa.int64(), nullable=False)])
NUMBERS = pa.table({"a": list(range(1000))}, WHOLE)
TEXTS = pa.table({"a": [f"text-{k}" for k in range(12_345)]})
LONG = pa.table({"a": ["x" * 10_000_000] * 4})


def written(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def decompressed(content):
    return decompressed_bytes(io.BytesIO(content), "f")


def number(value, length=0):
    """A number as Thrift writes it, in at least `length` bytes."""
    left, found = value << 1, []
    while left > 127 or len(found) < length - 1:
        found.append(left & 127 | 128)
        left >>= 7
    return bytes([*found, left])


def claiming(content, value, claimed, begin=0):
    """The file with the first number `value` after `begin` replaced by another one of the same length."""
    true = number(value)
    at = content.index(true, begin)
    lie = number(claimed, len(true))
    assert len(lie) == len(true)
    return content[:at] + lie + content[at + len(true) :]


@contextmanager
def counted():
    """A memory pool that counts what Arrow allocates in this block."""
    pool, before = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        yield pool
    finally:
        pa.set_memory_pool(before)


def footer_at(content):
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def with_footer(footer):
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("rows_of_a_group", [100, 1000])
def test_the_size_is_that_of_all_decompressed_pages(compression, page_version, rows_of_a_group):
    content = written(
        NUMBERS, compression=compression, data_page_version=page_version, row_group_size=rows_of_a_group,
        use_dictionary=False,
    )  # fmt: skip
    assert decompressed(content) == 8 * 1000


def test_a_dictionary_counts_and_an_empty_table_has_no_pages():
    assert decompressed(written(TEXTS)) > sum(len(text) + 4 for text in TEXTS["a"].to_pylist())
    assert decompressed(written(NUMBERS.slice(0, 0))) == 0


def test_a_footer_that_claims_less_is_not_believed():
    content = written(LONG, compression="zstd", use_dictionary=False)
    column = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
    lying = claiming(content, column.total_uncompressed_size, 1000, footer_at(content))
    assert pq.read_metadata(io.BytesIO(lying)).row_group(0).column(0).total_uncompressed_size == 1000
    assert decompressed(lying) > 40_000_000


def test_nothing_is_decompressed_of_a_file_whose_pages_expand_too_far(tmp_path, monkeypatch):
    content = written(LONG, compression="zstd", use_dictionary=False)
    column = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
    file = tmp_path / "f.parquet"
    file.write_bytes(claiming(content, column.total_uncompressed_size, 1000, footer_at(content)))
    monkeypatch.setattr(parquet, "_LEAST_BYTES", 2**20)
    with counted() as pool, pytest.raises(ConfigError, match=r"f\.parquet expands to far more than its size"):
        parquet.check_expansion(file)
    assert (pool.max_memory() or 0) < 2**20


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()],
    ids=str,
)
def test_a_text_that_a_dictionary_repeats_is_never_written_out(tmp_path, monkeypatch, kind):
    file = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": pa.array(["x" * 1_000_000] * 20).cast(kind)}), file, dictionary_pagesize_limit=2**24)
    monkeypatch.setattr(parquet, "_LEAST_BYTES", 4 * 2**20)
    with counted() as pool, pytest.raises(ConfigError, match=r"f\.parquet expands to far more than its size"):
        parquet.check_expansion(file)
    assert pool.max_memory() < 10_000_000


def test_a_footer_that_claims_more_rows_is_refused(tmp_path):
    content = written(NUMBERS)
    file = tmp_path / "f.parquet"
    file.write_bytes(claiming(content, 1000, 1023, footer_at(content)))
    with pytest.raises(ConfigError, match="has 1,000 of 1,023 rows"):
        parquet.check_expansion(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a Parquet file"),
        (written(NUMBERS)[:-1], "not a Parquet file"),
        (written(NUMBERS)[:-8] + (2**31).to_bytes(4, "little") + b"PAR1", "its footer has 2,147,483,648 bytes"),
        (written(TEXTS, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"), "encoded as differences"),
        (claiming(written(TEXTS), 12_345, 1_000_000), "a dictionary of 1,000,000 values has"),
        (written(pa.table({"a": [[1], [2]]})), "the column 'a' is nested"),
        (written(pa.table({"a": [{"b": 1}]})), "the column 'a' is nested"),
        (written(pa.table({"a": pa.array([b"x" * 100], pa.binary(100))})), "the values of the column 'a' have 100 bytes"),
        (written(pa.table([[1], [2]], ["a", "a"])), "two columns have the same name"),
        (with_footer(b"\x1c" * 20), "more than 10 levels"),
        (with_footer(b"\x19" * 20 + b"\0"), "can't be read"),
        (with_footer(b"\x18" + b"\xff\xff\xff\xff\x0f"), "it ends early"),
        (with_footer(b"\x15" + b"\xff" * 20), "can't be read"),
        (with_footer(b"\x19\xf5\xff\xff\xff\xff\x0f"), "it ends early"),
        (with_footer(b"\0"), "2 is missing"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_flat_columns_is_refused_in_a_sentence(content, said):
    with pytest.raises(ConfigError, match=said) as refused:
        decompressed(content)
    assert refused.value.message.startswith("f is damaged, or no table of flat columns: ")


def test_a_page_beyond_the_end_of_the_file_is_refused():
    content = written(NUMBERS, use_dictionary=False)
    column = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
    lying = claiming(content, column.total_compressed_size, 8191, footer_at(content))
    with pytest.raises(ConfigError, match="beyond the end of the file"):
        decompressed(lying)


def test_a_page_s_header_is_not_read_without_end():
    content = written(NUMBERS, use_dictionary=False)
    column = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
    endless = b"\x19\xf3" + b"\xff\xff\xff\xff\x0f"  # a list of 4,294,967,295 bytes
    start = column.data_page_offset
    with pytest.raises(ConfigError, match="it ends early"):
        decompressed(content[:start] + endless + content[start + len(endless) :])
