"""Argo manifests: where each kind keeps its specification, and what a scenario's values change in it."""

import re
from collections.abc import Mapping
from typing import Any

from harness.model.errors import ConfigError

GROUP_VERSION = "argoproj.io/v1alpha1"
# Where each kind has the specification of the workflows that are made from it.
SPEC_OF_KIND = {
    "Workflow": ("spec",),
    "WorkflowTemplate": ("spec",),
    "ClusterWorkflowTemplate": ("spec",),
    "CronWorkflow": ("spec", "workflowSpec"),
}
RUN_NAME = "pipeswarm.io/run-name"  # annotation: the run's name, as in the scenarios
MANIFEST_HINT = "give a manifest of kind Workflow, as for argo submit"

_MOST_IN_NAME = 52  # of the 63 characters that a label value may have: Argo labels a workflow's pods with its name
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


def readable(run_name: str) -> str:
    """The part of a workflow's name that says which run it is: as much of the run's as Kubernetes allows."""
    return _NOT_IN_NAME.sub("-", run_name.lower())[:_MOST_IN_NAME].strip("-") or "run"


def spec_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The specification of the workflows that are made from a manifest.

    Raises:
        ConfigError: it has none.
    """
    found: Any = manifest
    for key in SPEC_OF_KIND[str(manifest["kind"])]:
        found = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        name = (manifest.get("metadata") or {}).get("name") or manifest["kind"]
        raise ConfigError(f"{name} has no {'.'.join(SPEC_OF_KIND[str(manifest['kind'])])}", MANIFEST_HINT)
    return found


def as_text(value: object) -> str | None:
    """A parameter's value as Argo's API takes it: numbers and booleans as JSON writes them."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_parameters(spec: Mapping[str, Any], values: Mapping[str, object]) -> dict[str, Any]:
    """The specification with the values of a scenario; parameters that it does not set keep theirs."""
    arguments = spec.get("arguments") or {}
    given = {str(parameter["name"]): dict(parameter) for parameter in arguments.get("parameters") or ()}
    for name, value in values.items():
        declared = {key: kept for key, kept in given.get(name, {"name": name}).items() if key != "valueFrom"}
        given[name] = {**declared, "value": as_text(value)}
    return {**spec, "arguments": {**arguments, "parameters": list(given.values())}} if given else dict(spec)


def over_template(spec: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """A workflow's specification over that of the template that its ``workflowTemplateRef`` names."""
    given = {parameter["name"]: parameter for parameter in (*_parameters(template), *_parameters(spec))}
    arguments = {"arguments": {"parameters": list(given.values())}} if given else {}
    return {**template, **{key: value for key, value in spec.items() if key != "workflowTemplateRef"}, **arguments}


def _parameters(spec: Mapping[str, Any]) -> list[Any]:
    return list((spec.get("arguments") or {}).get("parameters") or ())
