"""A real Prometheus, and an observation for the collectors of metrics."""

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.journal import Journal
from harness.model import Plan
from harness.store import RunFolder
from harness.targets.kfp import KfpTarget
from tests.support.servers import until


def observation(tmp_path: Path, recorder: object, **more: object) -> Observation:
    folder = RunFolder(tmp_path)
    settings = ObserverSettings(host="http://x", **more)  # type: ignore[arg-type]
    plan = Plan("kfp", "http://x", {}, 1, 0, False, started_at=time.time_ns())
    return Observation(
        folder=folder, plan=plan, target=KfpTarget({"experiment": ""}), settings=settings, journal=Journal(recorder)
    )  # type: ignore[arg-type]


def prometheus_program() -> str:
    """Its path; the test is skipped without one."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("there is no program 'prometheus' (Debian's package prometheus has it)")
    return program


@contextmanager
def real_prometheus(tmp_path: Path, target: str, **how: object) -> Iterator[str]:
    """A Prometheus that scrapes `target` every second; `how` holds further scrape settings."""
    static = [{"targets": [target.rpartition("//")[2]]}]
    with prometheus_with(
        tmp_path, [{"job_name": "x", "scrape_interval": "1s", "static_configs": static, **how}]
    ) as url:
        yield url


@contextmanager
def prometheus_with(tmp_path: Path, scrapes: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """A Prometheus with these scrape configurations; it keeps its data below `tmp_path`."""
    program = prometheus_program()
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"scrape_configs": list(scrapes)}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: _answers(f"{url}/-/ready"), "Prometheus")
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
