"""A real nginx with the example's configuration in front of several runtimes, with and without imbalance."""

import re
import shutil
import subprocess
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack

import pytest

from harness.store import RunFolder
from tests.support.e2e import ROOT, free_port
from tests.support.hetida_platform import RUNTIME_REQUEST
from tests.support.serving import simulated

EXAMPLE = ROOT / "examples/hetida/nginx.conf"
RUNTIMES = 3
HEAVY_MS, LIGHT_MS = 400, 20
# One worker each; an execution takes `busy_ms` milliseconds.
PROFILE = """
pools: [{name: runtime, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
hetida:
  runtime: {nodes: 1, cores: 4, replicas: 1, workers: 1, parse_s: 1ms, names_replicas: false}
  executions: [{load: 0, compute: {fixed: 1ms, parameter: busy_ms}, send: 0}]
"""
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@pytest.fixture
def runtimes(tmp_path):
    (tmp_path / "one-worker.yaml").write_text(PROFILE)
    with ExitStack() as ended:
        addresses = []
        for _ in range(RUNTIMES):
            served = ended.enter_context(simulated("--profile", str(tmp_path / "one-worker.yaml")))
            addresses.append(served.url.removeprefix("http://"))
        yield addresses


@pytest.fixture
def scenarios(tmp_path):
    """Every third execution is heavy: round robin sends them all to the same runtime."""
    rows = (f"{k},s,{HEAVY_MS if k % RUNTIMES == 0 else LIGHT_MS}" for k in range(36))
    (tmp_path / "s.csv").write_text("\n".join(["id,scenario_name,busy_ms", *rows]) + "\n")
    return str(tmp_path / "s.csv")


def configured(place, port, runtimes, *, least_conn):
    text = EXAMPLE.read_text()
    servers = "".join(f"    server {address} max_fails=0;\n" for address in runtimes)
    text, count = re.subn(r"(    server runtime-\d+:8090 max_fails=0;\n)+", servers, text)
    assert count == 1
    text = text.replace("listen 8090 ", f"listen 127.0.0.1:{port} ")
    if not least_conn:
        text = text.replace("    least_conn;\n", "")
    temporary = "".join(
        f"  {kind}_temp_path {place}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {\n", f"http {{\n  access_log off;\n{temporary}")
    path = place / "nginx.conf"
    path.write_text(f"pid {place}/nginx.pid;\nerror_log {place}/error.log;\n{text}")
    return path


def start(place, path, port):
    command = [NGINX, "-p", str(place), "-c", str(path), "-e", f"{place}/error.log", "-g", "daemon off;"]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/engine/info", timeout=60).close()
        except OSError:
            time.sleep(0.1)
        else:
            return process
    raise AssertionError((place / "error.log").read_text())


def work_by_runtime(folder):
    """Seconds of computing by runtime, from nginx's X-Upstream-Addr."""
    from harness.model import Span
    from harness.model.phases import COMPUTING

    work = Counter()
    for span in RunFolder.open(folder).records(Span):
        if span.phase == COMPUTING:
            assert span.node, "the balancer must name the runtime"
            work[span.node] += (span.ended_at - span.started_at) / 1e9
    return work


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed (apt install nginx)")
@pytest.mark.parametrize("least_conn", [False, True], ids=["round robin", "least_conn"])
def test_nginx_balances_executions_by_open_connections(locust, tmp_path, runtimes, scenarios, least_conn):
    port = free_port()
    process = start(tmp_path, configured(tmp_path, port, runtimes, least_conn=least_conn), port)
    locust.locustfile = ROOT / "locustfiles/hetida.py"
    try:
        finished = locust.headless(
            "--host", f"http://127.0.0.1:{port}", "--mode", "runtime", "--transformation", str(RUNTIME_REQUEST),
            "--scenarios", scenarios, "--schedule", "spread", "--runs", "36", "--over", "2s",
        )  # fmt: skip
    finally:
        process.terminate()
        process.wait(20)
    assert finished.code == 0, finished.err + finished.out
    work = work_by_runtime(finished.folder)
    largest = max(work.values()) / sum(work.values())
    if least_conn:
        assert len(work) == RUNTIMES
        assert largest < 0.6
    else:
        assert largest > 0.8, "all heavy executions went to the same runtime"
