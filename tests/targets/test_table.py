"""Users' tables, row by row."""

import pytest

from harness.model.errors import ConfigError
from harness.targets.table import named_rows_of


def test_rows_come_by_column_with_their_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"runs", nodes\r\n\r\n1, 2\r\n"a\nb"\r\n3,4\r\n'.encode())
    assert list(named_rows_of(path, ["nodes"], "")) == [
        (3, {"runs": "1", "nodes": "2"}),
        (4, {"runs": "a\nb", "nodes": ""}),
        (6, {"runs": "3", "nodes": "4"}),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: the column 'runs' is missing"),
        (b"run\n1\n", "line 1: the column 'runs' is missing"),
        (b"runs;nodes\n1;2\n", "semicolon-separated"),
        (b"runs\n1,5\n", "line 2: 2 cells, but the header has 1"),
        (b"runs\n\xff\n", "not UTF-8"),
        (b'runs\n"1"2\n', "not a CSV"),
        (b"," * 10_000, "row 1 has 10,001 cells, more than 10,000"),
    ],
)
def test_errors_in_a_table_name_the_place(tmp_path, content, said):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        list(named_rows_of(path, ["runs"], ""))
    assert said in raised.value.message
    assert str(path) in raised.value.message
    assert raised.value.hint


def test_a_missing_table_gives_the_callers_hint(tmp_path):
    with pytest.raises(ConfigError, match="does not exist") as raised:
        list(named_rows_of(tmp_path / "t.csv", ["runs"], "give a table"))
    assert raised.value.hint == "give a table"
