"""Documents that somebody damaged: valid ones of Argo and KFP, hostile ones, and what to put into valid ones."""

import json
from typing import Any

from hypothesis import strategies as st

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
PIPELINE: dict[str, Any] = {
    "pipelineInfo": {"name": "p"},
    "root": {
        "dag": {"tasks": {"a": {"componentRef": {"name": "c"}, "inputs": {"parameters": {"x": {"componentInputParameter": "x"}}}}}},
        "inputDefinitions": {"parameters": {"x": {"parameterType": "STRING"}}},
    },
    "components": {"c": {"executorLabel": "e", "inputDefinitions": {"parameters": {"x": {"parameterType": "STRING"}}}}},
    "deploymentSpec": {"executors": {"e": {"container": {"image": "a", "resources": {"cpuLimit": 1.0}}}}},
}  # fmt: skip


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


def spots(node: Any) -> list[tuple[Any, Any]]:
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [found for key, below in inside for found in [(node, key), *spots(below)]]


JUNK = st.sampled_from(
    [None, [], {}, 0, -1, 1e308, True, "", "{{", "{{=", "{{= (( }}", "{{inputs.parameters.no}}", [None], {"name": None}, "9" * 400, "\x00", "1 +"]
)  # fmt: skip
