"""An observer as a process of its own, against the served simulator through the real clients."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import urllib3

from harness.model import Event, Outcome, Plan, Scenario, Span, Submission
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import TERMINAL_STATES
from harness.store import RunFolder
from harness.targets import kfp
from tests.support.servers import until
from tests.support.serving import simulated

TOKEN = "a-bearer-token-of-the-test"


HTTP = urllib3.PoolManager()


@dataclass(frozen=True)
class Simulator:
    url: str
    kubeconfig: str

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        answer = HTTP.request(
            request.method, self.url + request.path, body=request.body or None, headers=dict(request.headers)
        )
        return HttpAnswer(answer.status, answer.data)

    def get(self, path: str) -> Any:
        return HTTP.request("GET", self.url + path).json()


@contextmanager
def serving(profile: str) -> Iterator[Simulator]:
    with simulated("--profile", profile, "--seed", "7", stderr=subprocess.DEVNULL) as served:
        yield Simulator(served.url, served.kubeconfig)


def prepared(simulator: Simulator, tmp_path: Path, name: str, host: str = "") -> tuple[RunFolder, kfp.KfpTarget]:
    """A run folder with a plan, and its target, in an experiment of its own."""
    texts = {option.name: option.default for option in kfp.OPTIONS} | {"namespace": "", "experiment": name}
    found = kfp.prepare(texts, simulated=True)
    plan = Plan(
        "kfp", host or simulator.url, {}, 1, 0, True, target_options=dict(found.options), started_at=time.time_ns()
    )
    added = kfp.from_plan(plan, found.package).set_up(simulator)
    plan = replace(plan, target_options={**plan.target_options, **added.options})
    folder = RunFolder.create(tmp_path, name)
    folder.write_plan(plan)
    return folder, kfp.from_plan(plan)


def start(folder: RunFolder, config: str, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-P", "-m", "harness.cli", "observe", "--run", str(folder.path), *options]
    command += ["--host", folder.read_plan().host]  # the token is for it
    environment = {**os.environ, "KUBECONFIG": config, "PIPESWARM_TOKEN": TOKEN}
    return subprocess.Popen(command, env=environment, stderr=(folder.path / "observer.log").open("ab"))


@contextmanager
def observing(folder: RunFolder, config: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = start(folder, config)
    try:
        until(lambda: folder.read_live("observer"), "the first look")
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def ends(folder: RunFolder) -> dict[str, str]:
    return {event.object: event.reason for event in folder.records(Event) if event.kind == "Run"}


def all_over(simulator: Simulator, runs: list[str]) -> bool:
    """Whether the platform's own records say that these runs are over."""
    return all(simulator.get(f"/apis/v2beta1/runs/{run}")["state"] in TERMINAL_STATES for run in runs)


def assert_each_end_is_recorded_once(folder: RunFolder, runs: list[str]) -> None:
    """As the platform's listing says it, and before, for some, as the cluster shows it."""
    said = Counter((event.source, event.object) for event in folder.records(Event) if event.kind == "Run")
    assert set(said.values()) == {1}
    assert {run for source, run in said if source == "kfp"} == set(runs) >= {run for _, run in said}


def submitted(simulator: Simulator, target: kfp.KfpTarget, folder: RunFolder, count: int) -> list[str]:
    """Submit runs and enter them in the ledger, as a load does."""
    runs = [target.submit(Scenario(str(k), "test", {}, {}), simulator) for k in range(count)]
    now_at = time.time_ns()
    with folder.recorder() as ledger:
        for k, run in enumerate(runs):
            ledger.write(Submission(k, "", "test", now_at, now_at, now_at, Outcome.ACCEPTED, run, 0, 200, None))
    return runs


def last_spans(folder: RunFolder) -> Mapping[str, list[Span]]:
    """The valid spans by step, in order."""
    last = {(span.run, span.step, span.phase, span.attempt): span for span in folder.records(Span)}
    steps: dict[str, list[Span]] = defaultdict(list)
    for span in last.values():
        if span.started_at != span.ended_at:
            steps[span.step or span.run].append(span)
    return {step: sorted(spans, key=lambda span: span.started_at) for step, spans in steps.items()}
