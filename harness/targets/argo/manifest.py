"""Argo manifests: what a file holds, its parameters, and the Workflow that is created for a scenario."""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from harness import reading
from harness.model.errors import ConfigError
from harness.model.redaction import HIDDEN, Redaction
from harness.targets.scenarios import Input, InputType

GROUP_VERSION = "argoproj.io/v1alpha1"
TEST_LABEL = "pipeswarm.io/test"  # the plan's id: which workflows are this test's
RUN_NAME = "pipeswarm.io/run-name"  # annotation: the run's name, as in the scenarios
# Where each kind has the specification of the workflows that are made from it.
_SPEC_OF_KIND = {
    "Workflow": ("spec",),
    "WorkflowTemplate": ("spec",),
    "ClusterWorkflowTemplate": ("spec",),
    "CronWorkflow": ("spec", "workflowSpec"),
}
_HINT = "give a manifest of kind Workflow, as for argo submit"
_MOST_IN_NAME = 52  # of the 63 characters that a label value may have: Argo labels a workflow's pods with its name
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Reference:
    """A template in the cluster, as ``--from KIND/NAME`` names it; `kind` is the API's."""

    kind: str
    name: str


_KINDS = {
    "workflowtemplate": "WorkflowTemplate", "wftmpl": "WorkflowTemplate",
    "clusterworkflowtemplate": "ClusterWorkflowTemplate", "cwft": "ClusterWorkflowTemplate",
    "clusterwftmpl": "ClusterWorkflowTemplate",
    "cronworkflow": "CronWorkflow", "cronwf": "CronWorkflow", "cwf": "CronWorkflow",
}  # fmt: skip


def parse_reference(text: str) -> Reference:
    """``workflowtemplate/NAME`` and the like, as ``argo submit --from`` takes them.

    Raises:
        ConfigError: the text is no such reference.
    """
    kind, _, name = text.partition("/")
    if kind.lower() not in _KINDS or not name:
        raise ConfigError(
            f"--from: '{text}' names no template",
            "write it as workflowtemplate/NAME, clusterworkflowtemplate/NAME or cronworkflow/NAME",
        )
    return Reference(_KINDS[kind.lower()], name)


def read_manifest(path: Path) -> dict[str, Any]:
    """The one Argo manifest in a YAML or JSON file.

    Raises:
        ConfigError: there is no such file, or it is not a manifest that workflows can be made from.
    """
    try:
        text = reading.read_bytes(path)
    except FileNotFoundError:
        raise ConfigError(f"the workflow file {path} does not exist", _HINT) from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", _HINT) from error
    return parse_manifest(text, str(path))


def parse_manifest(text: bytes, where: str) -> dict[str, Any]:
    """The one Argo manifest in a document; `where` names it in errors.

    Raises:
        ConfigError: it is not a manifest that workflows can be made from.
    """
    documents = [each for each in reading.parse_yaml(text, where) if each is not None]
    if len(documents) != 1:
        raise ConfigError(f"{where} holds {len(documents)} documents, and a test runs one workflow", _HINT)
    manifest = documents[0]
    if not isinstance(manifest, dict) or manifest.get("apiVersion") != GROUP_VERSION:
        raise ConfigError(f"{where} is not an Argo manifest{_what(manifest)}", _HINT)
    if manifest.get("kind") not in _SPEC_OF_KIND:
        raise ConfigError(f"{where} is a {manifest.get('kind')}, from which no workflow can be made", _HINT)
    with reading.structured(where, _HINT):
        _check(where, spec_of(manifest))
        inputs_of(spec_of(manifest))
    return manifest


def _what(manifest: object) -> str:
    if isinstance(manifest, dict) and "pipelineInfo" in manifest:
        return ": it is a compiled KFP pipeline, for locustfiles/kfp.py"
    if isinstance(manifest, dict) and manifest.get("apiVersion"):
        return f" of {GROUP_VERSION}: its apiVersion is {manifest['apiVersion']}"
    return ""


def _check(where: str, spec: Mapping[str, Any]) -> None:
    """What Argo would refuse or fail for each of the runs."""
    if spec.get("workflowTemplateRef"):
        return
    names = [str(each["name"]) for each in spec.get("templates") or ()]
    entrypoint = spec.get("entrypoint")
    if not entrypoint:
        raise ConfigError(f"{where}: spec.entrypoint is missing", f"name one of its templates: {', '.join(names)}")
    if entrypoint not in names:
        raise ConfigError(
            f"{where}: spec.entrypoint names '{entrypoint}', and there is no such template",
            f"its templates are: {', '.join(names) or 'none'}",
        )


def spec_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The specification of the workflows that are made from a manifest.

    Raises:
        ConfigError: it has none.
    """
    found: Any = manifest
    for key in _SPEC_OF_KIND[str(manifest["kind"])]:
        found = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        name = (manifest.get("metadata") or {}).get("name") or manifest["kind"]
        raise ConfigError(f"{name} has no {'.'.join(_SPEC_OF_KIND[str(manifest['kind'])])}", _HINT)
    return found


def inputs_of(spec: Mapping[str, Any], template: Mapping[str, Any] | None = None) -> tuple[Input, ...]:
    """The parameters of a workflow's specification, over those of the `template` that it refers to.

    Argo passes every value as a text. A parameter without any value is required. What the workflow does not say about a
    parameter, its template does: Argo merges them field by field.
    """
    found = {each.name: each for each in _inputs(template or {})}
    for each in _inputs(spec):
        below = found.get(each.name, each)
        valued = below if each.required else each
        found[each.name] = replace(valued, choices=each.choices or below.choices)
    return tuple(found.values())


def _inputs(spec: Mapping[str, Any]) -> Iterator[Input]:
    for each in (spec.get("arguments") or {}).get("parameters") or ():
        source = each.get("valueFrom")
        value = each.get("value", each.get("default", (source or {}).get("default")))
        choices = tuple(str(as_text(choice)) for choice in each.get("enum") or ())
        required = value is None and not source
        yield Input(str(each["name"]), InputType.STRING, required, as_text(value), choices=choices)


def trial_values(*specs: Mapping[str, Any]) -> dict[str, str]:
    """Values for parameters that have none, with which a workflow can be checked: the first choice where there are any.

    The names are those of all `specs`.
    """
    declared = [each for spec in specs for each in (spec.get("arguments") or {}).get("parameters") or ()]
    choices = {str(each["name"]): each["enum"] for each in declared if each.get("enum")}
    required = [each.name for each in inputs_of(specs[0], *specs[1:]) if each.required]
    return {name: str(choices[name][0]) if name in choices else "" for name in required}


def as_text(value: object) -> str | None:
    """A parameter's value as Argo's API takes it: numbers and booleans as JSON writes them."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def workflow_name(run_name: str) -> str:
    """A name for a new workflow: that of the run as far as Kubernetes allows, and 10 random digits."""
    readable = _NOT_IN_NAME.sub("-", run_name.lower())[:_MOST_IN_NAME].strip("-") or "run"
    return f"{readable}-{secrets.token_hex(5)}"


def with_parameters(spec: Mapping[str, Any], values: Mapping[str, object]) -> dict[str, Any]:
    """The specification with the values of a scenario; parameters that it does not set keep theirs."""
    arguments = spec.get("arguments") or {}
    given = {str(each["name"]): dict(each) for each in arguments.get("parameters") or ()}
    for name, value in values.items():
        declared = {key: kept for key, kept in given.get(name, {"name": name}).items() if key != "valueFrom"}
        given[name] = {**declared, "value": as_text(value)}
    return {**spec, "arguments": {**arguments, "parameters": list(given.values())}} if given else dict(spec)


def without_values(document: bytes, redaction: Redaction) -> bytes:
    """A manifest without the values, defaults and choices of hidden parameters."""
    manifests = [redaction.clean_tree(each) for each in reading.parse_yaml(document, "the workflow")]
    for each in manifests:
        _hide(each, redaction)
    if document.startswith(b"{"):
        return orjson.dumps(manifests[0])
    return yaml.dump_all(manifests, Dumper=yaml.CSafeDumper, sort_keys=False).encode()


def _hide(node: Any, redaction: Redaction) -> None:
    for below in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _hide(below, redaction)
    if isinstance(node, dict) and node.get("name") in redaction.names:
        node.update(dict.fromkeys(node.keys() & {"value", "default"}, HIDDEN))
        if "enum" in node:
            node["enum"] = [HIDDEN]
