"""Observation without a load of ours, against a served platform."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from harness.cli import main
from harness.collectors.http import Http, Timeouts
from harness.model import Scenario, Span
from harness.model.phases import RUN
from harness.plan.plans import plan_observation
from harness.store import RunFolder
from harness.targets import kfp
from harness.targets.credentials import Credentials
from tests.support.e2e import platform
from tests.support.servers import until

__all__ = ["platform"]


def submit(served, count):
    """A load that is not ours."""
    exchange = Http("other", served.url, Credentials(), Timeouts(5, 30))
    texts = {option.name: option.default for option in kfp.OPTIONS} | {"namespace": "", "experiment": "nightly"}
    prepared = kfp.prepare(texts, simulated=True)
    added = kfp.KfpTarget(prepared.options, package=prepared.package).set_up(exchange)
    target = kfp.KfpTarget({**prepared.options, **added.options})
    return [target.submit(Scenario(str(k), f"nightly-{k}", {}, {}), exchange) for k in range(count)]


def start(served, path, *options, length="10m"):
    command = [
        sys.executable,
        "-P",
        "-m",
        "harness.cli",
        "observe",
        "--for",
        length,
        "--host",
        served.url,
        "--runs-dir",
        str(path / "runs"),
        *options,
    ]
    environment = {**os.environ, "KUBECONFIG": served.kubeconfig}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def folder_of(tmp_path):
    def find():
        until(lambda: list((tmp_path / "runs").glob("*/live.json")), "the first look")
        (path,) = (tmp_path / "runs").iterdir()
        return RunFolder.open(path)

    return find


def test_observed_runs_get_a_folder_and_a_report(platform, tmp_path, folder_of):
    process = start(platform, tmp_path, "--json", "--slo", "failed_ratio <= 0", "--kube-requests", "10/s")
    try:
        folder = folder_of()
        runs = submit(platform, 6)
        until(lambda: folder.read_live("observer").get("runs") == {"SUCCEEDED": 6}, "the runs' end", 90)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 0, out + err
    report = json.loads(out)
    assert report["ledger"]["succeeded"] == len(runs)
    assert report["slos"][0]["met"]
    assert report["phases"]
    assert folder.read_live("observer")["stage"] == "over"
    assert "Ctrl-C" in err
    assert folder.read_plan().intended == 0


@pytest.mark.parametrize("given", [("--kube-requests", "5/s"), ("--metric-profile", "kfp"), ("--redact", "secret")])
def test_beside_a_load_the_plan_says_what_to_observe(given, tmp_path, capsys):
    folder = RunFolder.create(tmp_path, "run")
    folder.write_plan(plan_observation("kfp", "http://127.0.0.1:9", {}, 0))
    assert main(["observe", "--run", str(folder.path), *given]) == 2
    assert f"{given[0]} does not go with --run" in capsys.readouterr().err


def test_a_context_that_is_not_there_leaves_no_folder(platform, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    where = ["--host", platform.url, "--kube-context", "nosuch", "--runs-dir", str(tmp_path / "runs")]
    assert main(["observe", "--for", "1m", *where]) == 2
    assert "no context 'nosuch'" in capsys.readouterr().err
    assert not list((tmp_path / "runs").iterdir())


def test_the_time_ends_it(platform, tmp_path, folder_of):
    process = start(platform, tmp_path, "--quiet", length="1s")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err  # no run was there to be observed
    assert (folder_of().path / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "says", "code"),
    [
        (["--for", "1m"], "KF_PIPELINES_ENDPOINT", 2),
        (["--for", "1m", "--target", "command"], "only a load test starts", 2),
        (["--for", "1m", "--host", "http://127.0.0.1:9"], "does not answer", 5),
        (["--for", "1m", "--host", "http://127.0.0.1:9", "--metrics", "argo"], "NAME=VALUE", 2),
        (["--for", "1m", "--host", "http://127.0.0.1:9", "--metric-profile", "nothing"], "no metric profile 'nothing'", 2),
        (["--for", "1m", "--host", "http://127.0.0.1:9", "--target", "hetida"], "lists no runs", 2),
        (["--for", "1m", "--host", "http://127.0.0.1:9", "--kube-requests", "0"], "--kube-requests: 0 is not above 0", 2),
        (["--for", "1m", "--host", "http://127.0.0.1:9", "--store-probe", "mlpipeline"], "is not a bucket", 2),
        (["--for", "1m", "--host", "http://127.0.0.1:9", "--token-file", "/absent"], "/absent does not exist", 2),
    ],
)  # fmt: skip
def test_an_impossible_observation_is_refused_before_anything_is_made(
    tmp_path, monkeypatch, capsys, options, says, code
):
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    assert main(["observe", *options, "--runs-dir", str(tmp_path / "runs")]) == code
    assert says in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def continuous(served, path):
    command = [
        *(sys.executable, "-P", "-m", "harness.cli", "observe", "--continuous", "--idle-gap", "4s"),
        *("--host", served.url, "--runs-dir", str(path), "--serve-metrics", "0"),
    ]
    environment = {**os.environ, "KUBECONFIG": served.kubeconfig}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def shown(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def test_a_continuous_observation_has_each_run_once_across_batches_and_a_kill(platform, tmp_path):
    served, runs = platform, tmp_path / "runs"

    def observed():
        folders = map(RunFolder.open, sorted(runs.glob("*/manifest.json")) and sorted(runs.iterdir()))
        return [sorted({span.run for span in each.records(Span) if span.phase == RUN}) for each in folders]

    process = continuous(served, runs)
    try:
        url = process.stderr.readline().split()[-1]
        assert "observing into" in process.stderr.readline()
        made = submit(served, 2)
        until(lambda: list(runs.glob("*/report.json")), "the first batch's report", 90)
        until(lambda: b"pipeswarm_observer_requests_total" in shown(url), "what the next batch's observer does", 10)
        made += submit(served, 2)
        until(lambda: sum(map(len, observed())) == 4, "the second batch", 60)
        process.kill()
        process.wait()
        made += submit(served, 1)
        process = continuous(served, runs)
        assert [process.stderr.readline().split()[0] for _ in range(2)] == ["metrics:", "observing"]
        until(lambda: sum(map(len, observed())) == 5, "the run that began while nobody looked", 60)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert sorted(run for runs in observed() for run in runs) == sorted(made)
