"""A served platform for real clients."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Everything is over within two seconds, so that clients can see runs end.
QUICK = """
pools: [{name: pool, cpu: 16, memory: 64Gi, initial: 2, min: 2, max: 3}]
kubelet: {start: 50ms, pull_overhead_s: 50ms, pull_bytes_per_s: 10Gi}
api: {qps: 1000, burst: 1000, latency: 1ms}
controller: {qps: 1000, burst: 1000, operation_s: 1ms, settle_s: 1ms, requeue_s: 20ms, driver: 20ms}
agent: {workers: 8, report_s: 1ms, lag_s: 20ms}
steps: [{match: train, duration: 400ms, output: 1Mi}, {duration: 100ms, output: 1Mi}]
"""


@dataclass(frozen=True)
class Served:
    """A simulated platform in a process of its own."""

    url: str
    kubeconfig: str
    process: subprocess.Popen[str]


@contextmanager
def simulated(*arguments: str, stderr: int | None = None) -> Iterator[Served]:
    """Serve a platform until the end of the block."""
    command = [sys.executable, "-P", "-m", "harness.simulator", "serve", "--port", "0", "--die-with-parent", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr.read() if process.stderr else ""
    ready: dict[str, Any] = json.loads(line)
    try:
        yield Served(ready["url"], ready["kubeconfig"], process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serve a platform; it ends with the tests."""
    with ExitStack() as stack:

        def start(*arguments: str, profile: str = QUICK) -> Served:
            path = tmp_path_factory.mktemp("profile") / "profile.yaml"
            path.write_text(profile)
            return stack.enter_context(simulated("--profile", str(path), *arguments, stderr=subprocess.PIPE))

        yield start


@pytest.fixture(scope="session")
def served(serve: Serve) -> Served:
    """One platform that tests share."""
    return serve()


@pytest.fixture(scope="session")
def training() -> Path:
    """The example pipeline, compiled."""
    return Path(__file__).parents[2] / "harness" / "targets" / "training.yaml"


@pytest.fixture
def environment(served: Served) -> dict[str, str]:
    """The environment of a command-line client."""
    return {**os.environ, "KUBECONFIG": served.kubeconfig}
