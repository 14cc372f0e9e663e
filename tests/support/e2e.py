"""For end-to-end tests: Locust as a user starts it, and a served platform to load."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import forked_locust
from tests.support.punctuality import skip_if_the_machine_is_late
from tests.support.serving import simulated

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
QUICK = str(ROOT / "tests/e2e/quick.yaml")
PIPELINE = str(ROOT / "harness/targets/training.yaml")
FEW = ("--scenarios", str(ROOT / "tests/e2e/few.csv"))  # where it doesn't matter, none are generated
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("LOCUST_", "PIPESWARM_", "KF_"))}
CLEAN["PIPESWARM_NO_WHAT_IF"] = "true"  # as in tests/conftest.py


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(true, seconds=60):
    """Poll `true` until its result is truthy, and return that; errors of what is not ready yet are ignored."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError, ValueError, KeyError):
            if found := true():
                return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")


@dataclass
class Finished:
    code: int
    out: str
    err: str
    folder: Path | None

    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def was_late(self):
        """Whether the lag of the load generator is the only reason why the run is invalid."""
        if self.code != 4 or self.folder is None:
            return False
        reasons = self.report()["validity"]["reasons"]
        return bool(reasons) and all(reason.startswith("arrivals left ") for reason in reasons)

    def rows(self):
        lines = (self.folder / "submissions.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


class Locust:
    """Starts Locust with our locustfile in a folder of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.locustfile = ROOT / "locustfiles/kfp.py"
        self.processes: list[subprocess.Popen] = []

    def start(self, *arguments: str, within: Sequence[str] = (), **environment: str) -> subprocess.Popen:
        """Start Locust; `within` is a command that gets Locust's as its arguments, as `env` or a shell."""
        process = subprocess.Popen(
            [*within, BIN / "locust", *self._all(arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.place,
            env={**CLEAN, **environment},
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def _all(self, arguments: Sequence[str]) -> list[str]:
        runs = () if "--worker" in arguments else ("--runs-dir", self.place / "runs")
        return list(map(str, ("-f", self.locustfile, "--only-summary", *arguments, *runs)))

    def finish(self, process: subprocess.Popen, timeout: float = 120) -> Finished:
        out, err = process.communicate(timeout=timeout)
        return self._finished(process.returncode, out, err)

    def _finished(self, code: int, out: str, err: str) -> Finished:
        folders = sorted((self.place / "runs").glob("*")) if (self.place / "runs").is_dir() else []
        return Finished(code, out, err, folders[-1] if folders else None)

    def _run(self, arguments: Sequence[str], timeout: float, environment: Mapping[str, str]) -> Finished:
        return self._finished(*forked_locust.run(self._all(arguments), self.place, {**CLEAN, **environment}, timeout))

    def headless(
        self, *arguments: str, timeout: float = 120, within: Sequence[str] = (), **environment: str
    ) -> Finished:
        """Run to the end. A test that is INVALID only because this machine is too busy is repeated once.

        That verdict is right, but not what is tested here: load, platform and other tests share two cores.
        """
        for last in (False, True):
            ports = ()
            if "--processes" in arguments:
                port = str(free_port())
                ports = ("--master-bind-port", port, "--master-port", port)
            command = ("--headless", *arguments, *ports)
            if within:
                finished = self.finish(self.start(*command, within=within, **environment), timeout)
            else:
                finished = self._run(command, timeout, environment)
            if not finished.was_late():
                break
            if last:
                skip_if_the_machine_is_late(last=True)
            shutil.rmtree(finished.folder)
        return finished


@pytest.fixture
def locust(tmp_path):
    started = Locust(tmp_path)
    yield started
    for process in started.processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def platform():
    with simulated("--profile", QUICK, "--seed", "7") as served:
        yield served


@pytest.fixture(scope="module")
def shared_platform():
    """One for all tests of a file that may find runs of others on it."""
    with simulated("--profile", QUICK, "--seed", "7") as served:
        yield served
