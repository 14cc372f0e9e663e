"""The observer as a process of its own: what it records of a whole test."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from harness.model import Event, Node, Sample, Span
from harness.model.phases import (
    CLAIM_CAPACITY_BYTES,
    NODE_CPU_CORES,
    OBSERVER_REQUESTS,
    PLATFORM,
    RUN,
    RUNNING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    SUCCEEDED,
    TASK,
    VERSION,
)
from harness.store import RunFolder
from harness.targets.answers import instant
from tests.support.observers import (
    TOKEN,
    Simulator,
    all_over,
    assert_each_end_is_recorded_once,
    ends,
    last_spans,
    observing,
    prepared,
    serving,
    submitted,
)
from tests.support.servers import until


@pytest.fixture(scope="module")
def demo() -> Iterator[Simulator]:
    with serving("demo") as simulator:
        yield simulator


@pytest.fixture(scope="module")
def observed(demo: Simulator, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, list[str]]:
    folder, target = prepared(demo, tmp_path_factory.mktemp("runs"), "whole")
    with observing(folder, demo.kubeconfig):
        assert "ready_nodes" not in folder.read_live("observer"), "no step's pool is known"
        runs = submitted(demo, target, folder, 6)
        until(lambda: len(ends(folder)) == 6, "six ends", 90)
        until(lambda: all_over(demo, runs), "that the platform says so, too")  # the cluster may have shown it before
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
        (version,) = (event for event in folder.records(Event) if (event.kind, event.reason) == (PLATFORM, VERSION))
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
