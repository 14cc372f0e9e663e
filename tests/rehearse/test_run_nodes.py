"""The rehearsal's workflows have the nodes that a real Argo gives those of KFP."""

from typing import Any

import pytest

from tests.support.real_parts.run_nodes import FAILED, SUCCEEDED, PodState, RunNodes, Task
from tests.support.recorded_workflows import recorded

_CHAIN = (Task("make"), Task("train", ("make",)), Task("evaluate", ("train",)))
_SAME = ("id", "displayName", "type", "templateName", "templateScope", "boundaryID", "nodeFlag", "phase", "message")


def shape(node: dict[str, Any]) -> dict[str, Any]:
    exit_code = node.get("outputs", {}).get("exitCode")
    return {key: node.get(key) for key in _SAME} | {"children": set(node.get("children", ())), "exitCode": exit_code}


@pytest.mark.parametrize(("name", "tasks"), [("three", _CHAIN), ("oom", (Task("step"),))])
def test_nodes_are_those_that_were_recorded(name: str, tasks: tuple[Task, ...]) -> None:
    workflow = recorded(name)["workflows"][-1]
    real = {node["name"]: node for node in workflow["status"]["nodes"].values()}
    pods = {
        node: PodState(
            each["phase"], 1.0, 2.0, each.get("message", ""), int(each["outputs"]["exitCode"]), each["hostNodeName"]
        )
        for node, each in real.items()
        if each["type"] == "Pod"
    }
    status = RunNodes(workflow["metadata"]["name"], tasks).status(pods, 1.0, 3.0)
    assert {node["name"]: shape(node) for node in status["nodes"].values()} == {
        node: shape(each) for node, each in real.items()
    }
    assert (status["phase"], status["progress"]) == (workflow["status"]["phase"], workflow["status"]["progress"])
    assert status["conditions"] == workflow["status"]["conditions"]


def test_a_pod_is_due_once_what_it_waits_for_has_succeeded() -> None:
    run, pods = RunNodes("wf", _CHAIN[:2]), dict[str, PodState]()
    created = []
    while new := [node.name for node in run.due(pods) if node.name not in pods]:
        created.append(new)
        pods |= {name: PodState(SUCCEEDED) for name in new}
    short = [[name.removeprefix("wf(0).").removeprefix("root(0).") for name in new] for new in created]
    assert short == [["root-driver(0)"], ["make-driver(0)"], ["make(0).executor(0)"], ["train-driver(0)"],
                     ["train(0).executor(0)"]]  # fmt: skip
    assert run.phase(pods) == SUCCEEDED


def test_nothing_more_is_due_once_a_pod_has_failed() -> None:
    run = RunNodes("wf", (Task("left"), Task("right")))
    pods = {
        "wf(0).root-driver(0)": PodState(SUCCEEDED),
        "wf(0).root(0).left-driver(0)": PodState(FAILED),
        "wf(0).root(0).right-driver(0)": PodState("Running"),
    }
    assert [node.name for node in run.due(pods)] == list(pods)
    assert run.phase(pods) == "Running"
    assert run.phase(pods | {"wf(0).root(0).right-driver(0)": PodState(SUCCEEDED)}) == FAILED
