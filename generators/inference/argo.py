"""Reads the parameters of an Argo Workflow or WorkflowTemplate from its manifest.

Argo passes every value as a text; what kind of value it is shows in the default.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from generators.inference.parameter import Parameter, Parameters
from harness import reading
from harness.model.argo.manifest import as_text, over_template, spec_of
from harness.model.errors import ConfigError
from harness.targets.argo.manifest import read_manifests
from harness.targets.scenarios import InputType

_BOOLEANS = {"true": True, "false": False}


def read_workflow_template(path: Path) -> Parameters:
    """The parameters of a manifest; those that take their value from the cluster are left out.

    Raises:
        ConfigError: the file is no manifest, or it only refers to a template in the cluster.
    """
    manifest, *objects = read_manifests(path)
    spec = spec_of(manifest)
    if spec.get("workflowTemplateRef"):
        name = spec["workflowTemplateRef"].get("name")
        template = next((each for each in objects if each["metadata"]["name"] == name), None)
        if template is None:
            raise ConfigError(
                f"{path} refers to the template {name}, whose parameters are in the cluster",
                "save that: kubectl get workflowtemplate NAME -o yaml",
            )
        spec = over_template(spec, spec_of(template))
    with reading.structured(path, "correct its spec.arguments.parameters"):
        given = list((spec.get("arguments") or {}).get("parameters") or ())
        metadata = manifest.get("metadata") or {}
        name = str(metadata.get("name") or metadata.get("generateName") or path.stem).rstrip("-")
        return Parameters(name, tuple(_parameters(given)), str(path), tuple(_notes(given)))


def _parameters(given: list[Mapping[str, Any]]) -> Iterator[Parameter]:
    for each in given:
        if not _is_of_cluster(each):
            text = as_text(each.get("value", each.get("default", (each.get("valueFrom") or {}).get("default"))))
            choices = tuple(str(as_text(choice)) for choice in each.get("enum") or ())
            kind, default = (InputType.STRING, text) if choices or text is None else _typed(text)
            yield Parameter(str(each["name"]), kind, text is None, default, choices)


def _notes(given: list[Mapping[str, Any]]) -> Iterator[str]:
    for each in given:
        if _is_of_cluster(each):
            yield f"the parameter '{each['name']}' takes its value from the cluster and is left out"


def _is_of_cluster(parameter: Mapping[str, Any]) -> bool:
    source = parameter.get("valueFrom") or {}
    return bool(source.keys() - {"default"}) and "value" not in parameter


def _typed(text: str) -> tuple[InputType, object]:
    """The type that a default looks like, and the default of that type."""
    if text in _BOOLEANS:
        return InputType.BOOLEAN, _BOOLEANS[text]
    with suppress(ValueError):
        if str(int(text)) == text:  # not "007", which is a name
            return InputType.INTEGER, int(text)
    with suppress(ValueError):
        if text[-1:].isdigit() and "." in text:
            return InputType.DOUBLE, float(text)
    return InputType.STRING, text
