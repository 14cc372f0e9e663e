import pandas as pd
import pytest

from harness.analysis.waits.breakdown import phases_table
from harness.analysis.waits.waits import waits
from harness.cli import main
from harness.model.phases import DISPATCH, PUBLISHING, RUNNING, STARTING, SUBMIT
from tests.support.timelines import Story


def story():
    told = Story(intended=2)
    for seq in (0, 1):
        run = told.submit(seq, due=1.0 + seq, lag=0.5, service=0.5)
        told.pod(run, f"p{seq}", "n", (STARTING, 2.0 + seq, 3.0 + seq), (RUNNING, 3.0 + seq, 6.0 + seq))
        told.run(run, 2.0 + seq, 8.0 + seq)
    return told


def test_each_run_has_its_phases_in_order_without_empty_ones(tmp_path):
    timeline = story().timeline(tmp_path)
    (table,) = phases_table(timeline, waits(timeline))
    assert list(table["seq"]) == [0] * 5 + [1] * 5
    assert list(table["phase"][:5]) == [DISPATCH, SUBMIT, STARTING, RUNNING, PUBLISHING]
    assert list(table["length_s"][:5]) == pytest.approx([0.5, 0.5, 1.0, 3.0, 2.0])
    assert set(table["state"]) == {"SUCCEEDED"}


def test_lengths_add_up_to_each_runs_wait(tmp_path):
    timeline = story().timeline(tmp_path)
    split = waits(timeline)
    (table,) = phases_table(timeline, split)
    assert list(table.groupby("seq")["length_s"].sum()) == pytest.approx(list(split.total))


def test_the_report_leaves_the_table_in_the_folder_the_same_each_time(tmp_path, capsys):
    folder = story().write(tmp_path)
    main(["report", str(folder.path), "--quiet"])
    path = folder.path / "tables/phases.parquet"
    first = path.read_bytes()
    assert pd.read_parquet(path)["length_s"].sum() == pytest.approx(14.0)
    main(["report", str(folder.path), "--quiet"])
    assert path.read_bytes() == first


def test_without_runs_there_is_an_empty_table(tmp_path):
    folder = Story(intended=0).write(tmp_path)
    main(["report", str(folder.path), "--quiet"])
    assert list(pd.read_parquet(folder.path / "tables/phases.parquet").columns) == [
        "seq",
        "run",
        "state",
        "phase",
        "length_s",
    ]
