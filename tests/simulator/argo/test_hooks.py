"""Lifecycle hooks of workflows, steps and tasks: when they run, under which names, and what waits for them.

Names and order as in https://argo-workflows.readthedocs.io/en/latest/lifecyclehook/ and Argo's own tests of hooks.
"""

import pytest

from harness.simulator.argo.expressions import ExpressionError, demand_expression, is_true_of
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Step
from tests.support.argo_platform import FAILS, POD, WORK, ArgoPlatform, dag, ended, nodes_of, phases, steps, task

SLOW = Step(match="slow", duration=fixed(60.0), **WORK)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('workflow.status == "Running"', True), ("workflow.status != 'Running'", False),
        ('steps["step-1"].status == "Succeeded" && workflow.status == "Running"', True),
        ("steps['step-1'].outputs.parameters.n == '5'", True), ("!(steps['step-1'].status == 'Failed')", True),
        ("len(workflow.status) > 1", True), ("workflow.status in ['a']", False), ("1 + 1 == 2", True),
        ("workflow.status == 'a' ? true : false", False),
        ("true", True),
    ],
)  # fmt: skip
def test_expressions_of_hooks_are_evaluated(text, value):
    demand_expression(text)
    scope = {"workflow.status": "Running", "steps.step-1.status": "Succeeded", "steps.step-1.outputs.parameters.n": "5"}
    assert is_true_of(text, scope) is value


@pytest.mark.parametrize(
    "text",
    ["workflow.status == ", "", "(1 == 1", "a ? b", "len(workflow.name", "'open", "1 ~ 2", "(" * 60],
)  # fmt: skip
def test_what_can_not_be_evaluated_is_told(text):
    with pytest.raises(ExpressionError):
        demand_expression(text)


@pytest.mark.parametrize("text", ["workflow.status", "steps.b.status == 'Running'"])
def test_what_is_no_condition_or_names_nothing_is_an_error_of_the_run(text):
    demand_expression(text)
    with pytest.raises(ExpressionError):
        is_true_of(text, {"workflow.status": "Running"})


def hook(expression, **more):
    return {"template": "w", "expression": expression, **more}


def test_hooks_of_a_workflow_run_beside_it_and_it_waits_for_them():
    hooks = {
        "running": {**hook('workflow.status == "Running"'), "template": "slow"},
        "failed": hook('workflow.status == "Failed"'), "exit": {"template": "bye"},
    }  # fmt: skip
    document = dag(task("a"), hooks=hooks)
    document["templates"] += [{**POD, "name": "slow"}, {**POD, "name": "bye"}]
    workflow = ended(document, SLOW, FAILS)
    assert phases(workflow) == {
        "": "Succeeded", "a": "Succeeded", "hooks.running": "Succeeded", "onExit": "Succeeded",
    }  # fmt: skip
    nodes = {each["name"]: each for each in workflow["status"]["nodes"].values()}
    assert nodes["wf.hooks.running"]["nodeFlag"] == nodes["wf.onExit"]["nodeFlag"] == {"hooked": True}
    assert nodes["wf.onExit"]["startedAt"] >= nodes["wf.hooks.running"]["finishedAt"] > nodes["wf"]["finishedAt"]
    assert nodes["wf.hooks.running"]["id"] in nodes["wf"]["children"]


@pytest.mark.parametrize(
    ("kind", "make", "place"), [("steps", lambda each: steps([each], [task("then")]), "[0]."), ("tasks", None, "")]
)
def test_hooks_of_steps_and_tasks_follow_their_state(kind, make, place):
    hooks = {
        "running": hook(f'{kind}["slow"].status == "Running"'),
        "failed": hook(f"{kind}['slow'].status == 'Failed'"),
        "exit": {"template": "w"},
    }
    step = task("slow", hooks=hooks)
    document = make(step) if make else dag(step, task("then", depends="slow"))
    workflow = ended(document, SLOW, FAILS)
    found = phases(workflow)
    assert [found[f"{place}slow{suffix}"] for suffix in ("", ".hooks.running", ".onExit")] == ["Succeeded"] * 3
    assert f"{place}slow.hooks.failed" not in found
    nodes = {each["displayName"]: each for each in workflow["status"]["nodes"].values()}
    assert nodes["then"]["startedAt"] >= nodes["slow.onExit"]["finishedAt"] >= nodes["slow"]["finishedAt"]
    assert nodes["slow.hooks.running"]["startedAt"] < nodes["slow"]["finishedAt"]


def test_a_hook_that_fails_does_not_fail_its_step():
    hooks = {"done": {"template": "bad", "expression": "steps.a.status == 'Succeeded'"}}
    document = steps([task("a", hooks=hooks)])
    document["templates"].append({**POD, "name": "bad"})
    found = phases(ended(document))
    assert (found["[0].a.hooks.done"], found[""]) == ("Failed", "Succeeded")


def test_an_exit_hook_runs_after_a_failure_too_and_after_a_skipped_step_not():
    skipped, failed = task("s", when="1 == 2", onExit="w"), task("bad", onExit="w")
    found = phases(ended(dag(skipped, failed)))
    assert (found["bad.onExit"], found["s"], found[""]) == ("Succeeded", "Skipped", "Failed")
    assert "s.onExit" not in found


def test_an_exit_hook_may_depend_on_the_outcome_and_gets_the_outputs():
    given = {"parameters": [{"name": "n", "value": "{{steps.make.outputs.parameters.o}}"}]}
    outputs = {"parameters": [{"name": "o", "valueFrom": {"path": "/o", "default": "big"}}]}
    hooks = {
        "exit": {"template": "after", "arguments": given, "expression": "steps.make.outputs.parameters.o == 'big'"}
    }
    after = {
        "name": "after", "inputs": {"parameters": [{"name": "n"}]},
        "steps": [[task("yes", when="{{inputs.parameters.n}} == big"), task("no", when="{{inputs.parameters.n}} == small")]],
    }  # fmt: skip
    document = steps([task("make", template="m", hooks=hooks)])
    document["templates"] += [after, {**POD, "name": "m", "outputs": outputs}]
    found = phases(ended(document))
    assert (found["[0].make.onExit[0].yes"], found["[0].make.onExit[0].no"]) == ("Succeeded", "Skipped")
    hooks["exit"]["expression"] = "steps.make.outputs.parameters.o == 'small'"
    assert "[0].make.onExit" not in phases(ended(document))


def test_each_item_of_a_looped_step_has_its_own_hooks():
    workflow = ended(steps([task("each", withItems=["x", "y"], onExit="w")]))
    assert {"[0].each(0:x).onExit", "[0].each(1:y).onExit"} <= phases(workflow).keys()


def test_a_hook_can_call_a_template_of_another_object():
    platform = ArgoPlatform()
    platform.create("WorkflowTemplate", "lib", spec={"templates": [POD]})
    hooks = {"exit": {"templateRef": {"name": "lib", "template": "w"}}}
    platform.create("Workflow", "wf", spec=dag(task("a", hooks=hooks), hooks=hooks))
    platform.run(60.0)
    found = {each["name"]: each for each in platform.get("wf")["status"]["nodes"].values()}
    assert found["wf.a.onExit"]["templateRef"] == found["wf.onExit"]["templateRef"] == {"name": "lib", "template": "w"}


@pytest.mark.parametrize(("how", "handled"), [("Stop", True), ("Terminate", False)])
def test_a_stopped_workflow_still_runs_the_exit_hooks_of_its_steps(how, handled):
    platform = ArgoPlatform(SLOW)
    platform.create("Workflow", "wf", spec=steps([task("slow", onExit="w")], [task("then")], onExit="w"))
    platform.run(10.0)
    platform.shut_down("wf", how)
    platform.run(200.0)
    workflow = platform.get("wf")
    found = phases(workflow)
    assert workflow["status"]["phase"] == "Failed"
    assert workflow["status"]["message"] == f"Stopped with strategy '{how}'"
    assert ("[0].slow.onExit" in found, "onExit" in found) == (handled, handled)
    assert (found["[0].slow"], found["[0]"], found[""]) == ("Failed", "Failed", "Failed")
    assert "[1]" not in found
    assert nodes_of(workflow)["wf[0].slow"][2] == f"workflow shutdown with strategy:  {how}"
    assert nodes_of(workflow)["wf[0]"][2].startswith("child 'wf-")


def test_what_a_stopped_dag_did_not_begin_fails_without_a_pod():
    platform = ArgoPlatform(SLOW)
    document = dag(task("slow"), task("also"))
    document["templates"][0]["parallelism"] = 1
    document["templates"][0]["dag"]["failFast"] = False
    platform.create("Workflow", "wf", spec=document)
    platform.run(10.0)
    platform.shut_down("wf", "Stop")
    platform.run(200.0)
    assert nodes_of(platform.get("wf"))["wf.also"][1:3] == ("Failed", "workflow shutdown with strategy: Stop")
    assert len([name for name in platform.names("Pod") if name.startswith("wf-")]) <= 1
