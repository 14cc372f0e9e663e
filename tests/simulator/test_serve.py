"""The served platform as a process: how it starts, tells its address, and ends."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from harness.model.errors import ExitCode
from harness.simulator.commands import main
from tests.support.platforms import UNCACHED
from tests.support.serving import QUICK, Serve

MODULE = [sys.executable, "-m", "harness.simulator"]


def start(*arguments: str) -> "subprocess.Popen[str]":
    command = [*MODULE, "serve", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_first_line_has_the_address_and_the_rest_the_usage(tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    process = start("--fault", "store-full@30s:0.8", "--seed", "7", "--ready-file", str(ready_file))
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    try:
        with urllib.request.urlopen(ready["url"] + "/apis/v2beta1/healthz") as answer:
            assert answer.status == 200
        assert ready == json.loads(ready_file.read_text())
        assert (ready["profile"], ready["fault"], ready["seed"]) == ("demo", "store-full@30s:0.8", 7)
        assert ready["pid"] == process.pid
        kubeconfig = Path(ready["kubeconfig"])
        assert ready["url"] in kubeconfig.read_text()
        assert kubeconfig.stat().st_mode & 0o077 == 0
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    assert f"export KF_PIPELINES_ENDPOINT={ready['url']}" in err
    assert f"export KUBECONFIG={ready['kubeconfig']}" in err
    assert not kubeconfig.exists()


def test_it_ends_with_its_parent() -> None:
    script = (
        "import subprocess, sys\n"
        f"p = subprocess.Popen({[*MODULE, 'serve', '--die-with-parent']!r}, stdout=subprocess.PIPE, text=True)\n"
        "print(p.stdout.readline(), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    pid = json.loads(done.stdout)["pid"]
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} outlived its parent")


@pytest.mark.parametrize(
    ("arguments", "wrong", "hint"),
    [
        (["--profile", "dmo"], "no simulated platform 'dmo'", "did you mean 'demo'?"),
        (["--profile", "no/such.yaml"], "no/such.yaml does not exist", "give the path of a YAML file"),
        (["--fault", "store-ful"], "no fault 'store-ful'", "did you mean 'store-full'?"),
        (["--fault", "store-full@soon"], "'soon' is not a duration", "90s"),
        (["--fault", "store-full:-1"], "strength '-1'", "above 0"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: list[str], wrong: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    said = capsys.readouterr().err
    assert wrong in said
    assert hint in said


def test_a_port_in_use_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "can't listen on 127.0.0.1" in capsys.readouterr().err


def test_profiles_and_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"demo", "kfp-default-install", "aks-20-nodes", "spot-pool"} <= listed["profiles"].keys()
    assert "store-full" in listed["faults"]
    assert main(["profiles"]) == 0
    assert "demo" in capsys.readouterr().out


def test_listing_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom harness.simulator.commands import main\nmain(['profiles'])\n"
        "sys.exit(str([m for m in ('aiohttp', 'numpy', 'pandas', 'kfp') if m in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_a_simulation_without_a_server_imports_no_server() -> None:
    script = (
        "import sys, harness.simulator.fast\nsys.exit(str([m for m in ('aiohttp', 'numpy') if m in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def submitted(url: str, count: int) -> None:
    spec = yaml.safe_load(UNCACHED)
    for number in range(count):
        body = json.dumps({"display_name": f"run-{number}", "pipeline_spec": spec}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{url}/apis/v2beta1/runs", body)) as answer:
            assert answer.status == 200


def overslept(*arguments: str) -> tuple[int, str]:
    """A platform with work to do that the machine holds up for some seconds; its exit code and what it says."""
    process = start("--seed", "1", *arguments)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        submitted(json.loads(process.stdout.readline())["url"], 20)
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        process.send_signal(signal.SIGCONT)
        for line in process.stderr:
            if "behind the wall clock" in line:
                break
        if line.startswith("warning"):  # it runs until it is stopped
            process.send_signal(signal.SIGTERM)
        return process.wait(20), line
    finally:
        process.kill()
        process.communicate()


def test_a_simulation_that_is_late_says_so_and_goes_on() -> None:
    code, line = overslept()
    assert code == 0
    assert re.match(r"warning: the simulation was [2-9]\.\d s behind the wall clock", line)


def test_a_strict_simulation_that_is_late_ends_with_an_error() -> None:
    code, line = overslept("--strict")
    assert code == ExitCode.BUG
    assert re.match(r"error: the simulation was [2-9]\.\d s behind the wall clock", line)


def test_the_root_lists_the_apis_and_the_injected_faults(serve: Serve) -> None:
    platform = serve("--fault", "store-full@30s:0.8")
    with urllib.request.urlopen(platform.url + "/") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    assert "Faults injected: store-full@30s:0.8" in text
    assert all(f"\n{path} " in text for path in ("/api, /apis", "/apis/v2beta1", "/metrics"))


def test_clients_that_reset_their_connections_are_ignored() -> None:
    process = start("--profile", "demo")
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    host, port = url.removeprefix("http://").split(":")
    for _ in range(5):
        client = socket.create_connection((host, int(port)))
        client.sendall(f"GET /api/v1/nodes?watch=1 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert client.recv(12) == b"HTTP/1.1 200"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing is a reset
        client.close()
    with urllib.request.urlopen(f"{url}/api/v1/nodes") as answer:
        name = json.loads(answer.read())["items"][0]["metadata"]["name"]
    patch = urllib.request.Request(
        f"{url}/api/v1/nodes/{name}", b'{"metadata": {"labels": {"a": "b"}}}', method="PATCH"
    )
    patch.add_header("Content-Type", "application/merge-patch+json")
    with urllib.request.urlopen(patch) as answer:  # now there is something to tell them
        assert answer.status == 200
    with urllib.request.urlopen(f"{url}/api/v1/nodes?watch=1&timeoutSeconds=1") as answer:
        answer.read()
    process.terminate()
    _, said = process.communicate(timeout=20)
    assert "Traceback" not in said


def test_a_client_that_hangs_up_has_its_run_made_all_the_same(serve: Serve) -> None:
    platform = serve(profile=QUICK.replace("latency: 1ms", "latency: 500ms"))
    host, port = platform.url.removeprefix("http://").split(":")
    body = json.dumps({"display_name": "left alone", "pipeline_spec": yaml.safe_load(UNCACHED)}).encode()
    head = f"POST /apis/v2beta1/runs HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as client:
        client.sendall(head.encode() + body)
    deadline = time.monotonic() + 20
    while (runs := fetched(f"{platform.url}/apis/v2beta1/runs")) == b"{}":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert json.loads(runs)["runs"][0]["display_name"] == "left alone"
    assert re.search(
        rb'grpc_server_handled_total{grpc_method="CreateRun".*"Canceled"} 1', fetched(f"{platform.url}/metrics")
    )


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())
