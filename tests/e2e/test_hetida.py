"""hetida designer as a user loads it: against the served simulation, and against a real installation where there is one.

``PIPESWARM_HETIDA_BACKEND`` (the address that ends in /api or /hdapi) and ``PIPESWARM_HETIDA_RUNTIME`` name a real one.
"""

import json
import os
from pathlib import Path

import pytest

from harness.model.phases import BACKEND, COMPUTING, LOADING, QUEUED
from harness.store import RunFolder
from tests.e2e.conftest import ROOT, serve

RECORDED = ROOT / "tests/targets/recorded_hetida/runtime_request.json"
COMPONENT = ROOT / "harness/targets/anomaly_detection.json"
# Everything is over within a moment.
QUICK = """
pools: [{name: runtime, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
hetida:
  runtime: {nodes: 1, cores: 4, replicas: 2, workers: 2, balancing: least-connections}
  backend: {prepare_s: 2ms}
  adapters: [{id: plants, capacity: 8}]
  executions: [{load: 10ms, compute: 20ms, send: 10ms}]
"""
MODES = ("backend", "async", "runtime")
REAL = {
    "backend": "PIPESWARM_HETIDA_BACKEND",
    "async": "PIPESWARM_HETIDA_BACKEND",
    "runtime": "PIPESWARM_HETIDA_RUNTIME",
}


@pytest.fixture
def quick(tmp_path):
    path = tmp_path / "quick-hetida.yaml"
    path.write_text(QUICK)
    return str(path)


@pytest.fixture
def hetida(locust):
    locust.locustfile = ROOT / "locustfiles/hetida.py"
    return locust


def direct(place: Path) -> str:
    """The component with a series that comes with the request: it needs no adapter."""
    document = json.loads(COMPONENT.read_text())
    series = {f"2026-01-01T00:{minute:02d}:00Z": 1.0 + minute % 3 for minute in range(30)}
    document["test_wiring"]["input_wirings"][0] = {
        "workflow_input_name": "series", "adapter_id": "direct_provisioning", "filters": {"value": json.dumps(series)},
    }  # fmt: skip
    document["test_wiring"]["output_wirings"] = []
    path = place / "component.json"
    path.write_text(json.dumps(document))
    return str(path)


def phases(finished):
    return {each["name"]: each["mean_s"] for each in finished.report()["phases"]["phases"] if each["mean_s"]}


@pytest.mark.parametrize("mode", MODES)
def test_without_a_host_a_simulated_installation_is_loaded(hetida, quick, mode):
    finished = hetida.headless(
        "--mode", mode, "--simulate", quick, "--schedule", "spread", "--runs", "20", "--over", "2s",
        "--slo", "failed_ratio < 0.01", "--expect-output", "score",
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    report = finished.report()
    assert report["validity"]["verdict"] == "VALID"
    assert report["ledger"]["intended"] == report["ledger"]["succeeded"] == 20
    shares = phases(finished)
    assert {QUEUED, LOADING, COMPUTING} <= shares.keys()
    assert (BACKEND in shares) == (mode != "runtime")
    assert shares[COMPUTING] == pytest.approx(0.02, rel=0.2)
    total = report["phases"]["mean_total_s"]
    assert sum(shares.values()) == pytest.approx(total, abs=1e-6), "the phases add up to the whole"
    assert RunFolder.open(finished.folder).read_plan().target_options["mode"] == mode


def test_the_default_is_scaling_pattern_1(hetida):
    finished = hetida.headless("--runs", "2", "--over", "1s")
    assert finished.code == 0, finished.err
    assert "simulated platform 'hetida-pattern-1'" in finished.err


def test_an_output_that_is_not_as_expected_fails_the_run_and_its_error_is_grouped(hetida, quick):
    finished = hetida.headless(
        "--simulate",
        quick,
        "--runs",
        "5",
        "--over",
        "1s",
        "--expect-output",
        "score > 1000",
        "--slo",
        "failed_ratio < 0.5",
    )
    assert finished.code == 3, finished.err + finished.out
    assert finished.report()["ledger"]["failed"] == 5
    (group,) = finished.report()["errors"]
    assert group["count"] == 5
    assert "expected score" in group["message"]


def test_two_processes_share_the_executions_and_all_their_phases_arrive(hetida, quick):
    finished = hetida.headless("--processes", "2", "--simulate", quick, "--runs", "20", "--over", "2s")
    assert finished.code == 0, finished.err + finished.out
    assert finished.report()["ledger"]["succeeded"] == 20
    assert {row["worker"] for row in finished.rows()} == {0, 1}
    spans = [json.loads(line) for line in (finished.folder / "spans.jsonl").read_text().splitlines()]
    assert len({span["run"] for span in spans if span["phase"] == COMPUTING}) == 20


def test_scenarios_that_do_not_fit_are_refused_before_the_first_arrival(hetida, quick, tmp_path):
    (tmp_path / "bad.csv").write_text("id,scenario_name,window,plant\n1,a,wide,7\n")
    finished = hetida.headless("--simulate", quick, "--scenarios", str(tmp_path / "bad.csv"))
    assert finished.code == 2
    assert "column plant" in finished.err
    (tmp_path / "bad.csv").write_text("id,scenario_name,window\n1,a,wide\n")
    finished = hetida.headless("--simulate", quick, "--scenarios", str(tmp_path / "bad.csv"))
    assert finished.code == 2
    assert "'wide' is not a NUMBER_INTEGER" in finished.err


def test_a_backend_that_knows_no_such_transformation_is_a_bad_configuration(hetida, quick):
    process, served = serve("--profile", quick)
    try:
        finished = hetida.headless("--host", served.url, "--transformation", "6b1f0c52-0000-4f55-9a53-6f1f3a1b7d01")
    finally:
        process.terminate()
        process.wait(20)
    assert finished.code == 2, finished.err
    assert "no transformation" in finished.err


@pytest.mark.parametrize(
    ("mode", "counted", "code", "says"),
    [
        ("backend", "failed", 3, "Failure while calling the runtime"),
        ("runtime", "rejected", 3, "does not answer"),
        ("async", "in_flight", 4, ""),
    ],
)
def test_a_worker_that_is_killed_is_a_500_a_closed_connection_or_a_callback_that_never_comes(
    hetida, tmp_path, mode, counted, code, says
):
    hanging = QUICK.replace("compute: 20ms", "compute: 60s").replace("workers: 2,", "workers: 2, timeout_s: 1s,")
    (tmp_path / "hanging.yaml").write_text(hanging)
    finished = hetida.headless(
        "--simulate", str(tmp_path / "hanging.yaml"), "--mode", mode, "--runs", "4", "--over", "1s", "--drain", "4s",
        "--slo", "succeeded_ratio > 0.9",
    )  # fmt: skip
    assert finished.code == code, finished.err + finished.out
    report = finished.report()
    assert report["ledger"][counted] == 4
    assert says in "".join(group["message"] for group in report["errors"])


@pytest.mark.parametrize("mode", MODES)
def test_a_real_installation_is_loaded(hetida, tmp_path, mode):
    host = os.environ.get(REAL[mode], "")
    if not host:
        pytest.skip(f"{REAL[mode]} names no real installation of hetida designer")
    given = str(RECORDED) if mode == "runtime" else direct(tmp_path)
    finished = hetida.headless(
        "--host", host, "--mode", mode, "--transformation", given, "--runs", "6", "--over", "6s",
        "--slo", "failed_ratio < 0.01",
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    assert finished.report()["ledger"]["succeeded"] == 6
    assert phases(finished)[COMPUTING] > 0
