"""What a fault has the cluster state, as operators' clients see it."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import kfp
import pytest
from kubernetes import client as kubernetes
from kubernetes import config

from harness.model import ConfigError
from harness.model.errors import ExitCode
from harness.reasons import builtin
from harness.simulator.commands import main
from harness.simulator.faults import parse_fault
from tests.support.kubectl import started
from tests.support.serving import Serve, Served

ROWS = {row.name: row for row in builtin().rows}


def shown(platform: Served, kind: str) -> list[Any]:
    """The objects of a kind in all namespaces; with kubectl where it is installed."""
    if shutil.which("kubectl"):
        command = ["kubectl", "--kubeconfig", platform.kubeconfig, "get", kind, "-A", "-o", "json"]
        return list(json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)["items"])
    core = kubernetes.CoreV1Api(config.new_client_from_config(platform.kubeconfig))
    listed = {"events": core.list_event_for_all_namespaces, "pods": core.list_pod_for_all_namespaces,
              "nodes": core.list_node}[kind](_preload_content=False)  # fmt: skip
    return list(json.loads(listed.data)["items"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("untolerated-taint", "events"),
        ("secret-missing", "pods"),
        ("claim-without-class", "events"),
        ("node-disk-pressure", "nodes"),
    ],
)
def test_clients_of_the_served_platform_see_what_is_stated(serve: Serve, training: Path, name: str, kind: str) -> None:
    platform = serve("--fault", f"stated:{name}:1")
    started(kfp.Client(host=platform.url), training)
    text, deadline = ROWS[name].examples[0], time.monotonic() + 60
    while not any(text in json.dumps(each, ensure_ascii=False).replace('\\"', '"') for each in shown(platform, kind)):
        assert time.monotonic() < deadline, text
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("stated:untolerated-taints-of-mine", "did you mean"),
        ("stated:", "no row of the catalogue is called ''"),
        ("stated:secret-missing:1.5", "share of the runs, up to 1"),
        ("stated:secret-missing@soon", "soon"),
    ],
)
def test_a_fault_that_states_nothing_is_refused(fault: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_fault(fault)
    assert says in f"{caught.value} {caught.value.hint}"
    assert main(["serve", "--port", "0", "--fault", fault]) == ExitCode.BAD_CONFIG
    capsys.readouterr()


def test_a_fault_has_its_share_of_the_runs_by_default_and_when_it_is_written() -> None:
    plan = parse_fault("stated:secret-missing@30s")
    assert plan is not None
    assert (plan.name, plan.at_s, plan.strength) == ("stated:secret-missing", 30.0, 0.5)
    assert parse_fault(str(plan)) == plan
