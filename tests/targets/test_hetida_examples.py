"""The files in examples/hetida are valid: parsed by our own readers, and counted."""

import json
from pathlib import Path

import pytest
import yaml

from harness.simulator.profile.file import load_profile
from harness.targets import hetida
from harness.targets.hetida.transformation import parse_transformation
from tests.support.schedule_files import read_schedule

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/hetida"
TRANSFORMATION = json.loads((ROOT / "harness/targets/anomaly_detection.json").read_text())
NODES, CORES = 3, 4


def test_the_wiring_fits_the_transformation():
    found = parse_transformation(TRANSFORMATION, "example", json.loads((EXAMPLES / "wiring.json").read_text()))
    assert found.adapters == {"plants"}
    texts = dict.fromkeys(("mode", "revision-group", "expect-output", "callback-url", "transformation"), "")
    prepared = hetida.prepare(texts | {"wiring": str(EXAMPLES / "wiring.json")}, simulated=True)
    assert "2026-01-15T07:00:00Z" in prepared.options["wiring"]


def test_burst_and_spread_are_the_same_executions_in_an_hour():
    burst, spread = (
        list(read_schedule("stages", EXAMPLES / f"hourly-{name}.yaml").offsets(7)) for name in ("burst", "spread")
    )
    assert len(burst) == len(spread) == 2000
    assert max(burst) <= 3600
    assert max(spread) <= 3600
    assert len(set(burst)) == 4
    assert len(set(spread)) > 1900


@pytest.mark.parametrize("pattern", [1, 2, 3])
def test_the_deployments_are_the_profiles(pattern):
    deployment = yaml.safe_load((EXAMPLES / f"runtime-pattern-{pattern}.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    simulated = load_profile(f"hetida-pattern-{pattern}").hetida.runtime
    assert (simulated.nodes, simulated.cores) == (NODES, CORES)
    assert deployment["spec"]["replicas"] == simulated.replicas
    workers = min(int(environment["MAX_WORKERS"]), CORES * int(environment["WORKERS_PER_CORE"]))
    assert workers == simulated.workers
    requested = float(container["resources"]["requests"]["cpu"].removesuffix("m")) / 1000
    assert requested * simulated.replicas / NODES < CORES, "they fit their nodes"


def test_the_compose_file_has_the_balancer_before_every_runtime():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    upstream = (EXAMPLES / "nginx.conf").read_text()
    runtimes = {name for name in services if name.startswith("runtime-")}
    assert runtimes == {name for name in runtimes if f"server {name}:8090" in upstream}
    assert set(services["balancer"]["depends_on"]) == runtimes
    assert "balancer:8090" in services["backend"]["environment"]["HETIDA_DESIGNER_RUNTIME_ENGINE_URL"]


def test_the_compose_files_adapter_is_a_command_of_ours():
    import argparse

    from harness.cli.platform import adapter

    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["adapter"]
    parser = argparse.ArgumentParser()
    adapter.configure(parser)
    assert service["command"][:3] == ["pipeswarm", "simulate", "adapter"]
    assert parser.parse_args(service["command"][3:]).capacity == 24


def test_the_example_agrees_with_what_its_code_says_of_itself():
    namespace: dict = {}
    source = TRANSFORMATION["content"].replace("import pandas as pd", "")
    exec(source, namespace)
    said = namespace["COMPONENT_INFO"]
    for side in ("inputs", "outputs"):
        ports = {port["name"]: {"data_type": port["data_type"]} for port in TRANSFORMATION["io_interface"][side]}
        assert said[side] == ports
    assert said["id"] == TRANSFORMATION["id"]


def test_the_example_finds_the_outlier():
    import pandas as pd

    namespace: dict = {}
    exec(TRANSFORMATION["content"], namespace)
    series = pd.Series([1.0, 1.1, 0.9] * 10 + [9.0] + [1.0] * 5)
    found = namespace["main"](series=series, window=20, threshold=3.0)
    assert found["anomalies"].index.tolist() == [30]
    assert found["score"] > 3
