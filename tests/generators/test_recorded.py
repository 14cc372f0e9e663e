import csv
import json
from pathlib import Path

import pytest

from generators.cli import main
from harness.model.plan import Plan
from harness.model.records import Outcome, Submission
from harness.store.folder import SCENARIOS, RunFolder

START = 1_760_000_000_000_000_000


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run as the load records it: 5 arrivals of 3 of 4 scenarios, written out of order."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create(tmp_path / "runs", "r")
    folder.write_plan(Plan("kfp", "http://127.0.0.1", {}, 5, 1, simulated=True))
    folder.keep(SCENARIOS, b"id,scenario_name,x\n1,one,0.5\n2,two,\n3,three,2.5\n4,four,9\n")
    with folder.recorder() as recorder:
        for seq, due_ms, scenario in [(1, 250, "1"), (0, 0, "3"), (2, 250, "3"), (4, 9000, "1"), (3, 700, "2")]:
            due_at = START + due_ms * 1_000_000
            recorder.write(
                Submission(seq, scenario, f"{scenario}-x", due_at, due_at, due_at, Outcome.ACCEPTED, "r", 0, 200, None)
            )
    return folder.path


def table(name):
    with Path(name).open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_scenarios_that_arrived_come_in_the_order_of_their_arrival(run):
    assert main(["--from-run", str(run), "-o", "again.csv"]) == 0
    assert [list(row.values()) for row in table("again.csv")] == [
        ["3", "three", "2.5"],
        ["1", "one", "0.5"],
        ["2", "two", ""],
    ]


def test_fewer_are_the_first_ones(run):
    assert main(["--from-run", str(run), "--n", "2", "-o", "again.csv"]) == 0
    assert [row["id"] for row in table("again.csv")] == ["3", "1"]


def test_further_rows_repeat_whole_rows_under_new_ids(run, capsys):
    assert main(["--from-run", str(run), "--n", "40", "-o", "again.csv"]) == 0
    rows = table("again.csv")
    assert [row["id"] for row in rows] == [str(k) for k in range(1, 41)]
    assert {(row["scenario_name"], row["x"]) for row in rows} == {("one", "0.5"), ("two", ""), ("three", "2.5")}
    assert "further rows repeat them under new ids" in capsys.readouterr().err


def test_a_note_names_hidden_values(run, capsys):
    folder = RunFolder.open(run)
    folder.write_plan(Plan("kfp", "http://127.0.0.1", {}, 5, 1, simulated=True, redact=("x", "never")))
    assert main(["--from-run", str(run), "-o", "again.csv"]) == 0
    assert "without the values of x: define them with --spec" in capsys.readouterr().err


def test_the_arrivals_become_a_schedule(run):
    assert main(["workload", "--from-run", str(run), "-o", "s.csv", "--plot", "w.svg"]) == 0
    rows = [(float(row["due_s"]), row["scenario_id"]) for row in table("s.csv")]
    assert rows == [(0.0, "3"), (0.25, "1"), (0.25, "3"), (0.7, "2"), (9.0, "1")]
    assert "5 runs" in Path("w.svg").read_text()


def test_a_spec_can_be_inferred_from_a_run(run):
    assert main(["--from-run", str(run), "--write-spec", "s.yaml"]) == 0
    assert main(["--spec", "s.yaml", "--n", "5", "--quiet"]) == 0
    assert list(table("scenarios.csv")[0]) == ["id", "scenario_name", "x"]


@pytest.mark.parametrize("missing", ["manifest.json", "submissions.jsonl", SCENARIOS])
def test_missing_files_of_a_run_folder_are_named(run, capsys, missing):
    (run / missing).unlink()
    assert main(["--from-run", str(run)]) == 2
    assert json.dumps(str(run))[1:-1] in capsys.readouterr().err
