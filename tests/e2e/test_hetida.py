"""Load tests of hetida designer: against the simulation and, if there is one, against a real installation.

``PIPESWARM_HETIDA_BACKEND`` (an address that ends in /api or /hdapi) and ``PIPESWARM_HETIDA_RUNTIME`` name a real one.
"""

import json
import os
import subprocess
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.model.phases import BACKEND, COMPUTING, LOADING, QUEUED
from harness.store import RunFolder
from tests.support.e2e import BIN, ROOT
from tests.support.hetida_platform import RUNTIME_REQUEST
from tests.support.serving import simulated

COMPONENT = ROOT / "harness/targets/anomaly_detection.json"
# Every execution takes a moment.
QUICK = """
pools: [{name: runtime, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
hetida:
  runtime: {nodes: 1, cores: 4, replicas: 2, workers: 2, balancing: least-connections}
  backend: {prepare_s: 2ms}
  adapters: [{id: plants, capacity: 8}]
  executions: [{load: 10ms, compute: 20ms, send: 10ms}]
"""
MODES = ("backend", pytest.param("async", marks=pytest.mark.soak), "runtime")
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


@contextmanager
def adapter(port, errors):
    command = [BIN / "pipeswarm", "simulate", "adapter", "--port", port, "--errors", errors, "--die-with-parent"]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def hetida(locust):
    locust.locustfile = ROOT / "locustfiles/hetida.py"
    return locust


def direct(place: Path) -> str:
    """The component with a series in the request: it needs no adapter."""
    document = json.loads(COMPONENT.read_text())
    series = {f"2026-01-01T00:{minute:02d}:00Z": 1.0 + minute % 3 for minute in range(30)}
    document["test_wiring"]["input_wirings"][0] = {
        "workflow_input_name": "series", "adapter_id": "direct_provisioning", "filters": {"value": json.dumps(series)},
    }  # fmt: skip
    document["test_wiring"]["output_wirings"] = []
    path = place / "component.json"
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture(params=["simulated", "real"])
def installed(request, quick, tmp_path):
    """Options for an installation and a transformation that it can execute in this mode."""

    def options(mode="backend"):
        if request.param == "simulated":
            return ["--mode", mode, "--simulate", quick]
        given = str(RUNTIME_REQUEST) if mode == "runtime" else direct(tmp_path)
        return ["--mode", mode, "--host", real(mode), "--transformation", given]

    options.simulated = request.param == "simulated"
    return options


def real(mode="backend"):
    """The address of a real installation; skips the test if there is none."""
    host = os.environ.get(REAL[mode], "")
    if not host:
        pytest.skip(f"{REAL[mode]} is not set to a real installation of hetida designer")
    return host


def phases(finished):
    return {each["name"]: each["mean_s"] for each in finished.report()["phases"]["phases"] if each["mean_s"]}


@pytest.mark.parametrize("mode", MODES)
def test_executions_succeed_and_their_phases_add_up_to_the_whole(hetida, installed, mode):
    output = "mean" if mode == "runtime" and not installed.simulated else "score"
    finished = hetida.headless(
        *installed(mode), "--schedule", "spread", "--runs", "20", "--over", "4s",
        "--slo", "failed_ratio < 0.01", "--expect-output", output,
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    report = finished.report()
    assert report["validity"]["verdict"] == "VALID"
    assert report["ledger"]["intended"] == report["ledger"]["succeeded"] == 20
    shares = phases(finished)
    assert {QUEUED, LOADING, COMPUTING} <= shares.keys()
    assert (BACKEND in shares) == (mode != "runtime")
    if installed.simulated:
        assert shares[COMPUTING] == pytest.approx(0.02, rel=0.2)
    total = report["phases"]["mean_total_s"]
    assert sum(shares.values()) == pytest.approx(total, rel=1e-5)
    assert RunFolder.open(finished.folder).read_plan().target_options["mode"] == mode


def test_the_default_is_scaling_pattern_1_and_redacted_values_of_a_wiring_are_in_no_file_of_the_run(hetida):
    wired = json.loads(COMPONENT.read_text())["test_wiring"]["input_wirings"]
    assert next(each["filters"]["value"] for each in wired if each["workflow_input_name"] == "threshold")
    finished = hetida.headless("--runs", "2", "--over", "1s", "--redact", "threshold")
    assert finished.code == 0, finished.err
    assert "simulated platform 'hetida-pattern-1'" in finished.err
    options = json.loads((finished.folder / "manifest.json").read_text())["target_options"]
    exported = json.loads((finished.folder / "pipeline.yaml").read_text())
    for wiring in (json.loads(options["wiring"]), exported["test_wiring"]):
        (kept,) = (each for each in wiring["input_wirings"] if each["workflow_input_name"] == "threshold")
        assert kept["filters"]["value"] == "***"


def test_an_unexpected_output_fails_the_run_and_errors_are_grouped(hetida, installed):
    finished = hetida.headless(
        *installed(), "--runs", "5", "--over", "2s", "--expect-output", "score > 1000", "--slo", "failed_ratio < 0.5"
    )
    assert finished.code == 3, finished.err + finished.out
    assert finished.report()["ledger"]["failed"] == 5
    (group,) = finished.report()["errors"]
    assert group["count"] == 5
    assert "expected score" in group["message"]


def test_two_processes_share_the_executions_and_all_their_phases_arrive(hetida, installed):
    finished = hetida.headless("--processes", "2", *installed(), "--runs", "20", "--over", "4s")
    assert finished.code == 0, finished.err + finished.out
    assert finished.report()["ledger"]["succeeded"] == 20
    assert {row["worker"] for row in finished.rows()} == {0, 1}
    spans = [json.loads(line) for line in (finished.folder / "spans.jsonl").read_text().splitlines()]
    assert len({span["run"] for span in spans if span["phase"] == COMPUTING}) == 20


def test_scenarios_that_do_not_fit_are_refused_before_the_first_arrival(hetida, installed, tmp_path):
    options = installed()
    (tmp_path / "bad.csv").write_text("id,scenario_name,window,plant\n1,a,5,7\n")
    finished = hetida.headless(*options, "--scenarios", str(tmp_path / "bad.csv"))
    assert finished.code == 2
    assert "column plant" in finished.err
    (tmp_path / "bad.csv").write_text("id,scenario_name,window\n1,a,wide\n")
    finished = hetida.headless(*options, "--scenarios", str(tmp_path / "bad.csv"))
    assert finished.code == 2
    assert "'wide' is not an integer" in finished.err


UNKNOWN = "6b1f0c52-0000-4f55-9a53-6f1f3a1b7d01"


def test_an_id_is_executed_as_the_backend_has_it_and_an_unknown_one_is_a_bad_configuration(hetida, quick, tmp_path):
    known = json.loads(Path(direct(tmp_path)).read_text())["id"]
    with simulated("--profile", quick) as served:
        put = urllib.request.Request(f"{served.url}/api/transformations/{known}", method="PUT")
        put.add_header("content-type", "application/json")
        urllib.request.urlopen(put, Path(direct(tmp_path)).read_bytes(), timeout=20).close()
        executed = hetida.headless("--host", served.url, "--transformation", known, "--runs", "3", "--over", "1s")
        finished = hetida.headless("--host", served.url, "--transformation", UNKNOWN)
    assert executed.code == 0, executed.err + executed.out
    assert executed.report()["ledger"]["succeeded"] == 3, "inputs have the values of the stored wiring"
    assert finished.code == 2, finished.err
    assert "no transformation" in finished.err


def test_a_real_backend_that_knows_no_such_transformation_is_a_bad_configuration(hetida):
    finished = hetida.headless("--host", real(), "--transformation", UNKNOWN)
    assert finished.code == 2, finished.err
    assert "no transformation" in finished.err


@pytest.mark.parametrize(
    ("mode", "counted", "code", "says"),
    [
        ("backend", "failed", 3, "Failure while calling the runtime"),
        pytest.param("runtime", "rejected", 3, "does not answer", marks=pytest.mark.soak),
        pytest.param("async", "in_flight", 4, "", marks=pytest.mark.soak),
    ],
)
def test_a_killed_worker_means_a_500_a_closed_connection_or_a_missing_callback(
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


@pytest.mark.parametrize("mode", ["backend", "runtime"])
def test_a_component_that_raises_is_a_failed_run_with_its_error_in_a_real_installation(hetida, tmp_path, mode):
    host = real(mode)
    component = json.loads(Path(direct(tmp_path)).read_text())
    component |= {
        "id": "6b1f0c52-7c0e-4f55-9a53-6f1f3a1b7dff",
        "revision_group_id": "6b1f0c52-7c0e-4f55-9a53-6f1f3a1b7dff",
    }
    start, call, rest = component["content"].partition("def main(")
    signature, colon, body = rest.partition(":\n")
    component["content"] = f"{start}{call}{signature}{colon}    raise ValueError('no such plant')\n{body}"
    (tmp_path / "raises.json").write_text(json.dumps(component))
    finished = hetida.headless(
        "--host", host, "--mode", mode, "--transformation", str(tmp_path / "raises.json"), "--runs", "3", "--over", "2s",
        "--slo", "failed_ratio < 0.5",
    )  # fmt: skip
    assert finished.code == 3, finished.err + finished.out
    (group,) = finished.report()["errors"]
    assert group["count"] == 3
    assert "no such plant" in group["message"]


@pytest.mark.parametrize("errors", [0.0, 1.0])
def test_a_real_installation_loads_from_our_adapter_and_sends_to_it(hetida, errors):
    """The real runtime judges our adapter. Its backend must know an adapter 'plants' on this machine."""
    host = real()
    base = host if urlsplit(host).path.strip("/") else f"{host}/api"
    with urllib.request.urlopen(f"{base}/adapters/", timeout=20) as answered:
        urls = {each["id"]: each["internalUrl"] for each in json.load(answered)}
    port = urlsplit(urls.get("plants", "")).port
    if port is None:
        pytest.skip("the real backend has no adapter 'plants' (HETIDA_DESIGNER_ADAPTERS)")
    with adapter(port, errors) as address:
        finished = hetida.headless("--host", host, "--transformation", str(COMPONENT), "--runs", "5", "--over", "4s")
        with urllib.request.urlopen(f"{address}/metrics", timeout=20) as answered:
            metrics = answered.read().decode()
    assert finished.code == 0, finished.err + finished.out
    assert finished.report()["ledger"]["failed" if errors else "succeeded"] == 5
    result = "injected error" if errors else "ok"
    counts = [line for line in metrics.splitlines() if f'path="/timeseries",result="{result}"' in line]
    assert float(counts[0].split()[-1]) >= (5 if errors else 10), "each execution loads one series and sends one"
