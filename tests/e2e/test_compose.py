"""docker-compose.yml without a container engine: its structure, and its commands as local processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from importlib import resources

import configargparse
import pytest
import yaml
from jsonschema.validators import validator_for

from harness.cli.verbs import parse
from harness.model.errors import ConfigError
from harness.plan.kubeconfig import read_access
from harness.plan.options import register
from harness.targets.discovery import find
from tests.support.e2e import BIN, QUICK, ROOT, free_port

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]


def compose_errors(document):
    """Validate against the compose specification (compose-spec.json of github.com/compose-spec/compose-spec)."""
    vendored = resources.files("check_jsonschema.builtin_schemas.vendor") / "compose-spec.json"
    schema = json.loads(vendored.read_text(encoding="utf-8"))
    return [error.message for error in validator_for(schema)(schema).iter_errors(document)]


def test_it_keeps_to_the_compose_specification():
    assert compose_errors(COMPOSE) == []


@pytest.mark.parametrize(
    ("service", "wrong"),
    [("worker", {"comand": ["locust"]}), ("master", {"ports": "8089:8089"}), ("platform", {"healthcheck": {"intervall": "2s"}}),
     ("master", {"depends_on": {"platform": {"condition": "healthy"}}})],
)  # fmt: skip
def test_violations_of_the_specification_are_found(service, wrong):
    services = {**SERVICES, service: {**SERVICES[service], **wrong}}
    assert compose_errors({**COMPOSE, "services": services})


def test_every_name_it_uses_is_declared():
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", ())) <= SERVICES.keys(), name
        for mount in service.get("volumes", ()):
            source = re.sub(r"\$\{.*?\}", "", mount).split(":")[0]
            known = (ROOT / source).exists() if source.startswith("./") else source in {"", *COMPOSE["volumes"]}
            assert known, mount
        for port in service.get("ports", ()):
            assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), "published to this machine only"
        waited = service.get("depends_on", {})
        for other in waited if isinstance(waited, dict) else ():
            assert waited[other]["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]


def test_every_service_belongs_to_one_profile_and_needs_no_other():
    profile_of = {name: service["profiles"] for name, service in SERVICES.items()}
    assert {tuple(each) for each in profile_of.values()} == {("demo",), ("hetida",), ("outside",)}
    for name, service in SERVICES.items():
        assert all(profile_of[other] == profile_of[name] for other in service.get("depends_on", ())), name
    published = [(*profile_of[name], port) for name, service in SERVICES.items() for port in service.get("ports", ())]
    assert len(published) == len(set(published))
    assert {each for each in profile_of if "127.0.0.1:8089:8089" in SERVICES[each].get("ports", ())} == {
        "master", "hetida", "outside",
    }  # fmt: skip


def test_without_a_profile_it_is_the_demo():
    assert "COMPOSE_PROFILES=demo" in (ROOT / ".env").read_text().splitlines()


def locust_options(service, locustfile):
    """The command of a service, as the locustfile's options are parsed; some of Locust's own are among them."""
    program, *words = SERVICES[service]["command"]
    assert program == "locust"
    assert words[:2] == ["-f", f"locustfiles/{locustfile}.py"]
    parser = configargparse.ArgumentParser(allow_abbrev=False)
    for option in ("-f", "--web-host", "--host"):
        parser.add_argument(option)
    register(parser, find(locustfile))
    return parser.parse_args(words)


def test_the_load_of_hetida_goes_to_its_backend_with_wiring_for_an_adapter_that_this_knows():
    options = locust_options("hetida", "hetida")
    assert options.host == "http://backend:8090/api"
    wiring = json.loads((ROOT / "examples" / options.wiring).read_text())
    used = {each["adapter_id"] for each in wiring["input_wirings"]} - {"direct_provisioning"}
    adapters = [each.split("|") for each in SERVICES["backend"]["environment"]["HETIDA_DESIGNER_ADAPTERS"].split(",")]
    assert used <= {name for name, *_ in adapters}
    for _, _, outside, inside in adapters:
        assert outside == inside
        assert re.fullmatch(r"http://([\w-]+):8092", inside)[1] in SERVICES


def test_outside_starts_with_neither_cluster_nor_address(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    assert locust_options("outside", "kfp").host is None
    with pytest.raises(ConfigError):
        read_access("")


def test_our_services_share_one_image_and_others_name_theirs():
    ours = {name for name, service in SERVICES.items() if service.get("build") == "."}
    assert ours == {"platform", "master", "worker", "hetida", "adapter", "outside"}
    assert {SERVICES[name]["image"] for name in ours} == {"pipeswarm"}
    assert all(service["image"] for service in SERVICES.values())
    assert "container_name" not in SERVICES["worker"], "it must be scalable"
    assert "ports" not in SERVICES["worker"], "it must be scalable"


def test_the_image_is_slim_copies_existing_files_and_does_not_run_as_root():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:] for line in lines if line.startswith("COPY") and "--from" not in line]
    for words in copied:
        sources = [word for word in words if not word.startswith("--")][:-1]
        assert all((ROOT / source).exists() for source in sources), words
    last_stage = lines[max(k for k, line in enumerate(lines) if line.startswith("FROM")) :]
    assert [line for line in last_stage if line.startswith("USER")] == ["USER 10001"]
    (base,) = [line.partition("=")[2] for line in lines if line.startswith("ARG BASE=")]
    assert base.partition("@")[0].endswith("-slim")
    assert {line.split()[1] for line in lines if line.startswith("FROM")} == {"$BASE"}


def test_hadolint_accepts_the_dockerfile():
    done = subprocess.run([BIN / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_promtool_accepts_the_configuration():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on this machine: install Debian's package prometheus")
    command = [promtool, "check", "config", str(ROOT / "deploy/prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def as_local(service, ports, shared):
    """The command of a service, with the ports, shared volume and programs of this machine."""
    host = {"http://platform:8888": f"http://127.0.0.1:{ports['platform']}", "0.0.0.0": "127.0.0.1"}
    here = {
        "0.0.0.0:9646": "127.0.0.1:0",  # any free port
        **host, "/shared/kubeconfig": f"{shared}/kubeconfig", "8888": str(ports["platform"]), "master": "127.0.0.1",
        "demo": QUICK, "training.yaml": str(ROOT / "harness/targets/training.yaml"),
        "locustfiles/kfp.py": str(ROOT / "locustfiles/kfp.py"),
    }  # fmt: skip
    program, *words = SERVICES[service]["command"]
    return [str(BIN / program), *(here.get(word, word) for word in words)]


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(command, **environment):
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, **environment},
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_the_same_commands_as_local_processes_complete_a_distributed_test(start, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    ports = {"platform": free_port(), "bus": str(free_port())}
    parse(as_local("platform", ports, shared)[1:])  # the real parser knows every option
    start(as_local("platform", ports, shared))
    deadline = time.monotonic() + 60
    check = SERVICES["platform"]["healthcheck"]["test"]
    probe = check[3].replace("8888", str(ports["platform"]))
    while subprocess.run([sys.executable, *check[2:3], probe], check=False, capture_output=True).returncode:
        assert time.monotonic() < deadline, "the platform's health check failed"
        time.sleep(0.2)
    given = SERVICES["master"]["environment"].items()
    environment = {name: text.replace("/shared", str(shared)) for name, text in given if text}  # none: passed on
    workers = [start([*as_local("worker", ports, shared), "--master-port", ports["bus"]]) for _ in range(2)]
    master = start(
        [*as_local("master", ports, shared), "--headless", "--expect-workers", "2", "--master-bind-port", ports["bus"],
         "--runs", "10", "--over", "2s", "--run-name", "composed"],
        **environment,
    )  # fmt: skip
    out, _ = master.communicate(timeout=120)
    assert "10/10" in out, out
    assert master.returncode in {0, 4}, out  # on a busy machine arrivals may be late
    spans = (tmp_path / "runs/composed/spans.jsonl").read_text()
    assert '"source":"kubernetes"' in spans, "the cluster was not observed through the shared kubeconfig"
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(20)
    assert urllib.request.urlopen(f"http://127.0.0.1:{ports['platform']}/apis/v2beta1/healthz").status == 200
