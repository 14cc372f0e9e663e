"""The closed model end to end: a fixed number of runs in flight, with one process or several."""

import json

import pytest

from harness.store import RunFolder
from tests.support.e2e import FEW, PIPELINE, QUICK


def most_in_flight(folder):
    """The maximum number of arrivals in flight: due, and their end not yet seen."""
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    ends = [event["at"] for event in lines if event["kind"] == "Run" and event["reason"] == "SUCCEEDED"]
    rows = [json.loads(line) for line in (folder / "submissions.jsonl").read_text().splitlines()]
    steps = sorted([(row["due_at"], 1) for row in rows] + [(at, -1) for at in ends])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def test_as_many_runs_are_in_flight_as_there_are_users(locust):
    finished = locust.headless(
        "--simulate", QUICK, *FEW, "--schedule", "concurrency", "-u", "4", "-r", "2", "--runs", "12"
    )
    assert finished.code == 0, finished.err + finished.out
    rows = sorted(finished.rows(), key=lambda row: row["seq"])
    assert [row["seq"] for row in rows] == list(range(12))
    t0_at = rows[0]["due_at"]
    assert [(row["due_at"] - t0_at) / 1e9 for row in rows[:4]] == pytest.approx([0.0, 0.5, 1.0, 1.5])
    assert most_in_flight(finished.folder) <= 4
    plan = RunFolder.open(finished.folder).read_plan()
    assert (plan.schedule["model"], plan.intended) == ("closed", 12)
    assert "closed" in finished.folder.joinpath("report.md").read_text()
    offsets = RunFolder.open(finished.folder).read_schedule()
    assert offsets == pytest.approx([(row["due_at"] - t0_at) / 1e9 for row in rows], abs=1e-6)


@pytest.mark.soak
def test_a_closed_test_with_a_duration_writes_its_due_times_at_its_end(locust):
    finished = locust.headless(
        "--simulate", QUICK, *FEW, "--schedule", "concurrency", "-u", "3", "-r", "10", "--for", "8s"
    )
    assert finished.code == 0, finished.err + finished.out
    rows = finished.rows()
    assert len(rows) > 3, "slots were reused"
    assert RunFolder.open(finished.folder).read_plan().intended == len(rows)
    assert finished.report()["ledger"]["intended"] == len(rows)


@pytest.mark.soak
def test_the_workers_of_a_closed_test_share_its_slots(locust, platform):
    finished = locust.headless(
        "--processes", "2", "--host", platform.url, "--pipeline", PIPELINE, *FEW, "--schedule", "concurrency",
        "-u", "4", "-r", "4", "--runs", "14", KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    rows = finished.rows()
    assert sorted(row["seq"] for row in rows) == list(range(14))
    assert {row["worker"] for row in rows} == {0, 1}
    assert most_in_flight(finished.folder) <= 4
