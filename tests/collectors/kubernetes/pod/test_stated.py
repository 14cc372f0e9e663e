"""What the cluster states about a pod becomes the reason of the span that it falls into."""

from pathlib import Path
from typing import Any

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod.life import PodLife
from harness.collectors.kubernetes.pod.observed import Pods
from harness.model import Span
from harness.model.phases import PULLING, RUNNING, SIDECARS, STARTING, STORING, UNSCHEDULABLE
from harness.store import RunFolder
from tests.support.manifests import at, condition, ended, event, pod, running, time, waiting

SCHEDULED = condition("PodScheduled", "True", 4.0)


def reasons(*seen: dict[str, Any], now: float = 100.0) -> dict[str, list[str]]:
    """By phase, the reasons of its spans that took time."""
    life = PodLife.of(next(each for each in seen if "status" in each))
    for each in seen:
        if "status" in each:
            life.see(each, at(now))
        else:
            life.see_event(each)
    found: dict[str, list[str]] = {}
    for span in life.spans():
        if span.started_at != span.ended_at:
            found.setdefault(span.phase, []).append(span.reason)
    return found


def warning(reason: str, message: str, first: float, last: float, component: str = "kubelet") -> dict[str, Any]:
    stamps = {"firstTimestamp": time(first), "lastTimestamp": time(last)}
    return {**event(reason, message, first), **stamps, "type": "Warning", "source": {"component": component}}


def test_what_the_scheduler_states_divides_the_wait_where_more_than_numbers_change() -> None:
    unfit = [
        warning("FailedScheduling", f"0/4 nodes are available: {text}", second, second, "default-scheduler")
        for second, text in ((1.0, "4 Insufficient cpu"), (2.0, "3 Insufficient cpu"), (3.0, "no claim is bound"))
    ]
    found = reasons(*unfit, pod(conditions=[SCHEDULED], node="n"))[UNSCHEDULABLE]
    assert found == [
        "scheduler/FailedScheduling: 0/4 nodes are available: 4 Insufficient cpu",
        "scheduler/FailedScheduling: 0/4 nodes are available: no claim is bound",
    ]


def test_a_cause_goes_before_what_only_says_that_something_failed() -> None:
    refused = 'Failed to pull image "x:1": 429 Too Many Requests'
    found = reasons(
        warning("Failed", "Error: ErrImagePull", 6.0, 6.0),
        warning("Failed", refused, 6.0, 20.0),
        warning("BackOff", 'Back-off pulling image "x:1"', 7.0, 21.0),
        event("Pulling", 'Pulling image "x:1"', 5.0),
        pod(conditions=[SCHEDULED], node="n"),
    )
    assert found[PULLING] == [f"kubelet-event/Failed: {refused}"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (waiting("main", "CreateContainerConfigError", 'secret "x" not found'),
         'waiting/CreateContainerConfigError: secret "x" not found'),
        (waiting("main", "PodInitializing", ""), ""),
    ],
)  # fmt: skip
def test_a_container_that_waits_states_why(state: dict[str, Any], reason: str) -> None:
    found = reasons(pod(conditions=[SCHEDULED], node="n", containerStatuses=[state]))
    assert found[STARTING] == [reason]


def test_what_ends_a_pod_is_the_reason_of_its_running_even_if_it_is_stated_late() -> None:
    gone = {
        **condition("DisruptionTarget", "True", 40.0, reason="DeletionByPodGC", message="PodGC: node no longer exists")
    }
    found = reasons(
        pod(conditions=[SCHEDULED, gone], node="n", phase="Failed", containerStatuses=[ended("main", 5.0, 30.0, 1)])
    )
    assert found[RUNNING] == ["pod-condition/DeletionByPodGC: PodGC: node no longer exists"]


def test_a_container_that_outlives_main_and_wait_is_a_phase_of_its_own() -> None:
    statuses = [ended("main", 5.0, 30.0), ended("wait", 5.0, 31.0), running("istio-proxy", 5.0)]
    found = reasons(pod(conditions=[SCHEDULED], node="n", phase="Running", containerStatuses=statuses))
    assert found[SIDECARS] == ["pod-status/SidecarOutlivesMain: istio-proxy runs on after main has ended"]
    assert STORING in found
    statuses[2] = ended("istio-proxy", 5.0, 20.0)
    assert SIDECARS not in reasons(pod(conditions=[SCHEDULED], phase="Succeeded", containerStatuses=statuses))


def test_a_pod_that_argo_creates_again_under_the_same_name_keeps_the_spans_of_the_first_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    pods = Pods(Journal(folder.recorder(), now=lambda: at(100)), at(0))
    first = pod(conditions=[SCHEDULED], phase="Failed", containerStatuses=[ended("main", 5.0, 30.0, 1)])
    again = pod(conditions=[condition("PodScheduled", "True", 44.0)], phase="Succeeded", created=43.0,
                containerStatuses=[ended("main", 45.0, 60.0)])  # fmt: skip
    again["metadata"]["uid"] = "another"
    pods.see("ADDED", first)
    pods.see("ADDED", again)
    last = {(span.phase, span.attempt): span for span in folder.records(Span)}
    assert [last[RUNNING, k].started_at for k in (0, 1)] == pytest.approx([at(5), at(45)], abs=10**9)


_READY = condition("Ready", "True", 60.0, reason="KubeletReady")
_UNREADY = {"reason": "KubeletNotReady", "message": "container runtime network not ready: NetworkReady=false"
            " reason:NetworkPluginNotReady"}  # fmt: skip
_STARTING, _AGAIN = (condition("Ready", "False", seconds, **_UNREADY) for seconds in (1.0, 70.0))


@pytest.mark.parametrize(
    ("conditions", "age_s", "counts"),
    [
        ([_STARTING], 100.0, False),
        ([_STARTING], 900.0, True),
        ([_READY, _AGAIN], 100.0, True),
        ([_AGAIN | {"lastTransitionTime": time(400.0)}], 410.0, True),  # it was another one before it was seen
        ([_STARTING, _READY], 100.0, False),
    ],
    ids=["starts", "starts for too long", "ready once", "changed", "ready now"],
)
@pytest.mark.parametrize("pod_last", [True, False])
def test_what_a_node_states_while_it_starts_is_no_reason_of_a_pods_wait(
    conditions: list[dict[str, Any]], age_s: float, counts: bool, pod_last: bool, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path)
    journal = Journal(folder.recorder(), now=lambda: at(age_s))
    nodes, pods = Nodes(journal), Pods(journal, at(0))
    waits = pod(conditions=[condition("PodScheduled", "True", 65.0)], node="n", created=65.0)
    if not pod_last:
        pods.see("ADDED", waits)
    for each in conditions:
        node = {"metadata": {"name": "n", "creationTimestamp": time(0.0)}, "status": {"conditions": [each]}}
        nodes.see("MODIFIED", node)
        pods.see_node(node, nodes.known["n"])
    if pod_last:
        pods.see("ADDED", waits)
    told = {span.reason for span in folder.records(Span) if span.phase == STARTING}
    assert ("node-condition/KubeletNotReady: " in "".join(told)) is counts


@pytest.mark.parametrize(
    ("seen", "after_s", "blocked"),
    [
        ([pod(conditions=[SCHEDULED], node="n", containerStatuses=[waiting("main", "CreateContainerConfigError", 'secret "x" not found')])],
         61.0, True),
        ([pod(conditions=[SCHEDULED], node="n", containerStatuses=[waiting("main", "CreateContainerConfigError", 'secret "x" not found')])],
         30.0, False),
        ([pod(conditions=[condition("PodScheduled", "False", 1.0, reason="Unschedulable",
                                    message="0/4 nodes are available: 4 node(s) had untolerated taint {sku: training}.")])],
         61.0, True),
        ([pod(conditions=[condition("PodScheduled", "False", 1.0, reason="Unschedulable",
                                    message="0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had untolerated taint {sku: training}.")])],
         61.0, False),
        ([pod(conditions=[SCHEDULED], node="n")], 600.0, False),
    ],
)  # fmt: skip
def test_a_pod_is_blocked_once_it_has_waited_for_a_minute_for_what_will_not_come(seen, after_s, blocked) -> None:
    life = PodLife.of(seen[0])
    for each in seen:
        life.see(each, at(10.0))
    assert life.is_blocked(at(10.0 + after_s)) is blocked
