"""What workflows of Argo can hold beyond tasks with containers: each kind of template, unknown values, expressions."""

import pytest

from harness.simulator.argo.support import demand_supported
from harness.simulator.engine.distributions import fixed
from harness.simulator.profile import Step
from tests.support.argo_platform import POD, WORK, ArgoPlatform, dag, ended, nodes_of, phases, steps, task

SCRIPT = {"name": "s", "script": {"image": "a", "source": "print(1)"}}


def with_templates(spec, *templates):
    return {**spec, "templates": [*spec["templates"], *templates]}


def given(name, value):
    return {"parameters": [{"name": name, "value": value}]}


def said(workflow, name):
    """The inputs of no node are shown, so a test passes them on as an output of the steps around it."""
    (found,) = (each for each in workflow["status"]["nodes"].values() if each["name"] == name)
    return {each["name"]: each["value"] for each in found["outputs"]["parameters"]}


def evaluated(text, **more):
    """What Argo makes of a text in an output parameter of the entrypoint."""
    spec = steps([task("a")], arguments={"parameters": [{"name": "n", "value": "7"}, {"name": "j", "value": '{"a": {"b": [4, 5]}}'}]})  # fmt: skip
    spec["templates"][0]["outputs"] = {"parameters": [{"name": "o", "valueFrom": {"expression": text, **more}}]}
    return said(ended(spec), "wf")["o"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("asInt(workflow.parameters.n) * 10 + 1", "71"), ("workflow.parameters.n == '7' ? 'yes' : 'no'", "yes"),
        ("jsonpath(workflow.parameters.j, '$.a.b[1]')", "5"), ("fromJson(workflow.parameters.j).a.b[0]", "4"),
        ("toJson(filter([1, 3], {# > 1}))", "[3]"), ("toJson(map(1..3, {# * 2}))", "[2,4,6]"),
        ("steps.none.outputs.result ?? 'other'", "other"), ("sprig.upper('a') + lower('B')", "Ab"),
        ("workflow.parameters.n in ['6', '7']", "true"), ("steps['a'].status", "Succeeded"),
        ("'abc' contains 'b' and not ('a' matches '^b')", "true"), ("-2 ** 2 % 3", "1"), ("len({a: 1, 'b': 2})", "2"),
        ('"x" | upper()', "X"),
    ],
)  # fmt: skip
def test_expressions_are_evaluated(text, value):
    assert evaluated(text) == value


@pytest.mark.parametrize(
    "text", ["sprig.unheard(1)", "workflow.none", "1 +", "'a' * 3", "asInt('x')", "'a' matches '(a+)+'"]
)
def test_what_can_not_be_evaluated_takes_its_default(text):
    assert evaluated(text, default="none") == "none"


@pytest.mark.parametrize(
    "condition",
    ["{{= steps.one.outputs.result == 'a'}}", "{{=sprig.unheard()}}", "{{steps.one.outputs.result}} == 'a'"],
)
def test_a_condition_that_only_a_real_argo_can_evaluate_holds_for_some_runs(condition):
    spec = with_templates(steps([{"name": "one", "template": "s"}], [task("two", when=condition)]), SCRIPT)
    platform = ArgoPlatform()
    for number in range(20):
        platform.create("Workflow", f"w{number}", spec=spec)
    platform.run()
    found = {phases(platform.get(f"w{number}"), f"w{number}")["[1].two"] for number in range(20)}
    assert found == {"Succeeded", "Skipped"}


def test_exactly_one_branch_of_a_flipped_coin_is_taken():
    flip, again = [{"name": "flip", "template": "s"}], "{{steps.flip.outputs.result}}"
    spec = with_templates(
        steps(flip, [task("h", when=f"{again} == heads"), task("t", when=f"{again} == tails")]), SCRIPT
    )
    platform = ArgoPlatform()
    for number in range(20):
        platform.create("Workflow", f"w{number}", spec=spec)
    platform.run()
    found = [phases(platform.get(f"w{number}"), f"w{number}") for number in range(20)]
    assert {(each["[1].h"], each["[1].t"]) for each in found} == {("Succeeded", "Skipped"), ("Skipped", "Succeeded")}
    assert {each[""] for each in found} == {"Succeeded"}


def test_the_profile_can_say_what_a_step_returns():
    spec = with_templates(
        steps([{"name": "flip", "template": "s"}], [task("h", when="{{steps.flip.outputs.result}} == heads")]), SCRIPT
    )
    always = Step(match="flip", duration=fixed(1.0), results={"result": ("tails",)}, **WORK)
    assert phases(ended(spec, always))["[1].h"] == "Skipped"


def test_a_loop_over_an_unknown_list_has_three_items_with_the_fields_that_are_read():
    loop = task("each", withParam="{{steps.make.outputs.result}}", arguments=given("n", "{{item.size}}"))
    found = phases(ended(with_templates(steps([{"name": "make", "template": "s"}], [loop]), SCRIPT)))
    assert sorted(each for each in found if "each" in each) == [f"[1].each({k}:size:{k})" for k in range(3)]


def test_the_results_of_a_loop_are_a_list_for_the_next_one():
    first = {"name": "make", "template": "s", "withItems": ["a", "b"]}
    second = {"name": "use", "template": "w", "withParam": "{{steps.make.outputs.result}}"}
    found = phases(ended(with_templates(steps([first], [second]), SCRIPT)))
    assert sum("use" in each for each in found) == 2


def test_a_recursion_ends_when_its_drawn_condition_fails():
    inner = [
        [{"name": "flip", "template": "s"}],
        [{"name": "again", "template": "main", "when": "{{steps.flip.outputs.result}} == tails"}],
    ]
    spec = {"entrypoint": "main", "templates": [{"name": "main", "steps": inner}, SCRIPT]}
    assert phases(ended(spec))[""] == "Succeeded"


def test_a_daemon_serves_the_steps_after_it_and_ends_with_them():
    served = {**POD, "name": "server", "daemon": True}
    spec = with_templates(steps([{"name": "serve", "template": "server"}], [task("use")]), served)
    platform = ArgoPlatform()
    platform.create("Workflow", "wf", spec=spec)
    platform.run(6.0)
    assert phases(platform.get("wf")) | {"[0].serve": "Running", "[1].use": "Running"} == phases(platform.get("wf"))
    platform.run(60.0)
    assert set(phases(platform.get("wf")).values()) == {"Succeeded"}
    pods = platform.platform.controller.workflows["kubeflow", "wf"].pods
    daemon, client = pods
    assert daemon.started < client.started < client.finished <= daemon.finished


@pytest.mark.parametrize("retries", [0, 2])
def test_a_task_can_wait_for_a_daemon(retries):
    tasks = [{"name": "serve", "template": "server"}, task("use", depends="serve")]
    spec = with_templates(dag(*tasks), {**POD, "name": "server", "daemon": True})
    workflow = ended(spec, controller={"error_retries": retries})
    assert workflow["status"]["phase"] == "Succeeded"


def test_requests_share_one_agent_pod():
    spec = with_templates(
        steps([{"name": "a", "template": "h"}, {"name": "b", "template": "h"}]), {"name": "h", "http": {"url": "u"}}
    )
    workflow = ended(spec)
    assert [each[0] for each in nodes_of(workflow).values() if each[0] == "HTTP"] == ["HTTP", "HTTP"]
    platform = ArgoPlatform()
    platform.create("Workflow", "wf", spec=spec)
    platform.run(60.0)
    (agent,) = platform.platform.controller.workflows["kubeflow", "wf"].pods
    assert agent.name.endswith("-agent")
    assert agent.phase == "Succeeded"


def test_the_containers_of_a_set_run_in_one_pod_one_after_the_other():
    containers = [{"name": "one", "image": "a"}, {"name": "two", "image": "b", "dependencies": ["one"]}]
    spec = {"entrypoint": "set", "templates": [{"name": "set", "containerSet": {"containers": containers}}]}
    lasting = (Step(match="one", duration=fixed(10.0), **WORK), Step(match="two", duration=fixed(30.0), **WORK))
    platform = ArgoPlatform(*lasting)
    platform.create("Workflow", "wf", spec=spec)
    platform.run()
    assert {name: each[:2] for name, each in nodes_of(platform.get("wf")).items()} == {
        "wf": ("Pod", "Succeeded"), "wf.one": ("Container", "Succeeded"), "wf.two": ("Container", "Succeeded"),
    }  # fmt: skip
    (pod,) = platform.platform.controller.workflows["kubeflow", "wf"].pods
    assert pod.main_ended - pod.started == pytest.approx(40.0)


def test_containers_of_a_set_that_wait_for_each_other_are_an_error_of_the_run():
    containers = [
        {"name": "one", "image": "a", "dependencies": ["two"]},
        {"name": "two", "image": "b", "dependencies": ["one"]},
    ]
    spec = {"entrypoint": "set", "templates": [{"name": "set", "containerSet": {"containers": containers}}]}
    assert ended(spec)["status"]["phase"] == "Error"


def test_an_inline_template_runs_as_the_steps_own():
    spec = {
        "entrypoint": "main",
        "templates": [{"name": "main", "steps": [[{"name": "a", "inline": {"container": {"image": "a"}}}]]}],
    }
    assert phases(ended(spec)) == {"": "Succeeded", "[0]": "Succeeded", "[0].a": "Succeeded"}


@pytest.mark.parametrize(
    "kind",
    [
        {"resource": {"action": "create", "manifest": "{}"}},
        {"data": {"source": {}, "transformation": []}},
        {"suspend": {}},
        {"suspend": None},
    ],
)
def test_templates_of_other_kinds_take_as_long_as_the_profile_says(kind):
    spec = {"entrypoint": "x", "templates": [{"name": "x", **kind}]}
    slow = Step(match="x", duration=fixed(100.0), **WORK)
    platform = ArgoPlatform(slow)
    platform.create("Workflow", "wf", spec=spec)
    platform.run(90.0)
    assert platform.get("wf")["status"]["phase"] == "Running"
    platform.run(120.0)
    assert platform.get("wf")["status"]["phase"] == "Succeeded"


def test_a_pod_requests_what_all_its_containers_do():
    needs = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"name": "x", "container": {"image": "a", **needs}, "sidecars": [{"name": "b", "image": "b", **needs}]}
    platform = ArgoPlatform()
    platform.create("Workflow", "wf", spec={"entrypoint": "x", "templates": [template]})
    platform.run(3.0)
    (pod,) = platform.platform.controller.workflows["kubeflow", "wf"].pods
    assert (pod.shape.cpu, pod.shape.memory, pod.images[:2]) == (2000, 2 * 2**30, ("a", "b"))


def test_only_the_targets_of_a_dag_run_and_what_they_need():
    spec = dag(task("a"), task("b", dependencies=["a"]), task("c"))
    spec["templates"][0]["dag"]["target"] = "b"
    assert phases(ended(spec)) == {"": "Succeeded", "a": "Succeeded", "b": "Succeeded"}


def test_a_retry_strategys_expression_decides_on_another_attempt():
    strategy = {"limit": 5, "expression": "asInt(lastRetry.exitCode) > 1"}
    spec = {"entrypoint": "bad", "templates": [{"name": "bad", "retryStrategy": strategy, "container": {"image": "a"}}]}
    assert phases(ended(spec)) == {"": "Failed", "(0)": "Failed"}
    spec["templates"][0]["retryStrategy"]["expression"] = "lastRetry.status != 'Error'"
    assert sum("(" in each for each in phases(ended(spec))) == 6


def test_the_hooks_of_a_node_are_none_of_its_attempts():
    spec = with_templates(
        steps([task("a", hooks={"h": {"template": "w", "expression": "steps.a.status == 'Running'"}})])
    )
    found = nodes_of(ended(spec, controller={"error_retries": 2}))
    assert {each[1] for each in found.values()} == {"Succeeded"}
    assert sum(each[0] == "Pod" for each in found.values()) == 2


def test_parameters_come_from_config_maps():
    source = {"configMapKeyRef": {"name": "m", "key": "k"}}
    when = "{{workflow.parameters.p}} == yes"
    spec = dag(task("a", when=when), arguments={"parameters": [{"name": "p", "valueFrom": source}]})
    platform = ArgoPlatform()
    platform.create("ConfigMap", "m", data={"k": "yes"})
    platform.create("Workflow", "wf", spec=spec)
    platform.run()
    assert phases(platform.get("wf"))["a"] == "Succeeded"


def test_a_step_that_reads_what_a_skipped_one_did_not_write_takes_its_own_default():
    producer = {**POD, "name": "p", "outputs": {"parameters": [{"name": "o", "valueFrom": {"path": "/x"}}]}}
    tasks = [
        {"name": "a", "template": "p", "when": "false"},
        task("b", depends="a", arguments=given("n", "{{tasks.a.outputs.parameters.o}}")),
    ]
    assert phases(ended(with_templates(dag(*tasks), producer)))[""] == "Succeeded"
    needs = {"name": "n", "inputs": {"parameters": [{"name": "n"}]}, "container": {"image": "a"}}
    tasks[1]["template"] = "n"
    assert phases(ended(with_templates(dag(*tasks), producer, needs)))[""] == "Error"


def test_a_workflow_ends_at_its_deadline_even_where_its_pods_never_started():
    spec = {**dag(task("a")), "activeDeadlineSeconds": 30, "nodeSelector": {"no": "such"}}
    workflow = ended(spec)
    assert (workflow["status"]["phase"], nodes_of(workflow)["wf.a"][2]) == ("Failed", "Step exceeded its deadline")


def test_defaults_of_templates_hold_where_a_template_says_nothing():
    spec = {**dag(task("bad")), "templateDefaults": {"retryStrategy": {"limit": 1}, "timeout": "30s"}}
    assert "bad(1)" in {name.replace("(0).", ".").lstrip(".") for name in phases(ended(spec))}


def test_fields_without_a_bearing_on_times_are_ignored_and_named():
    spec = {**dag(task("a")), "metrics": {}, "podGC": {"strategy": "OnPodCompletion", "deleteDelayDuration": "1s"}}
    assert demand_supported(spec) == ["spec.metrics", "spec.podGC.deleteDelayDuration"]
    assert demand_supported({**spec, "unheard": 1}, ignore=["unheard"])[-1] == "spec.unheard"
    assert phases(ended(spec))[""] == "Succeeded"


def test_the_served_platform_names_what_it_ignores_once(capsys):
    platform = ArgoPlatform()
    for name in ("one", "two"):
        platform.create("Workflow", name, spec={**dag(task("a")), "metrics": {}})
    assert capsys.readouterr().err == "Workflow one: ignored, without a bearing on times: spec.metrics\n"


def test_a_dry_run_shows_the_workflow_and_begins_none():
    platform = ArgoPlatform()
    assert platform.tried("w", dag(task("a")))["spec"] == dag(task("a"))
    assert platform.names() == []
