import json
from pathlib import Path

import pytest

from harness.cli import main
from tests.timelines import burst

EXAMPLE = Path(__file__).parents[2] / "examples" / "vineyard.csv"


def compared(capsys, *arguments):
    assert main(["compare", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_vineyard_example_gives_the_published_reductions(capsys):
    rows = compared(capsys, "--table", EXAMPLE)["comparisons"]
    workflow = [row["change"] for row in rows if row["metric"] == "workflow (s)"]
    assert all(-0.25 <= change <= -0.14 for change in workflow)
    assert len(workflow) == 3
    assert not any(row["significant"] for row in rows)
    assert all("proves nothing" in row["sentence"] for row in rows)


def test_run_folders_are_compared_by_variant_and_repetition(tmp_path, capsys):
    quick = [burst(100, step=3.0 + 0.01 * k).write(tmp_path, f"quick{k}").path for k in range(4)]
    slow = [burst(100, step=6.0 + 0.01 * k).write(tmp_path, f"slow{k}").path for k in range(4)]
    found = compared(capsys, ",".join(map(str, quick)), ",".join(map(str, slow)))
    p50 = next(row for row in found["comparisons"] if "p50" in row["metric"])
    assert p50["counts"] == [4, 4]
    assert p50["change"] > 0.5
    assert (p50["first"], p50["variant"]) == ("quick", "slow")


def test_the_variant_that_is_quicker_is_recommended(tmp_path, capsys):
    path = tmp_path / "table.csv"
    rows = [f"{v},,{k},makespan (s),{took + k}" for v, took in (("a", 300), ("b", 200), ("c", 600)) for k in range(5)]
    path.write_text("\n".join(["variant,scale,repetition,metric,value", *rows]) + "\n")
    best = compared(capsys, "--table", path)["recommendation"]
    assert (best["variant"], best["next"]) == ("b", "a")
    assert best["better"] == ["makespan (s) (-33%)"]
    assert main(["compare", "--table", str(path)]) == 0
    assert "Recommended: b." in capsys.readouterr().out


def test_tests_of_different_scale_are_refused_unless_forced(tmp_path, capsys):
    a, b = burst(100).write(tmp_path, "a").path, burst(50).write(tmp_path, "b").path
    assert main(["compare", str(a), str(b)]) == 2
    assert "runs: 100 and 50" in capsys.readouterr().err
    forced = compared(capsys, a, b, "--force")
    assert any("runs: 100 and 50" in warning for warning in forced["warnings"])
    assert {row["scale"] for row in forced["comparisons"]} == {"different scales"}


def test_invalid_tests_are_flagged(tmp_path, capsys):
    a, b = burst(100).write(tmp_path, "a"), burst(100)
    b.records = b.records[:-200]
    found = compared(capsys, a.path, b.write(tmp_path, "b").path)
    assert any("INVALID" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("variant,scale,metric,value\n", "'repetition' is missing"),
        ("variant,scale,repetition,metric,value\na,1,1,m,x\n", "line 2, column 'value'"),
        ("variant,scale,repetition,metric,value\na,1,1,m,1\na,1,1,m,2\n", "line 3"),
        ("variant,scale,repetition,metric,value\na,1,1,m,1\n", "nothing to compare"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, capsys, text, said):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert main(["compare", "--table", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_one_variant_is_not_a_comparison(capsys):
    assert main(["compare", "runs/x"]) == 2
    assert "two or more variants" in capsys.readouterr().err
