"""Objects from series, as a real kube-state-metrics wrote them: see the README of the fixtures."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness.collectors.kubernetes.nodes import node_of
from harness.collectors.kubernetes.pod.life import PodLife
from harness.collectors.metrics.kube_state import Known, KubeState, label_name, own_labels
from harness.collectors.metrics.kube_state_series import ALL, Form
from harness.collectors.metrics.past_pulls import Start, inferred_pulls
from harness.collectors.metrics.scraping import parse
from tests.support.kube_state_page import as_of, rows

FIXTURE = Path(__file__).parents[1] / "fixtures" / "kube_state_metrics.txt"
AT_S = 1_795_812_790  # of the scrape
BY_NAME = {each.name: each for each in ALL}


def state_of(text: str, at_s: int = AT_S, until_s: int = AT_S, **renamed: str) -> KubeState:
    """As range queries answer about one scrape."""
    state = KubeState(until_s, 15.0)
    for series in ALL:
        answer = []
        for labels, value in parse(text).get(series.name, {}).items():
            named = {renamed.get(name, name): label for name, label in labels}
            if series.form is not Form.LAST and value != 1:
                continue
            if "phase=~" in series.where and named.get("phase") not in {"Succeeded", "Failed"}:
                continue
            answer.append((named, [(at_s * 10**9, float(at_s) if series.form is Form.EDGES else value)]))
        state.take(series, answer)
    return state


def lives(state: KubeState) -> dict[str, PodLife]:
    found: dict[str, PodLife] = {}
    for each in state.pods():
        name = str(each.manifest["metadata"]["name"])
        life = found.setdefault(name, PodLife.of(each.manifest))
        (life.see_deleted if each.change == "DELETED" else life.see)(each.manifest, each.at)
    return found


def phases(life: PodLife) -> list[tuple[str, int, int | None]]:
    return [(s.phase, s.started_at // 10**9, s.ended_at and s.ended_at // 10**9) for s in life.spans()]


@pytest.mark.parametrize(
    ("pod", "run", "task", "known"),
    [
        ("onestep-qdkzv-system-dag-driver-1659196789", "onestep-qdkzv", "system-dag-driver",
         [("scheduling", 1_795_812_698, 1_795_812_699), ("start", 1_795_812_699, 1_795_812_705),
          ("running", 1_795_812_705, 1_795_812_715)]),
        ("21-porto-temperature-21-4d9a9f7b3a-main-2143374442", "21-porto-temperature-21-4d9a9f7b3a", "main",
         [("scheduling", 1_795_811_762, 1_795_811_763), ("start", 1_795_811_763, 1_795_811_768),
          ("running", 1_795_811_768, 1_795_811_777)]),
    ],
)  # fmt: skip
def test_pods_of_a_real_cluster_have_the_stamps_that_kubernetes_gave_them(
    pod: str, run: str, task: str, known: list[tuple[str, int, int | None]]
) -> None:
    life = lives(state_of(FIXTURE.read_text()))[pod]
    assert (life.run, life.task) == (run, task)
    for (phase, start, end), (expected, begun, over) in zip(phases(life), known, strict=True):
        assert phase == expected
        assert abs(start - begun) <= 1
        assert end is not None
        assert over is not None
        assert abs(end - over) <= 1


def test_a_pod_is_not_over_while_one_of_its_containers_runs() -> None:
    """A real page has the completion time of `main` while `wait` is running."""
    life = lives(state_of(FIXTURE.read_text()))["onestep-qdkzv-system-container-driver-1338135901"]
    assert life.over is None
    assert phases(life)[-1][0] == "running"


def test_a_pod_that_vanished_ended_when_it_was_seen_last() -> None:
    life = lives(state_of(FIXTURE.read_text(), until_s=AT_S + 600))["onestep-qdkzv-system-container-driver-1338135901"]
    assert life.phase == "Deleted"
    assert life.over is not None
    assert life.over.at == AT_S * 10**9


def test_nodes_have_their_size_and_requests_are_those_of_the_containers() -> None:
    state = state_of(FIXTURE.read_text())
    nodes = {str(each.manifest["metadata"]["name"]): node_of(each.manifest) for each in state.nodes()}
    assert (nodes["node-2"].cpu, nodes["node-2"].memory, nodes["node-2"].pods) == (32.0, 32 * 2**30, 110)
    assert nodes["node-2"].created_at == 1_795_811_343 * 10**9
    pods = {each.manifest["metadata"]["name"]: each.manifest for each in state.pods()}
    (main,) = pods["21-porto-temperature-21-4d9a9f7b3a-main-2143374442"]["spec"]["containers"]
    assert main["resources"]["requests"] == {"cpu": 0.5, "memory": 64 * 2**20}


def test_relabelled_series_are_those_of_the_pods_and_not_of_the_exporter() -> None:
    renamed = {"namespace": "exported_namespace", "pod": "exported_pod", "node": "exported_node"}
    assert phases_of(state_of(FIXTURE.read_text(), **renamed)) == phases_of(state_of(FIXTURE.read_text()))
    scraped = {"namespace": "monitoring", "exported_namespace": "kubeflow", "container": "ksm"}
    assert own_labels(scraped) | {} == scraped | {"namespace": "kubeflow"}


def phases_of(state: KubeState) -> dict[str, list[tuple[str, int, int | None]]]:
    return {name: phases(life) for name, life in lives(state).items()}


@pytest.mark.parametrize(
    ("label", "named"),
    [
        ("pipeline/runid", "label_pipeline_runid"),
        ("workflows.argoproj.io/workflow", "label_workflows_argoproj_io_workflow"),
        ("eks.amazonaws.com/capacityType", "label_eks_amazonaws_com_capacity_type"),
    ],
)
def test_labels_are_named_as_kube_state_metrics_names_them(label: str, named: str) -> None:
    assert label_name(label) == named


# --- what a pod's state says of its trouble -------------------------------------------------------------------------


def pod(**status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": "etl-1-main-7", "namespace": "team-a", "uid": "u", "creationTimestamp": "2026-11-20T01:00:00Z",
            "ownerReferences": [{"kind": "Workflow", "name": "etl-1"}],
        },
        "spec": {"nodeName": "w-0", "containers": [{"name": "main"}]},
        "status": status,
    }  # fmt: skip


def stamped(kind: str, status: str, clock: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": f"2026-11-20T{clock}Z"}


def scraped(manifest: dict[str, Any], every_s: int = 30, length_s: int = 900) -> list[Known]:
    """Through scrapes and answers."""
    begin_s = 1_795_136_400  # 01:00
    state = KubeState(begin_s + length_s, every_s)
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[int, float]]] = {}
    for at_s in range(begin_s, begin_s + length_s, every_s):
        now = as_of(manifest, at_s)
        for name, labels, value in rows(now) if now else ():
            if name in BY_NAME and (BY_NAME[name].form is Form.LAST or value == 1):
                seen.setdefault((name, tuple(labels.items())), []).append((at_s, value))
    for (name, labels), points in seen.items():
        edges = BY_NAME[name].form is Form.EDGES
        if name == "kube_pod_status_phase" and dict(labels)["phase"] not in {"Succeeded", "Failed"}:
            continue
        for at_s, value in (points[0], points[-1]):
            state.take(BY_NAME[name], [(dict(labels), [(at_s * 10**9, float(at_s) if edges else value)])])
    return list(state.pods())


def test_a_pod_that_waited_for_a_node_was_unschedulable_since_the_first_scrape_that_says_so() -> None:
    blocked = {**stamped("PodScheduled", "False", "01:00:01"), "reason": "Unschedulable"}
    (known,) = scraped(pod(phase="Pending", conditions=[blocked]), length_s=300)
    life = PodLife.of(known.manifest)
    life.see(known.manifest, known.at)
    assert [phase for phase, *_ in phases(life)] == ["scheduling", "unschedulable"]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"phase": "Failed", "reason": "Evicted", "conditions": [stamped("Ready", "False", "01:05:00")]}, "Evicted"),
        ({"phase": "Failed", "conditions": [], "containerStatuses": [{"name": "main", "state": {"terminated": {
            "reason": "OOMKilled", "startedAt": "2026-11-20T01:00:10Z", "finishedAt": "2026-11-20T01:04:00Z"}}}]},
         "OOMKilled"),
        ({"phase": "Pending", "conditions": [], "containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
        ({"phase": "Pending", "conditions": [], "containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": "CreateContainerConfigError"}}}]},
         "CreateContainerConfigError"),
    ],
)  # fmt: skip
def test_failures_are_told_by_the_reasons_in_the_series(status: dict[str, Any], reason: str) -> None:
    found = scraped(pod(**status))
    life = PodLife.of(found[0].manifest)
    for each in found:
        life.see(each.manifest, each.at)
    assert reason in {failure.reason for failure in life.failures()}


@pytest.mark.parametrize(
    ("scheduled", "waits"),
    [
        ("01:00:02", ["scheduling"]),  # the scheduler decides in no time
        ("01:00:25", ["scheduling", "unschedulable"]),  # no scrape was there to see why
        ("01:05:00", ["scheduling"]),  # scrapes were, and none says that no node has room
    ],
)
def test_a_wait_that_no_scrape_could_see_is_taken_for_one_for_a_node(scheduled: str, waits: list[str]) -> None:
    (known,) = scraped(pod(phase="Pending", conditions=[stamped("PodScheduled", "True", scheduled)]))[-1:]
    life = PodLife.of(known.manifest)
    life.see(known.manifest, known.at)
    found = [phase for phase, begun, ended in phases(life) if phase != "start" and ended and ended > begun]
    assert found[-1] == waits[-1]
    assert {span.reason for span in life.spans()} == {""}


def start(node: str, scheduled: float, started: float) -> Start:
    return Start(scheduled, started, node, "python", f"{node}-{scheduled:.0f}")


@pytest.mark.parametrize(
    ("starts", "pulled"),
    [
        ([start("a", 0, 30), start("a", 40, 43), start("b", 50, 80)], {"a-0": 27, "b-50": 27}),
        (
            [start("a", 0, 30), start("a", 10, 31), start("a", 40, 43)],
            {"a-0": 27, "a-10": 17},
        ),  # it waits for the first
        ([start("a", 0, 3), start("a", 40, 80), start("a", 90, 93)], {}),  # the image was there: something else is slow
        ([start("a", 0, 4), start("b", 0, 3), start("a", 9, 12)], {}),
        ([start("a", 0, 3), start("a", 0.5, 280), start("a", 9, 12)], {}),  # the image was there
        ([], {}),
    ],
)
def test_pulls_are_what_first_pods_on_a_node_start_later_by(starts: list[Start], pulled: dict[str, int]) -> None:
    found = inferred_pulls(starts)
    lengths = {
        uid: round(
            (
                datetime.fromisoformat(end["lastTimestamp"]) - datetime.fromisoformat(begin["firstTimestamp"])
            ).total_seconds()
        )
        for uid, (begin, end) in found.items()
    }
    assert lengths == pulled
