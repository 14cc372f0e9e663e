"""The observer as a process of its own, against the served simulator through the real clients."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3

from harness.model import Event, Node, Outcome, Plan, Sample, Scenario, Span, Submission
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import (
    CLAIM_CAPACITY_BYTES,
    GAP,
    NODE_CPU_CORES,
    OBSERVER_REQUESTS,
    PLATFORM,
    RUN,
    RUNNING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    SUCCEEDED,
    TASK,
    TERMINAL_STATES,
    VERSION,
    WRONG_CLUSTER,
)
from harness.store import RunFolder
from harness.targets import kfp
from harness.targets.kfp.tasks import instant
from tests.support.servers import Proxy, Served, fill, kubeconfig, proxied, small_file_system, until

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
    command = [
        sys.executable,
        "-P",
        "-m",
        "harness.simulator",
        "serve",
        "--profile",
        profile,
        "--seed",
        "7",
        "--port",
        "0",
    ]
    process = subprocess.Popen([*command, "--die-with-parent"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    try:
        yield Simulator(ready["url"], ready["kubeconfig"])
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def demo() -> Iterator[Simulator]:
    with serving("demo") as simulator:
        yield simulator


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with serving(str(Path(__file__).parents[1] / "e2e" / "quick.yaml")) as simulator:
        yield simulator


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


@pytest.fixture(scope="module")
def observed(demo: Simulator, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, list[str]]:
    folder, target = prepared(demo, tmp_path_factory.mktemp("runs"), "whole")
    with observing(folder, demo.kubeconfig):
        assert "ready_nodes" not in folder.read_live("observer"), "no step's pool is known"
        runs = submitted(demo, target, folder, 6)
        until(lambda: len(ends(folder)) == 6, "six ends", 90)
        until(lambda: folder.read_live("observer").get("ready_nodes"), "the nodes of the steps' pool")
    return folder, runs


class TestWholeTest:
    def test_every_run_is_recorded_as_the_platform_says(
        self, demo: Simulator, observed: tuple[RunFolder, list[str]]
    ) -> None:
        folder, runs = observed
        of_runs = {span.run: span for span in folder.records(Span) if span.phase == RUN}
        assert set(of_runs) == set(runs)
        for run in runs:
            told = demo.get(f"/apis/v2beta1/runs/{run}")
            assert ends(folder)[run] == told["state"]
            assert (of_runs[run].started_at, of_runs[run].ended_at) == (
                instant(told["created_at"]),
                instant(told["finished_at"]),
            )
            assert of_runs[run].task == told["display_name"]
        assert_each_end_is_recorded_once(folder, runs)

    def test_every_pod_is_recorded_from_creation_to_end_without_holes(
        self, demo: Simulator, observed: tuple[RunFolder, list[str]]
    ) -> None:
        folder, runs = observed
        steps = last_spans(folder)
        pods = [
            each
            for each in demo.get("/api/v1/pods")["items"]
            if each["metadata"].get("labels", {}).get("pipeline/runid") in runs
        ]
        assert len(pods) == 6 * 7  # a root driver, and a driver and an executor for each of three steps
        for pod in pods:
            spans = steps[pod["metadata"]["name"]]
            created = instant(pod["metadata"]["creationTimestamp"]) or 0
            assert 0 <= spans[0].started_at - created <= 10**9
            assert all(one.ended_at == other.started_at for one, other in pairwise(spans))
            finished = max(each["state"]["terminated"]["finishedAt"] for each in pod["status"]["containerStatuses"])
            ended = spans[-1].ended_at
            assert ended is not None
            assert 0 <= ended - (instant(finished) or 0) <= 10**9
            assert spans[-1].node == pod["spec"]["nodeName"]
        assert {span.task for spans in steps.values() for span in spans if span.phase == RUNNING} >= {
            "prepare",
            "train",
            "evaluate",
        }

    def test_nodes_store_and_use_are_recorded(self, observed: tuple[RunFolder, list[str]]) -> None:
        folder, _ = observed
        assert {node.pool for node in folder.records(Node)} == {"system", "steps"}
        assert all(node.ready_at for node in folder.records(Node) if node.pool == "system")
        samples = folder.records(Sample)
        free = [s.value for s in samples if s.metric == STORE_AVAILABLE_BYTES and s.labels["volume"] == "seaweedfs-pvc"]
        assert free[0] > free[-1] > 0
        assert {
            s.value for s in samples if s.metric == STORE_CAPACITY_BYTES and s.labels["volume"] == "seaweedfs-pvc"
        } == {20 * 2.0**30}
        assert any(s.metric == NODE_CPU_CORES and s.value > 0 for s in samples)

    def test_workflows_claims_and_the_tasks_of_a_few_runs_are_recorded(
        self, observed: tuple[RunFolder, list[str]]
    ) -> None:
        folder, runs = observed
        events, samples = folder.records(Event), folder.records(Sample)
        over = {
            event.run: event.at for event in events if (event.kind, event.reason) == ("Workflow", SUCCEEDED.title())
        }
        assert set(over) == set(runs)
        said = {event.object: event.at for event in events if event.kind == "Run"}
        assert all(-(10**9) <= said[run] - over[run] < 20 * 10**9 for run in runs)
        bound = {event.object for event in events if (event.kind, event.reason) == ("PersistentVolumeClaim", "Bound")}
        assert bound == {"seaweedfs-pvc", "mysql-pv-claim"}
        assert {
            s.value for s in samples if s.metric == CLAIM_CAPACITY_BYTES and s.labels["volume"] == "seaweedfs-pvc"
        } == {20 * 2.0**30}
        tasks = [span for span in folder.records(Span) if span.phase == TASK]
        assert len({span.run for span in tasks}) == 1
        assert {"prepare", "train", "evaluate", "train-driver"} <= {span.task for span in tasks}
        assert all(span.ended_at and span.ended_at >= span.started_at for span in tasks)

    def test_the_cluster_s_version_and_the_nodes_machines_are_recorded(
        self, observed: tuple[RunFolder, list[str]]
    ) -> None:
        folder, _ = observed
        (version,) = (event for event in folder.records(Event) if event.kind == PLATFORM)
        assert (version.object, version.reason, version.message[0]) == ("kubernetes", VERSION, "v")
        assert {node.machine for node in folder.records(Node)} == {"Standard_D4s_v5"}

    def test_the_observer_s_requests_are_counted_and_few(self, observed: tuple[RunFolder, list[str]]) -> None:
        folder, _ = observed
        last = {s.labels["endpoint"]: s.value for s in folder.records(Sample) if s.metric == OBSERVER_REQUESTS}
        assert 0 < last["kfp GET /apis/v2beta1/runs"] <= 10
        assert last["kfp GET /apis/v2beta1/runs/*"] == 1
        assert (
            sum(count for endpoint, count in last.items() if "WATCH" in endpoint) <= 12
        )  # six, and each once more at the end
        assert folder.read_live("observer")["runs"] == {SUCCEEDED: 6}

    def test_no_secret_is_in_the_folder(self, observed: tuple[RunFolder, list[str]]) -> None:
        folder, _ = observed
        for path in folder.path.rglob("*"):
            if path.is_file():
                assert TOKEN.encode() not in path.read_bytes(), path


def test_restarted_after_a_kill_it_resumes_and_records_nothing_twice(simulator: Simulator, tmp_path: Path) -> None:
    folder, target = prepared(simulator, tmp_path, "killed")
    first = start(folder, simulator.kubeconfig)
    until(lambda: folder.read_live("observer"), "the first look")
    runs = submitted(simulator, target, folder, 3)
    until(lambda: any(span.phase == RUNNING for span in folder.records(Span)), "a pod that runs")
    first.kill()
    first.wait()
    with observing(folder, simulator.kubeconfig):
        until(lambda: set(ends(folder)) == set(runs), "three ends", 90)
    assert_each_end_is_recorded_once(folder, runs)
    cluster = [(e.kind, e.object, e.reason, e.at, e.message) for e in folder.records(Event) if e.source == "kubernetes"]
    assert len(cluster) == len(set(cluster))
    for spans in last_spans(folder).values():
        assert spans[-1].ended_at is not None


def test_constant_network_failures_lose_no_run_and_no_pod(simulator: Simulator, tmp_path: Path) -> None:
    port = urlsplit(simulator.url).port
    assert port is not None
    with proxied(port) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        folder, target = prepared(simulator, tmp_path, "broken", host=address)
        with observing(folder, kubeconfig(tmp_path / "config", address)):
            runs = submitted(simulator, target, folder, 3)
            _torment(proxy, folder, len(runs))
    assert {ends(folder)[run] for run in runs} <= TERMINAL_STATES
    steps = last_spans(folder)
    for pod in simulator.get("/api/v1/pods")["items"]:
        if pod["metadata"].get("labels", {}).get("pipeline/runid") in runs:
            assert steps[pod["metadata"]["name"]][-1].ended_at is not None
    assert "Retry" in {event.reason for event in folder.records(Event) if event.kind == "Observer"}


@pytest.mark.soak
def test_a_cluster_that_is_silent_for_25_s_leaves_a_gap(simulator: Simulator, tmp_path: Path) -> None:
    port = urlsplit(simulator.url).port
    assert port is not None
    with proxied(port) as proxy:
        folder, _ = prepared(simulator, tmp_path, "silent")
        with observing(folder, kubeconfig(tmp_path / "config", f"http://127.0.0.1:{proxy.port}")):
            until(lambda: folder.records(Node), "the nodes", 60)
            proxy.flows.clear()
            time.sleep(25)
            proxy.flows.set()
            until(lambda: gaps(folder), "the gap", 30)
    assert "kubernetes" in gaps(folder)
    assert all(5 < seconds < 35 for seconds in gaps(folder).values())


def gaps(folder: RunFolder) -> dict[str, float]:
    """Seconds of each gap, by source."""
    found = [event for event in folder.records(Event) if event.kind == "Observer" and event.reason == GAP]
    return {event.object: float(event.message.split()[2]) for event in found}


def _torment(proxy: Proxy, folder: RunFolder, count: int) -> None:
    """Cut all connections twice a second, and refuse new ones every now and then, until the runs are over."""
    cuts = 0

    def over() -> bool:
        nonlocal cuts
        cuts += 1
        if cuts % 25 == 0:
            proxy.cut()
            proxy.refuses = cuts % 100 == 0
        return len(ends(folder)) == count

    until(over, "the ends", 120)
    proxy.refuses = False


def test_without_a_cluster_the_runs_are_recorded_and_the_rest_is_noted_as_unreachable(
    simulator: Simulator, tmp_path: Path
) -> None:
    folder, target = prepared(simulator, tmp_path, "blind")
    with observing(folder, str(tmp_path / "no-such-kubeconfig")):
        (run,) = submitted(simulator, target, folder, 1)
        until(lambda: ends(folder), "the end", 90)
    assert ends(folder) == {run: SUCCEEDED}
    said = {event.object: event.message for event in folder.records(Event) if event.reason == "NotReachable"}
    assert set(said) == {"kubernetes", "volumes", "metrics-server"}
    assert "there is no kubeconfig" in said["kubernetes"]
    assert Counter(event.object for event in folder.records(Event) if event.reason == "NotReachable")["kubernetes"] == 1


def test_a_temporarily_full_disk_loses_no_record_and_is_noted(simulator: Simulator, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "disk", "2m") as disk:
        folder, target = prepared(simulator, disk, "full")
        with observing(folder, simulator.kubeconfig):
            runs = submitted(simulator, target, folder, 3)
            until(lambda: any(span.phase == RUNNING for span in folder.records(Span)), "a pod that runs")
            filler = disk / "filler"
            fill(filler)
            until(lambda: _over(simulator, runs), "the runs over", 90)
            assert not ends(folder)
            filler.unlink()
            until(lambda: set(ends(folder)) == set(runs), "three ends", 90)
        assert_each_end_is_recorded_once(folder, runs)
        for spans in last_spans(folder).values():
            assert spans[-1].ended_at is not None
        (gap,) = (event for event in folder.records(Event) if event.object == "run folder")
        assert gap.reason == GAP
        assert "every record was kept" in gap.message


def _over(simulator: Simulator, runs: list[str]) -> bool:
    return all(simulator.get(f"/apis/v2beta1/runs/{run}")["state"] in TERMINAL_STATES for run in runs)


def test_a_kubeconfig_of_another_cluster_is_detected(simulator: Simulator, tmp_path: Path) -> None:
    """Both APIs answer, but of different platforms."""
    folder, target = prepared(simulator, tmp_path, "elsewhere")
    nothing = {"metadata": {"resourceVersion": "1"}, "items": []}

    def answer(path: str, query: dict[str, str]) -> tuple[int, Any]:
        return (404, {}) if "argoproj" in path else (200, [] if "watch" in query else nothing)

    with (
        Served(answer) as other,
        observing(folder, kubeconfig(tmp_path / "config", other.url)),
    ):
        runs = submitted(simulator, target, folder, 1)
        until(lambda: set(ends(folder)) == set(runs), "the end", 90)
    (doubt,) = (event for event in folder.records(Event) if event.reason == WRONG_CLUSTER)
    assert doubt.message.startswith(f"1 of the runs at {simulator.url} succeeded, but no observed pod worked")
