"""What the recorded workflows lack: conditions, dependencies, loops over parameters, templates, schedules, refusals."""

import pytest

from harness.simulator.argo.expressions import ExpressionError, holds, is_met, item_name
from harness.simulator.argo.support import UnsupportedError, demand_supported
from harness.simulator.engine.distributions import Amount, Uniform, fixed
from harness.simulator.kube_api import ApiError
from harness.simulator.profile import Quota, Step
from tests.support.argo_platform import FAILS, POD, WORK, ArgoPlatform, dag, ended, nodes_of, phases, steps, task


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 == 1", True), ("a != b", True), ("'x y' == 'x y'", True), ("2 > 10", False), ("2 <= 10 && a == b", False),
        ("a == b || (1 < 2 && !(3 < 2))", True), ("true", True), ("false == false", True),
    ],
)  # fmt: skip
def test_conditions_are_evaluated(text, value):
    assert holds(text) is value


@pytest.mark.parametrize("text", ["", "1 ==", "a", "1 < x", "(1 == 1", "1 == 1)"])
def test_what_is_no_condition_is_told(text):
    with pytest.raises(ExpressionError):
        holds(text)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("a", True), ("a && b", False), ("a || b", True), ("b.Failed", True), ("a.Succeeded && !b.Succeeded", True),
        ("c", True), ("c.Succeeded", False),
    ],
)  # fmt: skip
def test_dependencies_are_met_by_phases(text, met):
    assert is_met(text, {"a": "Succeeded", "b": "Failed", "c": "Skipped"}) is met


def test_items_name_nodes_as_argo_does():
    assert [item_name(2, each) for each in ("x", 3, True, {"b": 1, "a": "y"})] == [
        "(2:x)", "(2:3)", "(2:true)", "(2:a:y,b:1)",
    ]  # fmt: skip


def test_pods_take_as_long_on_another_platform_with_the_same_seed():
    spec = dag(task("a"), task("b"), *(task(f"{each}{each}", dependencies=[each]) for each in "ab"))
    varied = Step(duration=Amount(Uniform(2.0, 40.0)), **WORK)

    def took(pods):
        platform = ArgoPlatform(varied, quota=Quota(pods=pods))
        for name in ("one", "two"):
            platform.create("Workflow", name, spec=spec)
        platform.run()
        pods = [pod for run in platform.platform.controller.workflows.values() for pod in run.pods]
        return {pod.name: round(pod.main_ended - pod.started, 6) for pod in pods}

    few, many = took(1), took(100)
    assert few == many
    assert len(set(few.values())) == len(few) == 8


def test_a_false_condition_skips_its_task_and_what_follows_still_runs():
    workflow = ended(
        dag(task("a", when="{{workflow.parameters.go}} == yes"), task("b", dependencies=["a"]),
            arguments={"parameters": [{"name": "go", "value": "no"}]})
    )  # fmt: skip
    assert phases(workflow) == {"": "Succeeded", "a": "Skipped", "b": "Succeeded"}
    assert nodes_of(workflow)["wf.a"][2] == "when 'no == yes' evaluated false"


def test_a_task_can_depend_on_a_failure():
    workflow = ended(dag(task("bad"), task("mend", depends="bad.Failed"), task("never", depends="bad.Succeeded")))
    assert phases(workflow) == {"": "Failed", "bad": "Failed", "mend": "Succeeded", "never": "Omitted"}
    assert phases(ended(dag(task("bad"), task("mend", depends="bad.Failed"))))[""] == "Succeeded"


def test_a_dag_begins_nothing_new_after_a_failure_unless_it_is_told_to():
    tasks = [task("bad"), task("slow"), task("after", dependencies=["slow"])]
    slow = Step(match="slow", duration=fixed(30.0), **WORK)
    assert "after" not in phases(ended(dag(*tasks), FAILS, slow))
    spec = dag(*tasks)
    spec["templates"][0]["dag"]["failFast"] = False
    assert phases(ended(spec, FAILS, slow)) == {
        "": "Failed",
        "bad": "Failed",
        "slow": "Succeeded",
        "after": "Succeeded",
    }


def test_a_failed_step_may_be_allowed_to_fail():
    steps = [[{"name": "bad", "template": "w", "continueOn": {"failed": True}}], [{"name": "then", "template": "w"}]]
    workflow = ended({"entrypoint": "main", "templates": [{"name": "main", "steps": steps}, POD]})
    assert workflow["status"]["phase"] == "Succeeded"
    steps[0][0].pop("continueOn")
    workflow = ended({"entrypoint": "main", "templates": [{"name": "main", "steps": steps}, POD]})
    assert workflow["status"]["phase"] == "Failed"
    assert "wf[1]" not in nodes_of(workflow)


def test_a_loop_over_objects_hands_their_fields_on():
    given = {"parameters": [{"name": "n", "value": "{{item.size}}"}]}
    workflow = ended(dag(task("each", withItems=[{"size": 1}, {"size": 2}], arguments=given)))
    assert sorted(phases(workflow)) == ["", "each", "each(0:size:1)", "each(1:size:2)"]


def test_outputs_are_the_defaults_that_templates_give():
    maker = {"name": "m", "container": {"image": "a"}, "outputs": {
        "parameters": [{"name": "list", "valueFrom": {"path": "/tmp/x", "default": "[1,2]"}}],
    }}  # fmt: skip
    spec = dag(
        {"name": "make", "template": "m"},
        task("use", depends="make", withParam="{{tasks.make.outputs.parameters.list}}"),
    )
    spec["templates"].append(maker)
    assert {"use(0:1)", "use(1:2)"} <= phases(ended(spec)).keys()


def test_a_tag_that_names_nothing_is_an_error_of_its_node():
    workflow = ended(dag(task("a", arguments={"parameters": [{"name": "n", "value": "{{workflow.parameters.no}}"}]})))
    assert workflow["status"]["phase"] == "Error"
    assert workflow["status"]["message"] == "failed to resolve {{workflow.parameters.no}}"


def test_the_exit_handler_knows_how_it_ended():
    after = {"name": "bye", "steps": [[{"name": "bad", "template": "w", "when": "{{workflow.status}} != Succeeded"}]]}
    spec = dag(task("a"), onExit="bye")
    spec["templates"].append(after)
    assert nodes_of(ended(spec))["wf.onExit[0].bad"][1] == "Skipped"


def test_workflows_of_higher_priority_start_first():
    platform = ArgoPlatform(controller={"parallelism": 1})
    for name, priority in (("first", 0), ("low", 1), ("high", 9)):
        platform.create("Workflow", name, spec={**dag(task("a")), "priority": priority})
    platform.run(300.0)
    started = {name: platform.get(name)["status"]["startedAt"] for name in ("first", "low", "high")}
    assert started["first"] < started["high"] < started["low"]


def test_pods_are_collected_as_their_workflow_asks():
    platform = ArgoPlatform()
    platform.create("Workflow", "kept", spec=dag(task("a")))
    platform.create("Workflow", "gone", spec=dag(task("a"), podGC={"strategy": "OnWorkflowSuccess"}))
    platform.run(60.0)
    assert [name.partition("-")[0] for name in platform.names("Pod") if "-w-" in name] == ["kept"]


def test_a_pod_that_a_quota_refuses_waits_with_the_servers_message():
    spec = dag(task("a"), task("b"))
    spec["templates"][1] = {**POD, "container": {"image": "a", "resources": {"requests": {"cpu": "1"}}}}
    platform = ArgoPlatform(quota=Quota(cpu=1.0))
    platform.create("Workflow", "wf", spec=spec)
    platform.run(3.0)
    refused = [node for node in nodes_of(platform.get("wf")).values() if "exceeded quota" in node[2]]
    assert [node[1] for node in refused] == ["Pending"]
    platform.run(60.0)
    assert platform.get("wf")["status"]["phase"] == "Succeeded"


def test_deleting_a_workflow_deletes_its_pods_and_gives_back_its_locks():
    platform = ArgoPlatform(Step(duration=fixed(500.0), **WORK))
    for name in ("a", "b"):
        platform.create("Workflow", name, spec=dag(task("t"), synchronization={"mutex": {"name": "m"}}))
    platform.run(5.0)
    assert platform.get("b")["status"]["phase"] == "Pending"
    platform.delete("a")
    platform.run(10.0)
    assert platform.names() == ["b"]
    assert platform.get("b")["status"]["phase"] == "Running"


def test_a_semaphore_without_its_config_map_is_an_error():
    lock = {"semaphores": [{"configMapKeyRef": {"name": "none", "key": "k"}}]}
    status = ended(dag(task("a"), synchronization=lock))["status"]
    assert (status["phase"], status["message"]) == ("Error", 'configmaps "none" not found')


def test_a_workflow_runs_the_template_that_it_refers_to_with_its_own_parameters():
    platform = ArgoPlatform(FAILS)
    arguments = {"parameters": [{"name": "go", "value": "yes"}]}
    spec = dag(task("a", when="{{workflow.parameters.go}} == yes"), arguments=arguments)
    platform.create("WorkflowTemplate", "t", spec=spec)
    platform.create("ClusterWorkflowTemplate", "t", spec=spec)
    own = {"parameters": [{"name": "go", "value": "no"}]}
    platform.create("Workflow", "one", spec={"workflowTemplateRef": {"name": "t"}})
    platform.create(
        "Workflow", "two", spec={"workflowTemplateRef": {"name": "t", "clusterScope": True}, "arguments": own}
    )
    platform.run(60.0)
    assert nodes_of(platform.get("one"))["one.a"][1] == "Succeeded"
    assert nodes_of(platform.get("two"))["two.a"][1] == "Skipped"
    with pytest.raises(ApiError, match='"none" not found'):
        platform.create("Workflow", "three", spec={"workflowTemplateRef": {"name": "none"}})


def test_a_cron_workflow_starts_when_its_schedule_says():
    platform = ArgoPlatform()
    platform.create("CronWorkflow", "c", spec={"schedule": "*/2 * * * *", "workflowSpec": dag(task("a"))})
    platform.run(7 * 60.0)
    made = platform.names()
    assert len(made) == 3
    assert all(name.startswith("c-") for name in made)


def test_a_cron_workflow_that_forbids_it_does_not_overlap():
    platform = ArgoPlatform(Step(duration=fixed(100.0), **WORK))
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "workflowSpec": dag(task("a"))}
    platform.create("CronWorkflow", "c", spec=spec)
    platform.run(4 * 60.0 + 30)
    assert len(platform.names()) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hooks": {"running": {"template": "w"}}}, "spec.hooks.running.expression"),
        ({"hooks": {"h": {"template": "w", "expression": "workflow.status =="}}}, "spec.hooks.h.expression"),
        ({"hooks": {"exit": {"template": "w", "when": "1 == 1"}}}, "spec.hooks.exit.when"),
        ({"templates": [{**POD, "containerSet": {}}]}, "spec.templates[0]"),
        ({"templates": [{**POD, "unheard": {}}]}, "spec.templates[0].unheard"),
        ({"templates": [{**POD, "memoize": {"key": "k", "cache": {"redis": {}}}}]}, "spec.templates[0].memoize.cache.redis"),
        ({"templates": [{"name": "s", "suspend": {"duration": "soon"}}]}, "spec.templates[0].suspend.duration"),
        ({"templates": [{"name": "d", "dag": {"tasks": [task("a", inline={"container": {}})]}}]},
         "spec.templates[0].dag.tasks[0].template"),
        ({"templates": [{"name": "d", "dag": {"tasks": [{"name": "a", "inline": {"unheard": 1}}]}}]},
         "spec.templates[0].dag.tasks[0].inline.unheard"),
        ({"templates": [{"name": "d", "steps": [[task("a", withSequence={"count": 2, "format": "%s"})]]}]},
         "spec.templates[0].steps[0][0].withSequence.format"),
        ({"templates": [{"name": "d", "dag": {"tasks": [task("a", withItems=[1], onExit="w")]}}]},
         "spec.templates[0].dag.tasks[0].hooks"),
    ],
)  # fmt: skip
def test_what_can_not_be_run_is_refused_by_the_fields_name(change, field):
    spec = {**dag(task("a")), **change}
    with pytest.raises(UnsupportedError) as raised:
        demand_supported(spec)
    assert raised.value.field == field
    platform = ArgoPlatform()
    with pytest.raises(ApiError) as refused:
        platform.create("Workflow", "wf", spec=spec)
    assert refused.value.code == 422
    assert field in refused.value.message
    assert platform.names() == []


@pytest.mark.parametrize("schedule", ["* * * *", "61 * * * *", "x * * * *"])
def test_a_wrong_schedule_is_refused(schedule):
    with pytest.raises(ApiError, match=r"spec\.schedule"):
        ArgoPlatform().create("CronWorkflow", "c", spec={"schedule": schedule, "workflowSpec": dag(task("a"))})


def test_other_changes_of_a_workflow_are_refused():
    platform = ArgoPlatform()
    platform.create("Workflow", "wf", spec=dag(task("a")))
    with pytest.raises(ApiError, match="can't change spec"):
        platform.shut_down("wf", "Sideways")


def test_a_generated_name_is_a_new_one_each_time():
    platform = ArgoPlatform()
    for _ in range(2):
        platform.create("Workflow", "", spec=dag(task("a")), metadata={"name": None, "generateName": "nightly-"})
    platform.run(60.0)
    assert len(set(platform.names())) == 2
    assert all(name.startswith("nightly-") and len(name) == 13 for name in platform.names())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (dag(task("a"), task("a")), "templates.main.tasks name 'a' is not unique"),
        (steps([task("a")], [task("a")]), "templates.main.steps name 'a' is not unique"),
        (dag(task("a", dependencies=["b"])), "templates.main.tasks.a dependency 'b' not defined"),
        (dag(task("a", depends="c"), task("b", depends="a"), task("c", depends="b")),
         "templates.main.tasks: a, b, c wait for each other"),
        ({**dag(task("a")), "templates": [POD, POD], "entrypoint": "w"}, "template name 'w' not unique"),
        (dag(task("a", template="none")), "template name 'none' undefined"),
    ],
)  # fmt: skip
def test_what_argos_validation_finds_ends_a_workflow_before_it_begins(spec, said):
    status = ended(spec)["status"]
    assert (status["phase"], status["message"], status.get("nodes")) == ("Failed", f"invalid spec: {said}", None)
