"""The reasons in workflows' nodes, as a real Argo controller wrote them (tests/data/real/workflows)."""

import base64
import gzip
from typing import Any

import orjson
import pytest

from harness.collectors.kubernetes.pod.life import PodLife
from harness.collectors.kubernetes.workflow.watch import NodeMessage, node_messages
from harness.model.argo.nodes import is_offloaded
from tests.support.recorded_workflows import NAMES, recorded

FAILED = "main: Error (exit code 1): the step says FAIL_ME"
EVICTED = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi. Container main was using 900Mi, "
    "request is 0, has larger consumption of memory."
)
QUOTA = 'pods "one-step-t76ch-system-dag-driver-1895255100" is forbidden: exceeded quota: tight, requested: pods=1, '
SAYS: dict[str, list[tuple[str, str, str]]] = {
    "oom": [("step", "Failed", "main: OOMKilled (exit code 137)")],
    "evicted": [("step", "Failed", EVICTED)],
    "node_gone": [("step", "Error", "pod deleted")],
    "fails": [("step-2", "Failed", FAILED)],
    "retries": [("step", "Failed", FAILED)],
    "exit_fails": [("step-2", "Failed", FAILED)],
    # Ended by hand: a terminated run's step has exceeded the deadline that was set to now.
    "bad_image": [("badimg", "Failed", "Step exceeded its deadline")],
    "unschedulable": [("step", "Failed", "Step exceeded its deadline")],
    "terminated": [("step", "Failed", "Step exceeded its deadline")],
    "terminated_early": [("step-driver", "Failed", "Step exceeded its deadline")],
}


def last(name: str) -> dict[str, Any]:
    found: dict[str, Any] = recorded(name)["workflows"][-1]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_reasons_of_recorded_workflows(name: str) -> None:
    found = [(each.task, each.phase, each.message) for each in node_messages(last(name))]
    assert found == SAYS.get(name, [])


def test_compressed_nodes_say_the_same() -> None:
    plain = last("oom")
    status = plain["status"]
    packed = base64.b64encode(gzip.compress(orjson.dumps(status["nodes"]))).decode()
    rest = {key: value for key, value in status.items() if key != "nodes"}
    compressed = {**plain, "status": {**rest, "compressedNodes": packed}}
    assert node_messages(compressed) == node_messages(plain)
    assert not is_offloaded(compressed["status"])


@pytest.mark.parametrize(
    "packed", ["%", base64.b64encode(b"no gzip").decode(), base64.b64encode(gzip.compress(b"3", mtime=0)).decode()]
)
def test_damaged_compressed_nodes_are_refused(packed: str) -> None:
    workflow = {"metadata": {"name": "w"}, "status": {"phase": "Failed", "compressedNodes": packed}}
    with pytest.raises(ValueError, match="the compressed nodes can't be read"):
        node_messages(workflow)


def test_offloaded_nodes_are_noticed_and_the_workflow_s_own_message_is_left() -> None:
    status = {"phase": "Failed", "message": "child failed", "offloadNodeStatusVersion": "fnv:1"}
    workflow = {"metadata": {"name": "w"}, "status": status}
    assert is_offloaded(workflow["status"])
    assert node_messages(workflow) == [NodeMessage("", "Failed", "child failed", None)]


def test_other_nodes_are_asked_where_no_pod_says_anything() -> None:
    node = {"name": "w.a", "type": "Skipped", "phase": "Error", "message": "template b not found"}
    workflow = {"metadata": {"name": "w"}, "status": {"phase": "Error", "nodes": {"w.a": node}}}
    assert [(each.task, each.message) for each in node_messages(workflow)] == [("a", "template b not found")]


def test_a_refused_pod_says_which_quota() -> None:
    """While it waits: the node has no pod, and no event tells of it."""
    waiting = {
        "name": "one-step-t76ch(0).root-driver(0)", "type": "Pod", "phase": "Pending",
        "message": f"{QUOTA}used: pods=6, limited: pods=1",
    }  # fmt: skip
    workflow = {"metadata": {"name": "one-step-t76ch"}, "status": {"nodes": {"n": waiting}}}
    (said,) = node_messages(workflow)
    assert (said.task, said.phase, said.ended_at) == ("root-driver", "Pending", None)
    assert said.message.startswith(QUOTA)


def test_a_pod_whose_node_is_gone_says_so_in_a_condition_only() -> None:
    """Its containers are shown as running to the end."""
    pods = recorded("node_gone")["pods"]
    (pod,) = (each["states"][-1] for name, each in pods.items() if "-impl-" in name and each["phase"] == "Failed")
    life = PodLife.of(pod)
    life.see(pod, 1795351900 * 10**9)
    (failure,) = life.failures()
    assert (failure.reason, failure.message) == ("DeletionByPodGC", "PodGC: node no longer exists")
    assert failure.at == 1795351852 * 10**9
    assert life.over is not None
    assert life.over.at == failure.at  # not with its init containers
