"""What Locust's users know works: configuration files, the environment, their own users and listeners."""

import csv
import hashlib
import json

import pytest

from harness.targets.kfp.pipeline import read_pipeline
from tests.support.e2e import QUICK, ROOT

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
    (tmp_path / "locust.conf").write_text(conf + 'slo = ["failed_ratio < 0.5", "max(run.duration) < 1m"]\n')
    finished = locust.finish(locust.start("--run-name", "told", PIPESWARM_RUNS="4", LOCUST_CSV="figures"))
    assert len(finished.rows()) in {4, 7}, finished.err
    assert len(finished.rows()) == 4, "the environment wins over the file, as in Locust"
    assert finished.folder.name == "told"
    assert (tmp_path / "figures_stats.csv").is_file()
    assert [slo["text"] for slo in finished.report()["slos"]] == ["failed_ratio < 0.5", "max(run.duration) < 1m"]
    assert "tasks" not in finished.err, "tags select among the tasks of other users"


def test_other_users_in_the_locustfile_run_beside_the_schedule(locust, platform, tmp_path):
    mixed = tmp_path / "mixed.py"
    mixed.write_text(LOCUSTFILE)
    finished = locust.headless(
        "-f", str(mixed), "--host", platform.url, "--pipeline", PIPELINE, "-u", "2", "-r", "2", "--runs", "4",
        "--over", "4s", "--csv", "figures", "--html", "page.html", "--json", KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code in {0, 4}, finished.err
    with (tmp_path / "figures_stats.csv").open() as text:
        counts = {(row["Type"], row["Name"]): int(row["Request Count"]) for row in csv.DictReader(text)}
    assert counts["SUBMIT", "kfp"] == counts["RUN", "kfp"] == 4
    assert counts["GET", "look"] > 5
    assert (tmp_path / "page.html").is_file()
    assert {row["name"] for row in json.loads(finished.out)} == {"kfp", "look"}, "only Locust's document"
    assert "exit code" in finished.err


@pytest.mark.parametrize("event", ["test_start", "request", "quitting"])
def test_a_listener_that_raises_ends_with_1_and_the_locustfile_is_named(locust, tmp_path, event):
    troubled = tmp_path / "troubled.py"
    troubled.write_text(LOCUSTFILE.split("class Visitor", maxsplit=1)[0] + LISTENER.format(event=event))
    finished = locust.headless("-f", str(troubled), "--simulate", QUICK, "--runs", "3", "--over", "1s")
    assert finished.code == 1 or finished.was_late(), finished.err
    assert finished.was_late() or "exit code 1: code in the locustfile raised" in finished.out
    assert "trouble of the user's own" in finished.err
    assert finished.report()["ledger"]["succeeded"] == 3, "the test itself is unaffected"


def test_a_listener_that_raises_in_init_prevents_the_test(locust, tmp_path):
    troubled = tmp_path / "troubled.py"
    troubled.write_text(LOCUSTFILE.split("class Visitor", maxsplit=1)[0] + LISTENER.format(event="init"))
    finished = locust.headless("-f", str(troubled), "--simulate", QUICK)
    assert (finished.code, finished.folder) == (1, None), finished.err
    assert "troubled.py" in finished.err


def test_a_locustfile_that_can_not_work_says_why(locust, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(LOCUSTFILE.replace('"kfp"', '"kubeflow"'))
    finished = locust.headless("-f", str(wrong))
    assert finished.code == 2, finished.err
    assert "unknown target 'kubeflow'" in finished.err
    assert "Traceback" not in finished.err
    wrong.write_text("raise ValueError('my own')")
    finished = locust.headless("-f", str(wrong))
    assert finished.code == 1
    assert "wrong.py" in finished.err
    assert "my own" in finished.err


def holding(folder, text):
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_redacted_values_are_in_no_file_of_the_run(locust, tmp_path):
    (tmp_path / "s.csv").write_text("id,scenario_name,data_multiplier\n1,a,4000\n2,b,6000777\n")
    finished = locust.headless(
        "--simulate", QUICK, "--scenarios", "s.csv", "--redact", "data_multiplier", "--redact", "url", "--over", "1s"
    )
    assert {row["outcome"] for row in finished.rows()} == {"accepted"}, finished.err
    assert (finished.folder / "scenarios.csv").read_text() == "id,scenario_name,data_multiplier\n1,a,***\n2,b,***\n"
    assert not holding(finished.folder, "6000777")
    default = "https://data.example/plants/north-1.csv"
    assert default in (ROOT / "harness/targets/training.yaml").read_text()
    assert not holding(finished.folder, default)
    plan = json.loads((finished.folder / "manifest.json").read_text())
    assert plan["redacted"] == ["scenarios.csv", "pipeline.yaml"]
    assert plan["digests"]["scenarios"] == hashlib.sha256((tmp_path / "s.csv").read_bytes()).hexdigest()
    kept = read_pipeline(finished.folder / "pipeline.yaml")
    assert {each.name: each.default for each in kept.inputs if each.default == "***"} == {
        "data_multiplier": "***",
        "url": "***",
    }


def test_redacted_values_of_a_wiring_are_in_no_file_of_the_run(locust, tmp_path):
    exported = json.loads((ROOT / "harness/targets/anomaly_detection.json").read_text())
    wired = exported["test_wiring"]["input_wirings"]
    value = next(each["filters"]["value"] for each in wired if each["workflow_input_name"] == "threshold")
    assert value
    locust.locustfile = ROOT / "locustfiles/hetida.py"
    finished = locust.headless("--runs", "3", "--over", "1s", "--redact", "threshold")
    assert {row["outcome"] for row in finished.rows()} == {"accepted"}, finished.err
    options = json.loads((finished.folder / "manifest.json").read_text())["target_options"]
    for document in (
        json.loads(options["wiring"]),
        json.loads((finished.folder / "pipeline.yaml").read_text())["test_wiring"],
    ):
        (kept,) = (each for each in document["input_wirings"] if each["workflow_input_name"] == "threshold")
        assert kept["filters"]["value"] == "***"


def test_a_github_job_gets_the_report_as_its_summary(locust, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    finished = locust.headless("--simulate", QUICK, "--runs", "3", "--over", "1s", GITHUB_STEP_SUMMARY=str(summary))
    # A test that was late is repeated: its report comes first.
    assert summary.read_text().startswith("before\n")
    assert summary.read_text().endswith("\n" + (finished.folder / "report.md").read_text())
