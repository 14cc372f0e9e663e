"""``pipeswarm simulate corpus``: every document of a folder is tried, and none ends the command."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import main
from harness.cli.platform import corpus
from harness.model.errors import ExitCode
from harness.simulator.profile.file import load_profile

API = {"apiVersion": "argoproj.io/v1alpha1"}
POD = {"name": "w", "container": {"image": "a"}}
WORKFLOW: dict[str, Any] = {
    **API, "kind": "Workflow", "metadata": {"generateName": "w-"}, "spec": {
        "entrypoint": "main", "metrics": {}, "arguments": {"parameters": [{"name": "n", "value": "1"}, {"name": "free"}]},
        "onExit": "w", "templates": [
            {"name": "main", "dag": {"tasks": [
                {"name": "a", "template": "s"},
                {"name": "b", "template": "w", "depends": "a", "when": "{{tasks.a.outputs.result}} == x"},
                {"name": "c", "template": "w", "dependencies": [], "withParam": "{{workflow.parameters.n}}"},
                {"name": "d", "template": "h", "withItems": [1, {"k": 2}], "continueOn": {"failed": True}},
            ]}},
            {"name": "s", "retryStrategy": {"limit": 1}, "script": {"image": "a", "source": "1"},
             "outputs": {"parameters": [{"name": "o", "valueFrom": {"expression": "1 + 1"}}]}},
            {"name": "h", "http": {"url": "{{=sprig.upper('u')}}"}}, POD,
        ],
    },
}  # fmt: skip
TEMPLATE = {
    **API,
    "kind": "WorkflowTemplate",
    "metadata": {"name": "shared"},
    "spec": {"templates": [POD], "entrypoint": "w"},
}
REFERS = {**API, "kind": "Workflow", "metadata": {"name": "r"}, "spec": {"workflowTemplateRef": {"name": "shared"}}}
NEEDS_MORE = {
    **API,
    "kind": "Workflow",
    "metadata": {"name": "m"},
    "spec": {"entrypoint": "w", "unheard": 1, "templates": [POD]},
}
PIPELINE: dict[str, Any] = {
    "pipelineInfo": {"name": "p"},
    "root": {
        "dag": {"tasks": {"a": {"componentRef": {"name": "c"}, "inputs": {"parameters": {"x": {"componentInputParameter": "x"}}}}}},
        "inputDefinitions": {"parameters": {"x": {"parameterType": "STRING"}}},
    },
    "components": {"c": {"executorLabel": "e", "inputDefinitions": {"parameters": {"x": {"parameterType": "STRING"}}}}},
    "deploymentSpec": {"executors": {"e": {"container": {"image": "a", "resources": {"cpuLimit": 1.0}}}}},
}  # fmt: skip


def tried(
    folder: Path, capsys: pytest.CaptureFixture[str], *options: str, code: int = ExitCode.OK
) -> dict[str, dict[str, Any]]:
    assert main(["simulate", "corpus", str(folder), "--json", *options]) == code
    return {each["file"]: each for each in json.loads(capsys.readouterr().out)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "template.yaml").write_text(yaml.safe_dump(TEMPLATE))
    (tmp_path / "below" / "refers.json").write_text(json.dumps(REFERS))
    (tmp_path / "more.yml").write_text(yaml.safe_dump(NEEDS_MORE))
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(PIPELINE))
    (tmp_path / "service.yaml").write_text("kind: Service\n")
    (tmp_path / "broken.yaml").write_text("a: [\n")
    return tmp_path


def test_every_workflow_and_pipeline_is_tried_with_the_templates_beside_it(folder, capsys):
    found = tried(folder, capsys)
    assert {name: (each["kind"], each["run"], each["pods"]) for name, each in found.items()} == {
        "template.yaml": ("argo", "ran", 1), "below/refers.json": ("argo", "ran", 1), "more.yml": ("argo", "refused", 0),
        "pipeline.yaml": ("kfp", "ran", 3),
    }  # fmt: skip
    assert "spec.unheard" in found["more.yml"]["note"]
    assert "--ignore unheard" in found["more.yml"]["note"]


def test_what_the_user_wants_ignored_is_named_and_the_workflow_runs(folder, capsys):
    found = tried(folder, capsys, "--ignore", "unheard")
    assert (found["more.yml"]["run"], found["more.yml"]["note"]) == ("ran", "ignored: spec.unheard")


def test_the_table_ends_with_how_many_ran(folder, capsys):
    assert main(["simulate", "corpus", str(folder)]) == ExitCode.OK
    shown = capsys.readouterr()
    assert "argo: 2 of 3 come to an end (67%): 2 ran, 1 refused" in shown.out
    assert "broken.yaml" in shown.err


@pytest.mark.parametrize("text", [None, "", "a: 1"])
def test_a_folder_without_pipelines_is_refused(tmp_path, text):
    folder = tmp_path / "f"
    if text is not None:
        folder.mkdir()
        (folder / "a.yaml").write_text(text)
    assert main(["simulate", "corpus", str(folder)]) == ExitCode.BAD_CONFIG


def workflow(*templates: dict[str, Any]) -> dict[str, Any]:
    return {
        **API,
        "kind": "Workflow",
        "metadata": {"name": "h"},
        "spec": {"entrypoint": "m", "templates": [*templates, POD]},
    }


def calls(*tasks: dict[str, Any]) -> dict[str, Any]:
    """A template whose tasks call others."""
    return {"name": "m", "dag": {"tasks": [{"template": "w", **task} for task in tasks]}}


def pipeline(tasks: dict[str, dict[str, Any]], **components: dict[str, Any]) -> dict[str, Any]:
    return {**PIPELINE, "root": {"dag": {"tasks": tasks}}, "components": PIPELINE["components"] | components}


def of(component: str, **more: Any) -> dict[str, Any]:
    return {"componentRef": {"name": component}, "taskInfo": {"name": "same"}, **more}


# What each is refused for.
HOSTILE = {
    "circle.yaml": (workflow(calls({"name": "a", "depends": "b"}, {"name": "b", "depends": "a"})), "a, b wait for each other"),
    "colliding.yaml": (workflow(calls({"name": "a"}, {"name": "a"})), "name 'a' is not unique"),
    "colliding-templates.yaml": (workflow({**POD, "name": "m"}, {**POD, "name": "m"}), "template name 'm' not unique"),
    "nowhere.yaml": (workflow(), "spec.entrypoint names 'm'"),
    "large.yaml": (workflow(calls({"name": "a", "withItems": ["x" * 2**21]})), "a Kubernetes object has at most 1.5"),
    "kfp-self.yaml": (pipeline({"a": of("c", dependentTasks=["a"])}), "wait for each other"),
    "kfp-dangling.yaml": (pipeline({"a": of("c", dependentTasks=["b"])}), "lacks 'b'"),
    "kfp-recursive.yaml": (pipeline({"a": of("d")}, d={"dag": {"tasks": {"b": of("d")}}}), "a component contains itself"),
    "kfp-many.yaml": (
        pipeline(
            {"a": of("d0")}, d16=PIPELINE["components"]["c"],
            **{f"d{k}": {"dag": {"tasks": {f"t{j}": of(f"d{k + 1}") for j in range(3)}}} for k in range(16)},
        ),
        "more than 50,000 pods",
    ),
    "kfp-items.yaml": (
        pipeline({"a": of("c", parameterIterator={"itemInput": "x", "items": {"raw": json.dumps([*range(10**6)])}})}),
        "a Kubernetes object has at most 1.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_in_one_sentence(name, tmp_path, capsys):
    document, says = HOSTILE[name]
    (tmp_path / name).write_text(json.dumps(document))
    (found,) = tried(tmp_path, capsys).values()
    assert found["run"] == "refused"
    assert says in found["note"]
    option = "--pipeline" if name.startswith("kfp") else "--workflow"
    place = tmp_path / "runs"
    arguments = [option, str(tmp_path / name), "--runs", "2", "--runs-dir", str(place), "--quiet"]
    assert main(["simulate", "run", "--schedule", "burst", *arguments]) == ExitCode.BAD_CONFIG
    assert capsys.readouterr().err.startswith("error: ")
    assert not place.exists() or not [*place.iterdir()]


def spots(node: Any) -> list[tuple[Any, Any]]:
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, below in inside for found in [(node, key), *spots(below)]]


JUNK = st.sampled_from(
    [None, [], {}, 0, -1, 1e308, True, "", "{{", "{{=", "{{= (( }}", "{{inputs.parameters.no}}", [None], {"name": None}, "9" * 400, "\x00", "1 +"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([WORKFLOW, TEMPLATE, PIPELINE]),
    st.lists(st.tuples(st.integers(0, 10**6), JUNK), min_size=1, max_size=2),
)
def test_a_damaged_document_is_refused_or_runs(document, changes):
    damaged = copy.deepcopy(document)
    for at, junk in changes:
        if places := spots(damaged):
            holder, key = places[at % len(places)]
            holder[key] = copy.deepcopy(junk)
    kind = corpus._kind(damaged) or "argo"
    found = corpus._try("f", kind, damaged, [(Path("f"), damaged)], [], load_profile("demo"))
    assert found.run != corpus.BUG, found.note
