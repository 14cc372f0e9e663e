import csv
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.columns import Column, from_values, join, texts
from generators.formats import Csv, JsonLines, Parquet

nasty = st.text(alphabet=st.sampled_from(list("ab,\"\r\n\t=+-@'\\{} é☃\u2028\x01")), max_size=12)


def written(form, columns):
    out = io.BytesIO()
    sink = form.sink(out, columns)
    sink.add(form.piece(columns))
    sink.finish()
    return out.getvalue()


def rows(content):
    return list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), nasty), min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]))
def test_any_text_comes_back_from_a_csv(cells, end):
    columns = {"id": from_values(range(len(cells))), 'na"m,e': texts(cells)}
    content = written(Csv(line_end=end), columns)
    assert rows(content) == [["id", 'na"m,e'], *([str(k), cell or ""] for k, cell in enumerate(cells))]
    assert content.endswith(end.encode())


def test_a_missing_text_and_an_empty_one_differ():
    columns = {"id": from_values([1, 2]), "x": texts([None, ""])}
    assert written(Csv(), columns) == b'id,x\n1,\n2,""\n'


@settings(deadline=None)
@given(st.lists(st.tuples(nasty, st.one_of(st.none(), nasty)), min_size=1, max_size=9))
def test_joined_text_is_written_like_plain_text(pairs):
    left, right = (texts([pair[k] for pair in pairs]) for k in (0, 1))
    plain = texts([None if b is None else f"{a}-{b}" for a, b in pairs])
    joined = join((left, "-", right), len(pairs))
    assert written(Csv(), {"x": joined}) == written(Csv(), {"x": plain})


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), nasty), min_size=1, max_size=20))
def test_json_cells_and_json_lines_are_json(cells):
    text = texts(cells)
    document = replace(join(('{"k":', text.json(), "}"), len(cells)), is_json=True)
    columns = {"id": from_values(range(len(cells))), "doc": document, "text": text}
    from_csv = [json.loads(row[1]) for row in rows(written(Csv(), columns))[1:]]
    assert from_csv == [{"k": cell} for cell in cells]
    lines = [json.loads(line) for line in written(JsonLines(), columns).decode().split("\n")[:-1]]
    assert lines == [{"id": k, "doc": {"k": cell}, "text": cell} for k, cell in enumerate(cells)]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_come_back_bit_for_bit(numbers):
    columns = {"id": from_values(range(len(numbers))), "x": from_values(numbers)}
    assert [float(row[1]) for row in rows(written(Csv(), columns))[1:]] == numbers
    assert [json.loads(line)["x"] for line in written(JsonLines(), columns).splitlines()] == numbers


@pytest.mark.parametrize("cell", ["=1+1", "+49 89", "-x", "@SUM(A1)", "\tx", "\rx", '=HYPERLINK("http://x","y")'])
def test_text_that_a_spreadsheet_would_run_is_escaped(cell):
    columns = {"id": from_values([1, -2]), "x": texts([cell, "safe"])}
    assert rows(written(Csv(excel_safe=True), columns))[1:] == [["1", "'" + cell], ["-2", "safe"]]
    assert rows(written(Csv(), columns))[1][1] == cell


def test_a_parquet_file_has_types_and_groups_of_a_fixed_size():
    n = 300_000
    columns = {
        "id": from_values(range(n)),
        "x": texts(["a"] * n),
        "at": Column(np.zeros(n, dtype="datetime64[s]")),
    }
    out = io.BytesIO()
    form = Parquet()
    sink = form.sink(out, columns)
    sink.add(form.piece(columns))
    sink.finish()
    file = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)] == [131_072, 131_072, 37_856]
    assert [str(kind) for kind in file.schema_arrow.types] == ["int64", "string", "timestamp[ms]"]


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.booleans(), st.integers(-9, 9), nasty, st.lists(st.integers(0, 3))), max_size=9)
)
def test_python_values_become_a_column_of_one_type(values):
    column = from_values(values)
    assert len(column.values) == len(values)
    assert [value is None for value in column.to_list()] == [value is None for value in values]
