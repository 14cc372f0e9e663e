"""Loops over numbers, and templates of other objects in the cluster."""

import pytest

from harness.simulator.argo.expressions import ExpressionError
from harness.simulator.argo.fields import items_of
from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_api import ApiError
from harness.simulator.profile import Step
from tests.support.argo_platform import POD, WORK, ArgoPlatform, dag, ended, nodes_of, phases, steps, task


@pytest.mark.parametrize(
    ("sequence", "items"),
    [
        ({"count": 3}, ["0", "1", "2"]), ({"count": "2", "start": 5}, ["5", "6"]), ({"count": 0}, []),
        ({"start": "1", "end": "3"}, ["1", "2", "3"]), ({"start": 1, "end": -1}, ["1", "0", "-1"]), ({"end": 0}, ["0"]),
        ({"count": 2, "format": "n%03d"}, ["n000", "n001"]), ({"start": 255, "end": 255, "format": "%x%%"}, ["ff%"]),
        ({"count": "{{inputs.parameters.n}}"}, ["0", "1"]),
    ],
)  # fmt: skip
def test_a_sequence_is_what_argo_makes_of_it(sequence, items):
    found = list(items_of({"withSequence": sequence}, {"inputs.parameters.n": "2"}))
    assert [scope["item"] for _, scope in found] == items
    assert [name for name, _ in found] == [f"({k}:{item})" for k, item in enumerate(items)]


@pytest.mark.parametrize(
    ("sequence", "why"),
    [
        ({"count": "x"}, 'parsing "x"'), ({"start": 1}, "neither end nor count"), ({"count": 10**9}, "at most 10,000"),
        ({"end": "9" * 400}, "invalid syntax"), ({"count": 1, "format": "%s"}, "can't format"),
        ({"count": 1, "format": "%9999999999d"}, "can't format"),
    ],
)  # fmt: skip
def test_a_sequence_that_can_not_be_counted_is_an_error(sequence, why):
    with pytest.raises(ExpressionError, match=why):
        list(items_of({"withSequence": sequence}, {}))


@pytest.mark.parametrize("items", ["7", '{"a": 1}', "[" + "1," * 10_000 + "1]"])
def test_a_loop_over_anything_but_a_list_of_bounded_length_is_an_error(items):
    with pytest.raises(ExpressionError, match="at most 10,000 items"):
        list(items_of({"withParam": items}, {}))


@pytest.mark.attack("Files and run folders")
@pytest.mark.parametrize("items", ["[" * 100_000, "[" * 500 + "]" * 500, "[" + "9" * 5000, "[NaN]", "{"])
def test_items_that_are_no_json_of_bounded_depth_end_the_task_with_an_error(items):
    node = ended(steps([task("each", withParam=items)]))["status"]
    assert node["phase"] in {"Error", "Failed"}
    with pytest.raises(ExpressionError, match="withParam"):
        list(items_of({"withParam": items}, {}))


def test_a_sequence_runs_in_steps_and_in_tasks():
    each = task("each", withSequence={"count": 2})
    assert phases(ended(dag(each, task("then", depends="each")))).keys() == {
        "", "each", "each(0:0)", "each(1:1)", "then",
    }  # fmt: skip
    assert phases(ended(steps([each]))).keys() == {"", "[0]", "[0].each(0:0)", "[0].each(1:1)"}


def test_a_task_without_items_is_skipped_and_the_next_one_runs():
    workflow = ended(dag(task("each", withSequence={"count": 0}), task("then", depends="each")))
    assert phases(workflow) == {"": "Succeeded", "each": "Skipped", "then": "Succeeded"}
    assert nodes_of(workflow)["wf.each"][2] == "Skipped, empty params"


def library(**more):
    """A template with a DAG of its own, which calls another one by name."""
    inner = {"name": "both", "dag": {"tasks": [task("x", template="work"), task("y", template="work", depends="x")]}}
    return {"templates": [inner, {**POD, "name": "work", **more}]}


def test_a_template_of_another_object_runs_with_what_it_calls_by_name():
    platform = ArgoPlatform(Step(duration=fixed(5.0), **WORK))
    platform.create("WorkflowTemplate", "lib", spec=library())
    platform.create("ClusterWorkflowTemplate", "all", spec=library())
    own = {"name": "lib", "template": "both"}
    of_cluster = {"name": "all", "template": "work", "clusterScope": True}
    local = {**POD, "name": "work", "suspend": {"duration": "1"}}
    local.pop("container")
    spec = dag(task("a", templateRef=own), task("b", templateRef=of_cluster, depends="a"), task("c", template="work"))
    spec["templates"].append(local)
    platform.create("Workflow", "wf", spec=spec)
    platform.run(100.0)
    status = platform.get("wf")["status"]
    found = {each["name"]: each for each in status["nodes"].values()}
    shown = {name: (each["type"], each.get("templateName"), each["templateScope"]) for name, each in found.items()}
    assert status["phase"] == "Succeeded"
    assert shown == {
        "wf": ("DAG", "main", "local/wf"), "wf.a": ("DAG", None, "local/wf"),
        "wf.a.x": ("Pod", "work", "namespaced/lib"), "wf.a.y": ("Pod", "work", "namespaced/lib"),
        "wf.b": ("Pod", None, "local/wf"), "wf.c": ("Suspend", "work", "local/wf"),
    }  # fmt: skip
    assert found["wf.b"]["templateRef"] == of_cluster
    assert status["storedTemplates"].keys() == {"namespaced/lib/both", "namespaced/lib/work", "cluster/all/work"}
    assert all(name.startswith("wf-work-") for name in platform.names("Pod") if name.startswith("wf-"))


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ({"templateRef": {"name": "none", "template": "w"}}, "template reference none.w not found"),
        ({"templateRef": {"name": "lib", "template": "none"}}, "template reference lib.none not found"),
        ({"templateRef": {"name": "lib", "template": "w", "clusterScope": True}}, "template reference lib.w not found"),
        ({"template": "none"}, "template name 'none' undefined"),
        ({"hooks": {"exit": {"template": "none"}}}, "template name 'none' undefined"),
    ],
)
def test_a_call_of_a_template_that_does_not_exist_ends_its_workflow(calls, why):
    platform = ArgoPlatform()
    platform.create("WorkflowTemplate", "lib", spec={"templates": [POD]})
    platform.create("Workflow", "wf", spec=dag(task("a", **calls)))
    platform.run(10.0)
    status = platform.get("wf")["status"]
    assert (status["phase"], status["message"]) == ("Failed", f"invalid spec: {why}")


def test_a_call_needs_the_name_of_a_template():
    both = {"templateRef": {"name": "lib", "template": "w"}, "template": "w"}
    for wrong in ({"templateRef": {"name": "lib"}}, {"templateRef": {"template": "w"}}, {"template": ""}, both):
        with pytest.raises(ApiError, match=r"spec\.templates\[0\]\.dag\.tasks\[0\]\.template"):
            ArgoPlatform().create("Workflow", "wf", spec=dag(task("a", **wrong)))


def test_a_template_that_calls_itself_ends_at_the_controllers_depth():
    status = ended(steps([task("again", template="main")]))["status"]
    assert status["phase"] == "Error"
    assert any("Maximum recursion depth exceeded" in (each.get("message") or "") for each in status["nodes"].values())


def test_the_retries_of_template_defaults_hold_for_templates_that_have_none():
    defaults = {"retryStrategy": {"limit": 1, "retryPolicy": "Always"}}
    assert "(0).bad(1)" in phases(ended(dag(task("bad"), templateDefaults=defaults)))
