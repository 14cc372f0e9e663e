"""The commands of the pods, with other commands in place of the load test."""

import signal

import pytest

from harness.cli.loading.in_pod import main
from harness.in_cluster.orchestrator import packed
from tests.support.e2e import free_port

TABLE = b"id,scenario_name\n1,a\n"


@pytest.fixture(autouse=True)
def handlers():
    """The load's container has its own signal handlers, and so has pytest."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ran(tmp_path, code, *more):
    """The exit code of a test that writes a run folder and ends with `code`."""
    load = ["sh", "-c", f"mkdir -p {tmp_path}/runs/a && exit {code}"]
    return main(["test", "--state", str(tmp_path), *more, "--", *load])


@pytest.mark.parametrize("code", [0, 3, 130])
def test_the_exit_code_is_that_of_the_load(tmp_path, code):
    assert ran(tmp_path, code) == code


@pytest.mark.parametrize(("code", "told"), [(0, 5), (3, 3)])
def test_a_folder_that_can_not_be_stored_spoils_only_a_good_end(tmp_path, monkeypatch, capsys, code, told):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/manifest.json").write_text("{}")
    assert ran(tmp_path, code, "--upload", f"{tmp_path}/runs/a=s3://bucket/a") == told
    assert "error: the run folder was not stored: the object store of s3://bucket/a" in capsys.readouterr().err


def test_a_test_without_a_folder_stores_nothing(tmp_path):
    assert ran(tmp_path, 2, "--upload", f"{tmp_path}/none=s3://bucket/a") == 2


def test_without_its_inputs_no_load_is_started(tmp_path, capsys):
    assert ran(tmp_path, 0, "--fetch", f"bucket/s.csv={tmp_path}/s.csv") == 2
    assert "error: bucket/s.csv is not an address in an object store" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


# A load test: keeps what it was given as its scenarios, writes a report and ends with a code.
STEP = """
while [ $# -gt 0 ]; do case $1 in
  --scenarios) table=$2;; --runs-dir) runs=$2;; --run-name) name=$2;; esac; shift; done
mkdir "$runs/$name" && cp "$table" "$runs/$name/scenarios.csv" && echo report > "$runs/$name/report.html"
exit CODE
"""


@pytest.mark.parametrize(("code", "told"), [(0, 0), (3, 0), (4, 0), (1, 1), (5, 5), (130, 130)])
@pytest.mark.parametrize("kind", ["--text", "--file"])
def test_a_step_with_a_verdict_succeeds_and_leaves_its_outputs(tmp_path, code, told, kind):
    (tmp_path / "s.csv").write_bytes(TABLE)
    given = packed(TABLE, "s.csv") if kind == "--text" else str(tmp_path / "s.csv")
    out = tmp_path / "outputs"
    outputs = ["--run", str(out / "run"), "--report", str(out / "report"), "--exit-code", str(out / "code")]
    step = STEP.replace("CODE", str(code))
    assert main(["orchestrate", kind, given, *outputs, "--", "sh", "-c", step, "load"]) == told
    assert (out / "code").read_text() == str(code)
    assert (out / "report").read_text() == "report\n"
    assert (out / "run/scenarios.csv").read_bytes() == TABLE


def test_a_step_without_a_run_folder_tells_its_code(tmp_path):
    outputs = ["--run", f"{tmp_path}/run", "--report", f"{tmp_path}/report", "--exit-code", f"{tmp_path}/code"]
    assert main(["orchestrate", "--text", packed(TABLE, ""), *outputs, "--", "sh", "-c", "exit 2"]) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["code"]
