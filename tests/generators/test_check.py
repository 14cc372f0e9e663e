import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.check import bad_cells, rule_of
from generators.cli import main
from generators.request import Request
from generators.sources import Sources
from tests.support.drawing import spec_of
from tests.support.generated import EVERY_KIND, written


def faults(path, fields):
    spec = spec_of(fields)
    return list(bad_cells(path, rule_of(Request(spec, {}, Sources()))))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_spec_accepts_the_files_it_generates():
    path = Path("x.csv")
    path.write_bytes(written(spec_of(EVERY_KIND), 500))
    assert faults(path, EVERY_KIND) == []


GOOD = {
    "n": "5",
    "x": "0.5",
    "c": "a",
    "b": "true",
    "d": "2025-03-01",
    "u": "123e4567-e89b-42d3-a456-426614174000",
    "j": '{"a":1}',
    "t": "p-a-5",
    "s": "4000",
    "w": "3",
}
FIELDS = {
    "n": {"integer": [1, 9], "step": 2},
    "x": {"uniform": [0, 1]},
    "c": {"choice": ["a", "b"]},
    "b": "boolean",
    "d": {"datetime": ["2025-01-01", "2025-12-31"]},
    "u": "uuid",
    "j": {"json": {"a": 1}},
    "t": {"template": "p-{c}-{n}"},
    "s": {"scale": [4000, 5000]},
    "w": {"by": "c", "cases": {"a": {"integer": [1, 3]}, "b": {"choice": ["z"]}}},
}


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        ("n", "4", "not 1 plus a multiple of 2"),
        ("n", "11", "not between 1 and 9"),
        ("n", "5.0", "not an integer"),
        ("x", "1.5", "not between 0 and 1"),
        ("x", "nan", "not a number"),
        ("c", "A", "not one of a, b"),
        ("b", "yes", "not one of false, true"),
        ("d", "2025-13-01", "not a date or time of the form %Y-%m-%d"),
        ("d", "2026-03-01", "outside the range"),
        ("u", "123", "not a UUID"),
        ("j", "{", "not JSON"),
        ("t", "q-a-5", "not of the form p-{c}-{n}"),
        ("s", "", "not one of 4000, 5000"),
        ("w", "z", "not an integer"),
    ],
)
def test_a_bad_cell_is_named_with_row_column_and_reason(column, cell, problem):
    bad = GOOD | {column: cell}
    rows = [GOOD, bad]
    lines = [
        ",".join(['"' + c.replace('"', '""') + '"' for c in [str(k), f"s{k}", *row.values()]])
        for k, row in enumerate(rows)
    ]
    Path("x.csv").write_text("\n".join([",".join(["id", "scenario_name", *GOOD]), *lines]) + "\n")
    fields = {**FIELDS, "scenario_name": {"faker": "word"}}
    found = faults(Path("x.csv"), fields)
    assert [(f.row, f.column, f.value) for f in found] == [(3, column, cell)]
    assert problem in found[0].problem


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "row 1: the file is empty"),
        ("id,scenario_name,n\n", "row 1: the file has a header but no rows"),
        ("id,scenario_name\n1,a\n", "row 1, column n: the column is missing"),
        ("id,scenario_name,n,zz\n1,a,3,1\n", "row 1, column zz: unknown column"),
        ("id,scenario_name,n\n1,a\n", "row 2: 2 cells, but the header has 3"),
        ("id,scenario_name,n\n1,a,3\n1,b,3\n", "row 3, column id: '1' is already used in row 2"),
        ("id,scenario_name,n,n\n1,a,3,3\n", "column n: the column is given twice"),
    ],
)
def test_errors_in_the_structure_of_the_table_are_reported(capsys, content, said):
    Path("x.csv").write_text(content)
    Path("s.yaml").write_text("fields:\n  scenario_name: {faker: word}\n  n: {integer: [1, 9]}\n")
    assert main(["--check", "x.csv", "--spec", "s.yaml"]) == 2
    assert said in capsys.readouterr().out


def test_a_byte_order_mark_and_crlf_are_accepted():
    Path("s.yaml").write_text("fields:\n  n: {integer: [1, 9]}\n")
    Path("x.csv").write_bytes("\ufeffid,scenario_name,n\r\n1,scenario-1,3\r\n".encode())
    assert main(["--check", "x.csv", "--spec", "s.yaml"]) == 0


def test_bad_cells_are_listed_up_to_a_limit_and_json_counts_all(capsys):
    Path("s.yaml").write_text("fields:\n  n: {integer: [1, 9]}\n")
    Path("x.csv").write_text("id,scenario_name,n\n" + "".join(f"{k},scenario-{k},99\n" for k in range(50)))
    assert main(["--check", "x.csv", "--spec", "s.yaml", "--limit", "3"]) == 2
    assert capsys.readouterr().out.splitlines()[-1] == "… and 47 more"
    assert main(["--check", "x.csv", "--spec", "s.yaml", "--limit", "3", "--json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["bad"], len(shown["cells"])) == (False, 50, 3)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_file_is_checked_or_rejected(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "x.csv"
    path.write_bytes(content)
    assert main(["--check", str(path), "--quiet", "--json"]) == 2
