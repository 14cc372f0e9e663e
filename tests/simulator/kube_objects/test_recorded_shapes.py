"""Workflows, pods and events of simulated runs beside those recorded from a real platform (tests/data/real/workflows).

The same pipelines run on both. Names are compared without the workflow's and the pods' ids; times and hosts are not
compared, nor what `_UNLIKE` lists.
"""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from tests.support.kfp_sdk import compiled, failing, step
from tests.support.platforms import GI, ONE_SECOND, profile, submit, upload
from tests.support.recorded_workflows import recorded

# Keys that simulated nodes lack, and why.
_UNLIKE = {"inputs": "the templates' parameters are not simulated"}


@dsl.container_component
def make(data: dsl.Output[dsl.Dataset]):  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[data.path])


@dsl.container_component
def train(data: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]):  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[data.path, model.path])


@dsl.container_component
def evaluate(model: dsl.Input[dsl.Model]):  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[model.path])


@dsl.pipeline(name="train-three")
def three():
    evaluate(model=train(data=make().outputs["data"]).outputs["model"])


@dsl.pipeline(name="one-step")
def one():
    step()


@dsl.pipeline(name="inner")
def inner():
    step().after()
    step()


@dsl.pipeline(name="nested-loop")
def nested():
    within = inner()
    with dsl.ParallelFor(["a", "b", "c"], parallelism=2):
        step().after(within)


@dsl.pipeline(name="if-else")
def ifelse(flag: bool = False):
    with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
        step()
    with dsl.Else():
        step()


@dsl.pipeline(name="exit-handler")
def guarded():
    with dsl.ExitHandler(step()):
        step()


@dsl.pipeline(name="one-fails")
def chain():
    first = step()
    second = step().after(first)
    step().after(second)


@dsl.pipeline(name="retries")
def retrying():
    step().set_retry(2, backoff_duration="2s")


GREEDY = profile(step=replace(ONE_SECOND, memory=fixed(2.0 * GI)))
PIPELINES: dict[str, tuple[Any, Profile]] = {
    "three": (three, profile()),
    "ifelse_false": (ifelse, profile()),
    "exit": (guarded, profile()),
    "fails": (chain, failing("step-2")),
    "retries": (retrying, failing("step")),
}
EVENTS = Path(__file__).parents[2] / "data" / "real" / "events.json"
MASKED = re.compile(r"-[0-9a-z]{5}(?=[(.:\s]|$)")


class Shown:
    """One run on a simulated platform, as its Kubernetes API shows it in the end."""

    def __init__(self, package: bytes, under: Profile) -> None:
        self.view = KubernetesView(Calendar(1_790_000_000 * 10**9))
        platform = Platform(replace(under, caching=False), 5, self.view)
        self.view.follow(platform)
        platform.workflow_watchers.append(self.view.workflow_changed)
        submit(platform, upload(platform, package))
        platform.loop.run(1000)

    def objects(self, plural: str) -> list[dict[str, Any]]:
        (resource,) = (
            each for each in self.view.store.resources if each.plural == plural and each.listing is None
        )  # fmt: skip
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        return [kind | each.manifest(resource) for each in self.view.store.objects(resource)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("packages")
    return cache(lambda name: Shown(compiled(folder, PIPELINES[name][0]), PIPELINES[name][1]))


def nodes_of(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By name after the workflow's."""
    name = workflow["metadata"]["name"]
    return {node["name"].removeprefix(name): node for node in workflow["status"]["nodes"].values()}


def relations(nodes: dict[str, dict[str, Any]], key: str) -> dict[str, list[str]]:
    """By name: the names of the nodes that a field refers to."""
    paths = {node["id"]: path for path, node in nodes.items()}
    return {path: sorted(paths[each] for each in node.get(key, ())) for path, node in nodes.items()}


def said(workflow: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """What each node says, without the words of the step itself."""
    name = workflow["metadata"]["name"]
    return {
        path: (
            node["type"], node["phase"], node["templateName"], node["displayName"].removeprefix(name),
            node.get("message", "").removesuffix(": the step says FAIL_ME"), str(node.get("nodeFlag")),
            str(node.get("outputs", {}).get("exitCode")),
        )
        for path, node in nodes_of(workflow).items()
    }  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_a_workflow_s_nodes_are_those_of_a_real_one(name: str, shown: Any) -> None:
    (ours,) = shown(name).objects("workflows")
    theirs = recorded(name)["workflows"][-1]
    here, there = nodes_of(ours), nodes_of(theirs)
    assert said(ours) == said(theirs)
    for key in ("children", "outboundNodes"):
        assert relations(here, key) == relations(there, key), key
    for path, node in here.items():
        assert set(node) == set(there[path]) - set(_UNLIKE), path


def test_without_retries_by_default_nodes_are_in_and_follow_nodes_that_exist(tmp_path: Path) -> None:
    under = replace(profile(), controller=replace(profile().controller, error_retries=0))
    (ours,) = Shown(compiled(tmp_path, nested), under).objects("workflows")
    nodes = ours["status"]["nodes"]
    for node in nodes.values():
        others = *node.get("children", ()), *node.get("outboundNodes", ()), node.get("boundaryID", node["id"])
        assert set(others) <= set(nodes), node["name"]
    shown = {node["displayName"] for node in nodes.values() if node["type"] == "Pod"}
    assert {"root-driver", "step-driver", "executor", "iteration-driver"} <= shown


# The recorded run was retried afterwards, which adds an annotation and repeats events.
ONCE = sorted(PIPELINES.keys() - {"fails"})


@pytest.mark.parametrize("name", ONCE)
def test_a_workflow_s_metadata_and_status_have_the_fields_of_a_real_one(name: str, shown: Any) -> None:
    (ours,) = shown(name).objects("workflows")
    theirs = recorded(name)["workflows"][-1]
    here, there = ours["metadata"], theirs["metadata"]
    assert set(here) - {"resourceVersion"} == set(there) - {"generation"}
    assert set(here["labels"]) == set(there["labels"])
    assert set(here["annotations"]) == set(there["annotations"])
    assert set(ours["status"]) - {"artifactRepositoryRef"} == set(theirs["status"])
    assert ours["status"]["conditions"] == theirs["status"]["conditions"]
    assert ours["status"]["progress"] == theirs["status"]["progress"]


@pytest.mark.parametrize("name", ONCE)
def test_argo_s_events_are_worded_as_those_of_a_real_one(name: str, shown: Any) -> None:
    def told(kind: str, reason: str, message: str | None, count: int | None) -> tuple[str, str, bool, int | None]:
        text = MASKED.sub("", (message or "").removesuffix(": the step says FAIL_ME"))
        combined = text.startswith("(combined")
        # Which nodes come first within one change is left to chance in Argo, so that only the texts' form is compared.
        return kind, reason, combined, count if combined else 1

    ours = [
        told(each["type"], each["reason"], each["message"], each["count"])
        for each in shown(name).objects("events")
        if each["involvedObject"]["kind"] == "Workflow"
    ]
    theirs = [
        told(kind, reason, message, count)
        for about, _, _, kind, reason, message, count, _ in recorded(name)["events"]
        if about == "Workflow"
    ]
    assert sorted(map(str, ours)) == sorted(map(str, theirs))


def test_each_single_event_of_a_node_has_a_real_one_s_words(shown: Any) -> None:
    words = {
        MASKED.sub("", message)
        for about, _, _, _, _, message, _, _ in recorded("three")["events"]
        if about == "Workflow" and message and not message.startswith("(combined")
    }
    assert words >= {
        MASKED.sub("", each["message"])
        for each in shown("three").objects("events")
        if each["involvedObject"]["kind"] == "Workflow" and each["reason"] in {"WorkflowRunning", "WorkflowSucceeded"}
    }
    assert "Running node train-three(0).root-driver" in words


def form(document: dict[str, Any], at: str = "") -> dict[str, str]:
    """By path: the type of each field. Who reports for a kubelet is left out: in the recording a stand-in did."""
    found = {}
    for name, value in document.items():
        found[f"{at}{name}"] = type(value).__name__
        if isinstance(value, dict):
            found |= form(value, f"{at}{name}.")
    return {
        path: kind
        for path, kind in found.items()
        if path not in {"involvedObject.resourceVersion", "regarding.resourceVersion"}
    }


def of_reporter(event: dict[str, Any]) -> dict[str, Any]:
    kubelet = "kubelet" in json.dumps([event.get("source"), event.get("deprecatedSource")])
    return {name: value for name, value in event.items() if not (kubelet and name.startswith("reporting"))}


def test_events_have_a_real_one_s_form(shown: Any) -> None:
    view = shown("fails").view
    api = next(each for each in view.store.resources if each.plural == "events")
    ours = {api.render(each.snapshot)["reason"]: each for each in view.store.objects(api)}
    compared = 0
    for event in json.loads(EVENTS.read_text()):
        reason = event["core_v1"]["reason"]
        if reason not in ours:
            continue
        here, there = ours[reason].manifest(api), event["core_v1"]
        assert form(of_reporter(here)) == form(of_reporter(there)), reason
        if "kubelet" not in str(event):
            for key in ("reportingComponent", "action", "type"):
                assert here.get(key) == there.get(key), (reason, key)
        compared += 1
    assert compared == 9


def test_a_pod_of_a_run_has_a_real_one_s_names_labels_annotations_and_containers(shown: Any) -> None:
    ours = {each["metadata"]["annotations"]["workflows.argoproj.io/node-name"].partition("(")[2]: each
            for each in shown("three").objects("pods") if "workflows.argoproj.io/workflow" in each["metadata"].get("labels", {})}  # fmt: skip
    seen = 0
    for name, pod in recorded("three")["pods"].items():
        for state in pod["states"]:
            there = state["metadata"]
            here = ours[there["annotations"]["workflows.argoproj.io/node-name"].partition("(")[2]]
            assert name.startswith("train-three-tw9m9-")
            template = re.sub(r"-\d+$", "", name.removeprefix("train-three-tw9m9-"))
            assert f"-{template}-" in here["metadata"]["name"]
            assert set(here["metadata"]["labels"]) == set(there["labels"])
            assert set(here["metadata"]["annotations"]) == set(there["annotations"])
            for list_ in ("initContainerStatuses", "containerStatuses"):
                assert [c["name"] for c in here["status"][list_]] == [c["name"] for c in state["status"][list_]]
            kinds = {each["type"] for each in state["status"]["conditions"]}
            assert kinds <= {each["type"] for each in here["status"]["conditions"]}
            seen += 1
    assert seen


def test_a_loop_s_nodes_have_a_real_one_s_names(tmp_path: Path) -> None:
    """Which executors ran differs: some of the recorded ones were cached."""
    (ours,) = Shown(compiled(tmp_path, nested), profile()).objects("workflows")
    theirs = recorded("nested")["workflows"][-1]
    found, expected = (
        {(path, node["type"], node["templateName"]) for path, node in nodes_of(each).items() if ".executor" not in path}
        for each in (ours, theirs)
    )
    assert found == expected


def test_a_step_out_of_memory_ends_as_a_real_one(tmp_path: Path) -> None:
    @dsl.pipeline(name="f-oom")
    def greedy():
        step().set_memory_limit("1Gi")

    (ours,) = Shown(compiled(tmp_path, greedy), GREEDY).objects("workflows")
    assert said(ours) == said(recorded("oom")["workflows"][-1])
