"""Numbers in a spec from somebody else don't decide how much memory or disk is taken."""

from pathlib import Path

import pytest

from generators.cli import main
from harness.model.errors import ConfigError
from tests.support.drawing import column


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *arguments):
    assert main([*arguments, "-o", "out.csv", "--quiet"]) == 2
    assert not Path("out.csv").exists()
    return capsys.readouterr().err


@pytest.mark.parametrize("rows", ["10_000_001", "1_000_000_000_000", "9_000_000_000_000_000_000"])
def test_a_spec_asks_for_ten_million_rows_at_most(capsys, rows):
    Path("s.yaml").write_text(f"rows: {rows}\nfields: {{x: boolean}}\n")
    said = refused(capsys, "--spec", "s.yaml")
    assert "rows; a spec may ask for at most 10,000,000" in said
    assert "--n" in said


def test_the_command_line_overrides_the_rows_of_a_spec():
    Path("s.yaml").write_text("rows: 1_000_000_000_000\nfields: {x: boolean}\n")
    assert main(["--spec", "s.yaml", "-o", "out.csv", "--quiet", "--n", "3"]) == 0
    assert len(Path("out.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    "spec",
    ["seed: 7.0\nfields: {x: boolean}", "rows: 3.0\nfields: {x: boolean}", "fields: {x: {faker: name, pool: 3.0}}",
     "fields: {x: {zipf: 3.0}}", "fields: {x: {uniform: [0, 1], decimals: 2.0}}"],
)  # fmt: skip
def test_a_count_has_no_decimal_point(capsys, spec):
    Path("s.yaml").write_text(spec)
    assert "is not of type 'integer'" in refused(capsys, "--spec", "s.yaml")


@pytest.mark.parametrize(
    ("stage", "length", "width", "said"),
    [
        ("1s", "90000s", 1_000_000, "the workload starts 90,000,000,000 runs; a schedule may have at most 10,000,000"),
        ("1s", "11s", 1_000_000, "the workload starts 11,000,000 runs"),
        ("0.001s", "101s", 1, "more than 100,000 stages"),
        ("1e-300", "1e300", 1, "more than 100,000 stages"),
    ],
)
def test_a_workload_has_no_more_runs_than_a_schedule(capsys, stage, length, width, said):
    Path("w.yaml").write_text(f"stage: {stage}\nphases: [{{name: a, for: {length}, width: [{width}, {width}]}}]\n")
    assert said in refused(capsys, "workload", "--spec", "w.yaml")


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ({"faker": "pystr", "args": {"max_chars": 10**12}}, "max_chars of pystr is above 10,000"),
        ({"faker": "binary.length=100000000"}, "length of binary is above 10,000"),
        ({"faker": "random_number", "args": [10**9]}, "digits of random_number is above 10,000"),
        ({"faker": "texts.nb_texts=20000"}, "nb_texts of texts is above 10,000"),
        ({"faker": "image", "args": {"size": [10**6, 10**6]}}, "size of image is above 10,000"),
        ({"json": {"$repeat": {"of": {"$repeat": {"of": 1, "max": 1000}}, "max": 11}}}, "11,000 values"),
        ({"json": {"$repeat": {"of": {"a": {"$repeat": {"of": [1, 2], "max": 100}}}, "max": 51}}}, "10,200 values"),
    ],
)
def test_a_field_of_gigabytes_is_refused(definition, said):
    with pytest.raises(ConfigError, match=said):
        column(definition, 2)


@pytest.mark.parametrize(
    "definition",
    [
        {"faker": "random_int", "args": [1, 10**9]},
        {"faker": "pyint.max_value=1000000000"},
        {"json": {"$repeat": {"of": {"$repeat": {"of": 1, "max": 100}}, "max": 100}}},
    ],
)
def test_large_values_are_no_large_fields(definition):
    assert len(column(definition, 2)) == 2


def test_a_pool_of_long_texts_is_refused(monkeypatch):
    monkeypatch.setattr("generators.sources._MOST_CHARACTERS", 5000)
    with pytest.raises(ConfigError, match=r"a pool of 1,000 values of pystr.* has more than 5,000 characters"):
        column({"faker": "pystr", "args": {"min_chars": 20, "max_chars": 30}}, 2)
    assert column({"faker": "pystr", "args": {"min_chars": 2, "max_chars": 4}}, 2)
