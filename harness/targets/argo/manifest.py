"""Argo manifests: what a file holds, its parameters, and the Workflow that is created for a scenario."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from harness import reading
from harness.model.argo.manifest import GROUP_VERSION, MANIFEST_HINT, SPEC_OF_KIND, as_text, readable, spec_of
from harness.model.errors import ConfigError
from harness.model.text.redaction import HIDDEN, Redaction
from harness.targets.scenarios import Input, InputType

NEEDED = ("WorkflowTemplate", "ClusterWorkflowTemplate", "ConfigMap")  # the kinds of objects that workflows need
TEST_LABEL = "pipeswarm.io/test"  # the plan's id: which workflows are this test's


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


def read_manifests(path: Path, beside: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """The manifest in a YAML or JSON file that workflows are made from, and the objects that these need.

    Args:
        path: holds the only Workflow or CronWorkflow, or the only manifest.
        beside: hold the objects: templates and ConfigMaps; so may `path`.

    Raises:
        ConfigError: there is no such file, or it is not a manifest that workflows can be made from.
    """
    found = _documents(path)
    main = [each for each in found if str(each.get("kind")) in {"Workflow", "CronWorkflow"}] or found
    if len(main) != 1:
        raise ConfigError(f"{path} holds {len(main)} workflows, and a test runs one", MANIFEST_HINT)
    objects = [(path, each) for each in found if each is not main[0]]
    for other in beside:
        objects += [(other, document) for document in _documents(other)]
    manifest = runnable(main[0], str(path))
    for file, each in objects:
        with reading.structured(file, MANIFEST_HINT):
            if each["kind"] not in NEEDED or not each["metadata"]["name"]:
                raise ConfigError(f"{file}: workflows need no {each['kind']}", f"leave {each['metadata']['name']} out")
    return [manifest, *(each for _, each in objects)]


def _documents(path: Path) -> list[dict[str, Any]]:
    with reading.readable(f"the workflow file {path}", MANIFEST_HINT):
        text = reading.read_bytes(path)
    documents = [each for each in reading.parse_yaml(text, str(path)) if each is not None]
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("kind", ""), str):
            raise ConfigError(f"{path} is not an Argo manifest", MANIFEST_HINT)
    return documents


def runnable(manifest: dict[str, Any], where: str) -> dict[str, Any]:
    """The manifest, if workflows can be made from it; `where` names it in errors.

    Raises:
        ConfigError: they can't.
    """
    if manifest.get("apiVersion") != GROUP_VERSION:
        raise ConfigError(f"{where} is not an Argo manifest{_what(manifest)}", MANIFEST_HINT)
    if str(manifest.get("kind")) not in SPEC_OF_KIND:
        raise ConfigError(f"{where} is a {manifest.get('kind')}, from which no workflow can be made", MANIFEST_HINT)
    with reading.structured(where, MANIFEST_HINT):
        (manifest.get("metadata") or {}).get("name")  # it may be no mapping
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
    names = [str(template["name"]) for template in spec.get("templates") or ()]
    entrypoint = spec.get("entrypoint")
    if not entrypoint:
        raise ConfigError(f"{where}: spec.entrypoint is missing", f"name one of its templates: {', '.join(names)}")
    if entrypoint not in names:
        raise ConfigError(
            f"{where}: spec.entrypoint names '{entrypoint}', and there is no such template",
            f"its templates are: {', '.join(names) or 'none'}",
        )


def inputs_of(spec: Mapping[str, Any], template: Mapping[str, Any] | None = None) -> tuple[Input, ...]:
    """The parameters of a workflow's specification, over those of the `template` that it refers to.

    Argo passes every value as a text. A parameter without any value is required. What the workflow does not say about a
    parameter, its template does: Argo merges them field by field.
    """
    inputs = {each.name: each for each in _inputs(template or {})}
    for each in _inputs(spec):
        below = inputs.get(each.name, each)
        valued = below if each.required else each
        inputs[each.name] = replace(valued, choices=each.choices or below.choices)
    return tuple(inputs.values())


def _inputs(spec: Mapping[str, Any]) -> Iterator[Input]:
    for parameter in (spec.get("arguments") or {}).get("parameters") or ():
        source = parameter.get("valueFrom")
        value = parameter.get("value", parameter.get("default", (source or {}).get("default")))
        choices = tuple(str(as_text(choice)) for choice in parameter.get("enum") or ())
        required = value is None and not source
        yield Input(str(parameter["name"]), InputType.STRING, required, as_text(value), choices=choices)


def trial_values(*specs: Mapping[str, Any]) -> dict[str, str]:
    """Values for parameters that have none, with which a workflow can be checked: the first choice where there are any.

    The names are those of all `specs`.
    """
    declared = [parameter for spec in specs for parameter in (spec.get("arguments") or {}).get("parameters") or ()]
    choices = {str(each["name"]): each["enum"] for each in declared if each.get("enum")}
    required = [each.name for each in inputs_of(specs[0], *specs[1:]) if each.required]
    return {name: str(choices[name][0]) if name in choices else "" for name in required}


def workflow_name(run_name: str) -> str:
    """A name for a new workflow: that of the run as far as Kubernetes allows, and 10 random digits."""
    return f"{readable(run_name)}-{secrets.token_hex(5)}"


def without_values(document: bytes, redaction: Redaction) -> bytes:
    """A manifest without the values, defaults and choices of hidden parameters."""
    manifests = [redaction.clean_tree(each) for each in reading.parse_yaml(document, "the workflow")]
    for manifest in manifests:
        _hide(manifest, redaction)
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
