"""What Locust's users know works: configuration files, the environment, their own users and listeners."""

import csv
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.targets.kfp.pipeline import read_pipeline
from tests.support.e2e import FEW, PIPELINE, QUICK, ROOT, Finished, Locust

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


@dataclass
class Configured:
    """A test of which a file and the environment say how it runs."""

    finished: Finished
    place: Path
    summary: str


@pytest.fixture(scope="module")
def configured(tmp_path_factory):
    locust = Locust(place := tmp_path_factory.mktemp("configured"))
    conf = (
        f"headless = true\nsimulate = {QUICK}\nruns = 7\nover = 1s\nusers = 50\nspawn-rate = 50\ntags = [of-my-users]\n"
    )
    (place / "locust.conf").write_text(conf + 'slo = ["failed_ratio < 0.5", "max(run.duration) < 1m"]\n')
    (place / "summary.md").write_text("before\n")
    variables = {"PIPESWARM_RUNS": "4", "LOCUST_CSV": "figures", "GITHUB_STEP_SUMMARY": str(place / "summary.md")}
    finished = locust.finish(locust.start("--run-name", "told", **variables))
    return Configured(finished, place, (place / "summary.md").read_text())


def test_options_come_from_locust_conf_and_the_environment(configured):
    finished = configured.finished
    assert len(finished.rows()) in {4, 7}, finished.err
    assert len(finished.rows()) == 4, "the environment wins over the file, as in Locust"
    assert finished.folder.name == "told"
    assert (configured.place / "figures_stats.csv").is_file()
    assert [slo["text"] for slo in finished.report()["slos"]] == ["failed_ratio < 0.5", "max(run.duration) < 1m"]
    assert "tasks" not in finished.err, "tags select among the tasks of other users"


def test_with_an_open_schedule_a_note_says_that_users_are_ignored(configured):
    assert configured.finished.err.count("-u 50 is ignored by --schedule spread") == 1


def test_a_github_job_gets_the_report_as_its_summary(configured):
    assert configured.summary == "before\n" + (configured.finished.folder / "report.md").read_text()


def test_other_users_in_the_locustfile_run_beside_the_schedule(locust, shared_platform, tmp_path):
    mixed = tmp_path / "mixed.py"
    mixed.write_text(LOCUSTFILE)
    finished = locust.headless(
        "-f", str(mixed), "--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "-u", "2", "-r", "2",
        "--runs", "4", "--over", "4s", "--csv", "figures", "--html", "page.html", "--json",
        KUBECONFIG=shared_platform.kubeconfig,
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
def test_a_listener_that_raises_ends_with_1_and_the_locustfile_is_named(locust, shared_platform, tmp_path, event):
    troubled = tmp_path / "troubled.py"
    troubled.write_text(LOCUSTFILE.split("class Visitor", maxsplit=1)[0] + LISTENER.format(event=event))
    finished = locust.headless(
        "-f", str(troubled), "--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "--runs", "3", "--over", "1s",
        KUBECONFIG=shared_platform.kubeconfig,
    )  # fmt: skip
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
