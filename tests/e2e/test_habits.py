"""What Locust's users are used to works: files of options, the environment, users of their own, listeners."""

import csv

import pytest

from tests.e2e.conftest import QUICK, ROOT

PIPELINE = str(ROOT / "harness/targets/training.yaml")

LOCUSTFILE = """
from harness.drive.user import PipelineUser
from locust import HttpUser, constant, events, task

class Runs(PipelineUser):
    platform = "kfp"

class Visitor(HttpUser):
    wait_time = constant(0.2)

    @task
    def look(self):
        self.client.get("/apis/v2beta1/healthz", name="look")
"""

LISTENER = """
@events.{event}.add_listener
def trouble(**_):
    raise ValueError("trouble of the user's own")
"""


def test_options_come_from_locust_conf_and_the_environment(locust, tmp_path):
    conf = f"headless = true\nsimulate = {QUICK}\nruns = 7\nover = 1s\ntags = [of-my-users]\n"
    (tmp_path / "locust.conf").write_text(conf + 'slo = ["failed_ratio < 0.5", "p95(run.duration) < 1m"]\n')
    finished = locust.finish(locust.start("--run-name", "told", PIPESWARM_RUNS="4", LOCUST_CSV="figures"))
    assert len(finished.rows()) in {4, 7}, finished.err
    assert len(finished.rows()) == 4, "the environment comes before the file, as Locust has it"
    assert finished.folder.name == "told"
    assert (tmp_path / "figures_stats.csv").is_file()
    assert [slo["text"] for slo in finished.report()["slos"]] == ["failed_ratio < 0.5", "p95(run.duration) < 1m"]
    assert "tasks" not in finished.err, "the tags choose among other users' tasks"


def test_a_users_own_users_run_beside_the_schedule(locust, platform, tmp_path):
    mixed = tmp_path / "mixed.py"
    mixed.write_text(LOCUSTFILE)
    finished = locust.headless(
        "-f", str(mixed), "--host", platform.url, "--pipeline", PIPELINE, "-u", "2", "-r", "2", "--runs", "4",
        "--over", "4s", "--csv", "figures", "--html", "page.html", KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code in {0, 4}, finished.err
    with (tmp_path / "figures_stats.csv").open() as text:
        counts = {(row["Type"], row["Name"]): int(row["Request Count"]) for row in csv.DictReader(text)}
    assert counts["SUBMIT", "kfp"] == counts["RUN", "kfp"] == 4
    assert counts["GET", "look"] > 5
    assert (tmp_path / "page.html").is_file()


@pytest.mark.parametrize("event", ["test_start", "request", "quitting"])
def test_a_listener_that_raises_ends_with_1_and_it_is_said_whose_fault_it_is(locust, tmp_path, event):
    troubled = tmp_path / "troubled.py"
    troubled.write_text(LOCUSTFILE.split("class Visitor", maxsplit=1)[0] + LISTENER.format(event=event))
    finished = locust.headless("-f", str(troubled), "--simulate", QUICK, "--runs", "3", "--over", "1s")
    assert finished.code == 1 or finished.was_late(), finished.err
    assert finished.was_late() or "exit code 1: a listener of the locustfile raised" in finished.out
    assert "trouble of the user's own" in finished.err
    assert finished.report()["ledger"]["succeeded"] == 3, "the test itself is not disturbed"


def test_a_listener_that_raises_before_the_test_keeps_it_from_starting(locust, tmp_path):
    troubled = tmp_path / "troubled.py"
    troubled.write_text(LOCUSTFILE.split("class Visitor", maxsplit=1)[0] + LISTENER.format(event="init"))
    finished = locust.headless("-f", str(troubled), "--simulate", QUICK)
    assert (finished.code, finished.folder) == (1, None), finished.err
    assert "troubled.py" in finished.err


def test_a_locustfile_that_cannot_work_says_why(locust, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(LOCUSTFILE.replace('"kfp"', '"kubeflow"'))
    finished = locust.headless("-f", str(wrong))
    assert finished.code == 2, finished.err
    assert "there is no target 'kubeflow'" in finished.err
    assert "Traceback" not in finished.err
    wrong.write_text("raise ValueError('my own')")
    finished = locust.headless("-f", str(wrong))
    assert finished.code == 1
    assert "wrong.py" in finished.err
    assert "my own" in finished.err


def test_redacted_values_reach_no_file_of_the_run(locust, tmp_path):
    (tmp_path / "s.csv").write_text("id,scenario_name,data_multiplier\n1,a,4000\n2,b,6000777\n")
    finished = locust.headless(
        "--simulate", QUICK, "--scenarios", "s.csv", "--redact", "data_multiplier", "--over", "1s"
    )
    assert {row["outcome"] for row in finished.rows()} == {"accepted"}, finished.err
    assert (finished.folder / "scenarios.csv").read_text() == "id,scenario_name,data_multiplier\n1,a,***\n2,b,***\n"
    assert not [path for path in finished.folder.rglob("*") if path.is_file() and b"6000777" in path.read_bytes()]


def test_a_github_job_gets_the_report_as_its_summary(locust, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    finished = locust.headless("--simulate", QUICK, "--runs", "3", "--over", "1s", GITHUB_STEP_SUMMARY=str(summary))
    assert summary.read_text() == "before\n" + (finished.folder / "report.md").read_text()
