"""A day of tenants whose stages depend on each other, from the generator to the report."""

import subprocess

import pytest
import yaml

from tests.support.e2e import BIN, ROOT

TENANTS = """id,scenario_name,tenant,width,tasks,task_s,variation
1,narrow,forecasting,1,2,0.2,0.2
2,wide,quality,2,4,0.2,0.2
"""
DAY = ("--for", "20m", "--stage", "5m", "--width", "1..2", "--variation", "1", "--seed", "3")


@pytest.mark.soak
def test_each_stage_of_a_generated_day_begins_when_the_one_before_it_is_over(locust, tmp_path):
    pytest.importorskip("distributed", reason="the extra pipeswarm[dask] is not installed")
    (tmp_path / "tenants.csv").write_text(TENANTS)
    files = ("--stages", tmp_path / "day.yaml", "-o", tmp_path / "day.csv")
    subprocess.run([BIN / "generate-scenarios", "workload", *DAY, *files], check=True, capture_output=True)
    widths = [stage["runs"] for stage in yaml.safe_load((tmp_path / "day.yaml").read_text())]
    finished = locust.headless(
        "-f", str(ROOT / "locustfiles/dask_tenants.py"), "--scenarios", "tenants.csv", "--schedule", "concurrency",
        "--schedule-file", "day.yaml",
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    rows = sorted(finished.rows(), key=lambda row: row["seq"])
    assert len(widths) > 2
    assert len(rows) == sum(widths)
    over_at = 0
    for width in widths:
        stage, rows = rows[:width], rows[width:]
        (due_at,) = {row["due_at"] for row in stage}
        assert due_at >= over_at
        over_at = max(row["answered_at"] for row in stage)
    report = finished.report()
    assert {each["name"] for each in report["tenants"]["tenants"]} == {"forecasting", "quality"}
