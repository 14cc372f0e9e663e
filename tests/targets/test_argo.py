"""Workflows as created and read through both APIs, and what a user is told when something is missing."""

import json
from pathlib import Path

import pytest

from harness.model.argo.nodes import nodes_of_status
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer
from harness.model.plan import ObserverPlan, Plan
from harness.model.scenario import Scenario
from harness.model.text.redaction import HIDDEN, Redaction
from harness.simulator.kube_api import resource
from harness.targets import argo
from harness.targets.argo.manifest import TEST_LABEL, inputs_of, read_manifests
from harness.targets.scenarios import ParamMode, read_scenarios
from harness.targets.target import Cleanup, RejectedError
from tests.support.argo_exchange import DEFAULTS, MANIFEST, Argo, answer, prepared, status, template

RECORDED = Path(__file__).parents[1] / "data" / "real" / "argo"


def ready(exchange, offline, plan_id="t1"):
    options = dict(offline.options)
    found = argo.from_plan(Plan("argo", "http://h", {}, 1, 0, False, options)).set_up(exchange)
    return argo.from_plan(Plan("argo", "http://h", {}, 1, 0, False, options | dict(found.options), id=plan_id)), found


def from_template(exchange, reference):
    return ready(exchange, argo.prepare({**DEFAULTS, "from": reference}, simulated=False))


def scenario(**values):
    return Scenario("7", "Plant north_1", values, {})


@pytest.mark.parametrize("server", [False, True])
def test_a_run_is_one_workflow_with_the_scenarios_values_under_a_name_of_ours(tmp_path, server):
    cluster = Argo(server=server)
    target, _ = ready(cluster, prepared(tmp_path, namespace="team"))
    asked = len(cluster.asked)
    run = target.submit(scenario(url="u", rows="9"), cluster)
    assert len(cluster.asked) == asked + 1
    created = cluster.workflows[run]
    assert run.startswith("7-plant-north-1-")
    assert "generateName" not in created["metadata"]
    assert created["metadata"]["namespace"] == "team"
    assert created["metadata"]["labels"] == {"team": "a", TEST_LABEL: "t1"}
    values = {each["name"]: each.get("value") for each in created["spec"]["arguments"]["parameters"]}
    assert values == {"url": "u", "rows": "9", "size": "small", "fast": None, "note": None}


def test_the_same_scenario_twice_is_two_workflows(tmp_path):
    cluster = Argo()
    target, _ = ready(cluster, prepared(tmp_path))
    assert target.submit(scenario(url="u"), cluster) != target.submit(scenario(url="u"), cluster)


def test_long_and_foreign_names_fit_what_argo_labels_pods_with(tmp_path):
    cluster = Argo()
    target, _ = ready(cluster, prepared(tmp_path))
    for name in ("x" * 300, "Größe", "-", "…"):
        run = target.submit(Scenario("", name, {"url": "u"}, {}), cluster)
        assert len(run) <= 63
        assert run[0].isalnum()


def test_inputs_are_the_manifests_parameters_with_their_defaults(tmp_path):
    found = {each.name: (each.required, each.default) for each in prepared(tmp_path).inputs or ()}
    assert found == {
        "url": (True, None), "rows": (False, "7"), "size": (False, "small"), "fast": (False, "true"),
        "note": (False, None),
    }  # fmt: skip


def test_a_column_that_the_template_lacks_is_named_before_anything_is_sent(tmp_path):
    table = tmp_path / "s.csv"
    table.write_text("id,scenario_name,url,colour\n1,a,u,red\n")
    with pytest.raises(ConfigError, match="column colour: unknown parameter") as raised:
        read_scenarios(table, prepared(tmp_path).inputs, ParamMode())
    assert "url, rows, size" in str(raised.value)


@pytest.mark.parametrize("cell", ["medium", "SMALL", " small"])
def test_a_cell_that_is_none_of_a_parameters_choices_is_named_offline(tmp_path, cell):
    table = tmp_path / "s.csv"
    table.write_text(f"id,scenario_name,url,size\n1,a,u,large\n2,b,u,\n3,c,u,{cell}\n")
    with pytest.raises(ConfigError) as raised:
        read_scenarios(table, prepared(tmp_path).inputs, ParamMode())
    assert raised.value.message.startswith(f"{table} does not match")
    assert raised.value.message.splitlines()[1:] == [
        f"  row 4, column size: '{cell}' is not one of: small, large"
    ]  # fmt: skip


def test_choices_are_compared_as_the_texts_that_argo_makes_of_them(tmp_path):
    text = MANIFEST.replace("enum: [small, large]", "enum: [small, 2, true, 0.5]")
    inputs = {each.name: each.choices for each in prepared(tmp_path, text).inputs or ()}
    assert inputs["size"] == ("small", "2", "true", "0.5")


def test_a_parameter_has_the_choices_and_the_default_of_its_template():
    declared = {"arguments": {"parameters": [{"name": "size", "value": "small", "enum": ["small", "large"]}]}}
    own = {"arguments": {"parameters": [{"name": "size"}]}}
    assert inputs_of(own, declared) == inputs_of(declared)
    (wanted,) = inputs_of({"arguments": {"parameters": [{"name": "size", "value": "large"}]}}, declared)
    assert (wanted.default, wanted.choices) == ("large", ("small", "large"))


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize(
    ("reference", "kind", "referred"),
    [
        ("workflowtemplate/nightly", "WorkflowTemplate", {"name": "nightly"}),
        ("clusterworkflowtemplate/nightly", "ClusterWorkflowTemplate", {"name": "nightly", "clusterScope": True}),
        ("cronwf/nightly", "CronWorkflow", None),
    ],
)
def test_a_template_in_the_cluster_gives_the_parameters(server, reference, kind, referred):
    arguments = {"parameters": [{"name": "url"}, {"name": "n", "value": 3}]}
    cluster = Argo(template("nightly", kind, arguments=arguments), server=server)
    target, found = from_template(cluster, reference)
    assert [(each.name, each.required) for each in found.inputs] == [("url", True), ("n", False)]
    spec = cluster.workflows[target.submit(scenario(url="u"), cluster)]["spec"]
    assert spec.get("workflowTemplateRef") == referred
    assert {"name": "url", "value": "u"} in spec["arguments"]["parameters"]


def test_a_workflow_that_refers_to_a_template_has_the_parameters_of_both(tmp_path):
    text = MANIFEST.replace("entrypoint: main", "workflowTemplateRef: {name: nightly}")
    offline = prepared(tmp_path, text)
    assert offline.inputs is None
    cluster = Argo(template("nightly", arguments={"parameters": [{"name": "depth"}, {"name": "url", "value": "u"}]}))
    _, found = ready(cluster, offline)
    assert {each.name: each.required for each in found.inputs}["depth"] is True


@pytest.mark.parametrize("reference", ["nightly", "pod/nightly", "workflowtemplate/"])
def test_what_from_can_name_is_told(reference):
    with pytest.raises(ConfigError, match="--from"):
        argo.prepare({**DEFAULTS, "from": reference}, simulated=False)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (resource.workflow_templates, ["wftmpl"]),
        (resource.cluster_workflow_templates, ["clusterwftmpl", "cwft"]),
        (resource.cron_workflows, ["cwf", "cronwf"]),
    ],
)
def test_from_takes_the_names_that_kubectl_takes(kind, names):
    known = kind(**resource.shown(dict))
    assert [*known.short_names] == names
    for name in (known.kind.lower(), *names):
        assert argo.prepare({**DEFAULTS, "from": f"{name}/a"}, simulated=False).options["from"] == f"{known.kind}/a"


@pytest.mark.parametrize("server", [False, True])
def test_without_the_right_to_see_the_ends_of_runs_nothing_is_sent(tmp_path, server):
    cluster = Argo(server=server, unlisted=(403, 'User "u" cannot list resource "workflows"'))
    with pytest.raises(ConfigError, match=r"ends of workflows .* can't be observed: User") as raised:
        ready(cluster, prepared(tmp_path))
    assert "the verbs list and watch on the resource workflows" in raised.value.hint
    assert not cluster.workflows


def test_what_argo_refuses_is_refused_before_the_first_arrival(tmp_path):
    with pytest.raises(ConfigError, match="Argo refuses the workflow: its main is invalid"):
        ready(Argo(server=True, refusal=(400, "its main is invalid")), prepared(tmp_path))


def test_what_the_simulated_platform_refuses_is_not_said_to_be_argos_refusal(tmp_path):
    said = "spec.unheard: the simulated platform does not model it"
    with pytest.raises(ConfigError, match=r"^the simulated platform refuses the workflow: spec\.unheard"):
        ready(Argo(refusal=(422, said)), prepared(tmp_path))


BESIDE = """
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: shared}
spec: {templates: [{name: a, container: {image: a}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {one: "1"}
"""


def test_the_objects_beside_a_workflow_are_created_once(tmp_path):
    (tmp_path / "beside.yaml").write_text(BESIDE)
    cluster = Argo()
    offline = prepared(tmp_path, **{"with": str(tmp_path / "beside.yaml")})
    ready(cluster, offline)
    created = {
        path.rpartition("/")[2]: body["metadata"]["name"] for method, path, body in cluster.asked if method == "POST"
    }
    assert created == {"workflowtemplates": "shared", "configmaps": "limits", "workflows": "pipeswarm-trial"}
    ready(cluster, offline)  # they exist now


def test_of_several_templates_the_package_says_which_one_runs(tmp_path):
    (tmp_path / "beside.yaml").write_text(BESIDE)
    main = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": "main"}, "spec": {
            "entrypoint": "a", "arguments": {"parameters": [{"name": "n"}]},
            "templates": [{"name": "a", "container": {"image": "a"}}],
        },
    }  # fmt: skip
    (tmp_path / "main.yaml").write_text(json.dumps(main))
    given = {"workflow": str(tmp_path / "main.yaml"), "with": str(tmp_path / "beside.yaml")}
    (tmp_path / "package.yaml").write_bytes(argo.prepare({**DEFAULTS, **given}, simulated=True).package)
    first, *others = read_manifests(tmp_path / "package.yaml")
    assert (first["metadata"], first["spec"]) == (main["metadata"], main["spec"])
    assert [each["metadata"]["name"] for each in others] == ["main", "shared", "limits"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pod\nmetadata: {name: p}", "need no Pod"),
        ("kind: ConfigMap", "damaged"),
        ("- a", "not an Argo manifest"),
        ("a: [", "not valid YAML"),
    ],
)
def test_what_workflows_do_not_need_is_refused(tmp_path, text, said):
    (tmp_path / "beside.yaml").write_text(text)
    with pytest.raises(ConfigError, match=rf"beside\.yaml.*{said}"):
        prepared(tmp_path, **{"with": str(tmp_path / "beside.yaml")})


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([HttpAnswer(200, b"<!doctype html>")] * 2, "an HTML page"),
        ([status(404, "not found")], "has no Argo Workflows"),
        ([HttpAnswer(401, b"{}")], "is refused: 401"),
        ([HttpAnswer(302, b"", {"location": "https://login"})], "redirect to https://login"),
        ([HttpAnswer(200, b"<html>"), HttpAnswer(403, b'{"message": "token not valid"}')], "token not valid"),
    ],
)
def test_another_service_at_the_address_is_told(tmp_path, answers, message):
    answers = iter(answers)
    with pytest.raises(TargetUnreachableError, match=message) as raised:
        ready(lambda _: next(answers), prepared(tmp_path))
    assert "--host" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "not valid YAML"),
        (MANIFEST + "---\n" + MANIFEST, "2 workflows"),
        ("pipelineInfo: {name: a}\nroot: {}", "compiled KFP pipeline"),
        ("apiVersion: v1\nkind: Pod", "its apiVersion is v1"),
        (MANIFEST.replace("kind: Workflow", "kind: Sensor"), "is a Sensor"),
        ("apiVersion: argoproj.io/v1alpha1\nkind: Workflow", "has no spec"),
        (MANIFEST.replace("entrypoint: main", "entrypoint: other"), "there is no such template"),
        (MANIFEST.replace("  entrypoint: main\n", ""), "spec.entrypoint is missing"),
        (MANIFEST.replace("[{name: main, container: {image: a}}]", "7"), "damaged"),
        (MANIFEST.replace("enum: [small, large]", "enum: 7"), "damaged"),
    ],
)
def test_a_wrong_manifest_is_refused_offline(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        prepared(tmp_path, text)


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize(("how", "spec"), [("terminate", "Terminate"), ("stop", "Stop")])
def test_clean_up_shuts_down_and_deletes(tmp_path, server, how, spec):
    cluster = Argo(server=server)
    target, _ = ready(cluster, prepared(tmp_path, shutdown=how))
    run = target.submit(scenario(url="u"), cluster)
    target.clean(run, Cleanup.TERMINATE, cluster)
    assert cluster.workflows[run]["spec"]["shutdown"] == spec
    target.clean(run, Cleanup.DELETE, cluster)
    assert cluster.workflows == {}


def test_archiving_is_not_taken_for_a_shutdown(tmp_path):
    cluster = Argo()
    target, _ = ready(cluster, prepared(tmp_path))
    run = target.submit(scenario(url="u"), cluster)
    with pytest.raises(RejectedError, match="archives by its own configuration"):
        target.clean(run, Cleanup.ARCHIVE, cluster)
    assert "shutdown" not in cluster.workflows[run]["spec"]


def test_a_shutdown_that_comes_too_late_is_fine(tmp_path):
    target, _ = ready(Argo(server=True), prepared(tmp_path))
    target.clean("run", Cleanup.TERMINATE, lambda _: status(400, "cannot shutdown a completed workflow"))
    with pytest.raises(RejectedError):
        target.clean("run", Cleanup.TERMINATE, lambda _: status(400, "bad request"))


def test_hidden_parameters_leave_neither_values_nor_choices(tmp_path):
    kept = argo.without_values(MANIFEST.encode(), Redaction(names=["size"])).decode()
    assert "small" not in kept
    assert "large" not in kept
    assert "value: 7" in kept
    as_option = argo.without_values(prepared(tmp_path).options["workflow"].encode(), Redaction(names=["size"]))
    assert json.loads(as_option)["spec"]["arguments"]["parameters"][2]["value"] == HIDDEN


# --- workflows as a real controller left them -------------------------------------------------------------------------


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text())


def test_a_workflow_names_the_template_that_it_is_made_of():
    target, metadata = argo.from_plan(Plan("argo", "", {}, 1, 0, False)), {"name": "a-x2", "generateName": "a-"}
    assert target.read_run({"metadata": metadata}).pipeline == "a"
    assert target.read_run({"metadata": metadata, "spec": {"workflowTemplateRef": {"name": "t"}}}).pipeline == "t"
    labels = {"workflows.argoproj.io/workflow-template": "l"}
    assert target.read_run({"metadata": {**metadata, "labels": labels}}).pipeline == "l"


@pytest.mark.parametrize(
    ("name", "state", "error"),
    [
        ("plain-steps", "SUCCEEDED", ""),
        ("plain-one-fails", "FAILED", ""),
        ("plain-oom", "FAILED", "main: OOMKilled (exit code 137)"),
        ("plain-pod-deleted", "FAILED", "pod deleted"),
        ("plain-terminate", "CANCELED", ""),
        ("plain-stop", "CANCELED", ""),
        ("bad-template", "FAILED", "invalid spec: template name 'main' undefined"),
        ("plain-bad-image", "RUNNING", ""),
    ],
)
def test_a_recorded_workflow_is_the_run_that_it_was(name, state, error):
    workflow = recorded(name)
    run = argo.from_plan(Plan("argo", "", {}, 1, 0, False)).read_run(workflow)
    assert (run.id, run.state, run.error) == (name, state, error)
    assert (run.ended_at is not None) == (state != "RUNNING")
    assert run.created_at > 0
    assert run.namespace == workflow["metadata"]["namespace"]
    bare = {"metadata": workflow["metadata"]}
    assert argo.from_plan(Plan("argo", "", {}, 1, 0, False)).read_run(bare).state in {state, "FAILED"}


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("plain-with-items", ["each SUCCEEDED", "each SUCCEEDED", "each SUCCEEDED"]),
        ("plain-one-fails", ["a SUCCEEDED", "b FAILED", "c SKIPPED"]),
        ("plain-retry", ["main FAILED", "main FAILED", "main FAILED"]),
        ("plain-memo-2", ["main SUCCEEDED cached"]),
        ("suspend-step", ["wait SUCCEEDED", "a SUCCEEDED"]),
        ("with-param", ["each SUCCEEDED"] * 3),
    ],
)
def test_the_tasks_of_a_recorded_workflow_are_its_pods(name, tasks):
    found = argo.from_plan(Plan("argo", "", {}, 1, 0, False)).tasks_in(recorded(name))
    assert [f"{each.name} {each.state}{' cached' if each.cached else ''}" for each in found] == tasks
    assert all(each.started_at and each.ended_at for each in found)


@pytest.mark.parametrize("kind", ["Pod", "Retry", "DAG"])
def test_a_group_from_the_cache_is_a_task_and_one_that_was_executed_is_not(kind):
    def node(name, kind, *, hit):
        return {"id": name, "name": name, "type": kind, "phase": "Succeeded", "memoizationStatus": {"hit": hit}}

    nodes = [node("wf.a", kind, hit=True), node("wf.b", "Retry", hit=False), node("wf.b(0)", "Pod", hit=False)]
    workflow = {"metadata": {"name": "wf"}, "status": {"nodes": {each["id"]: each for each in nodes}}}
    found = argo.from_plan(Plan("argo", "", {}, 1, 0, False)).tasks_in(workflow)
    assert [(each.name, each.cached) for each in found] == [("a", True), ("b", False)]


def test_unreadable_nodes_are_an_error():
    with pytest.raises(ValueError, match="compressed nodes can't be read"):
        nodes_of_status({"compressedNodes": "%"})


def deployments(**images):
    """The listing of Deployments by name and image; names have hyphens where Python's have underscores."""
    return answer(200, {"items": [
        {"metadata": {"name": name.replace("_", "-")}, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}}
        for name, image in images.items()
    ]})  # fmt: skip


IMAGE = "quay.io/argoproj/workflow-controller"


@pytest.mark.parametrize(
    ("listed", "version"),
    [
        ({"argo": deployments(argo_server="quay.io/argocli:v1", workflow_controller=f"{IMAGE}:v3.6.7")}, "v3.6.7"),
        ({"kubeflow": deployments(workflow_controller="gcr.io/ml/workflow-controller:v3.5@sha256:12")}, "v3.5"),
        ({"argo": deployments(x="a:v1"), "kubeflow": deployments(workflow_controller=f"{IMAGE}:v2")}, "v2"),
        ({"argo": deployments(argo_workflows_workflow_controller=f"{IMAGE}@sha256:12")}, "sha256:12"),
        ({"argo": deployments(workflow_controller="registry:5000/workflow-controller")}, None),
        ({"argo": deployments(workflow_controller=f"{IMAGE}:{'9' * 3000}")}, "9" * 100),
        ({"argo": deployments(argo_server="quay.io/argocli:v1")}, None),
        ({"argo": answer(200, {"items": [{"metadata": None}]})}, None),
        ({"argo": answer(200, {})}, None),
        ({"argo": answer(500, {"items": []})}, None),
        ({}, None),
    ],
)
def test_argos_version_is_that_of_its_controllers_image_where_it_may_be_read(tmp_path, listed, version):
    offline, observer = prepared(tmp_path), ObserverPlan(platform_namespaces=("argo", "kubeflow"))
    target = argo.from_plan(Plan("argo", "http://h", {}, 1, 0, False, dict(offline.options), observer=observer))
    cluster = Argo(deployments=listed)
    expected = {"argo": version} if version else {}
    assert target.set_up(cluster).versions == target.versions(cluster) == expected


def test_an_argo_server_names_its_version_itself(tmp_path):
    cluster = Argo(server=True)
    target, found = ready(cluster, prepared(tmp_path))
    assert found.versions == target.versions(cluster) == {"argo": "v3.7.0"}
    assert not [path for _, path, _ in cluster.asked if "deployments" in path]
