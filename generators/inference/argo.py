"""Reads the parameters of an Argo Workflow or WorkflowTemplate from its manifest.

Argo passes every value as a text; what kind of value it is shows in the default.
"""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from generators.inference.parameter import Parameters
from harness import reading
from harness.model.argo.manifest import over_template, spec_of
from harness.model.errors import ConfigError
from harness.targets.argo.manifest import inputs_of, read_manifests
from harness.targets.scenarios import Input, InputType

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
        given = (spec.get("arguments") or {}).get("parameters") or ()
        sources = {str(each["name"]): each.get("valueFrom") or {} for each in given if "value" not in each}
        of_cluster = [name for name, source in sources.items() if source.keys() - {"default"}]
        inputs = tuple(_typed(each) for each in inputs_of(spec) if each.name not in of_cluster)
        notes = tuple(f"the parameter '{name}' takes its value from the cluster and is left out" for name in of_cluster)
        return Parameters(inputs, str(path), notes)


def _typed(parameter: Input) -> Input:
    """The parameter with the type that its default looks like, and the default of that type."""
    text = parameter.default
    if parameter.choices or not isinstance(text, str):
        return parameter
    if text in _BOOLEANS:
        return replace(parameter, type=InputType.BOOLEAN, default=_BOOLEANS[text])
    with suppress(ValueError):
        if str(int(text)) == text:  # not "007", which is a name
            return replace(parameter, type=InputType.INTEGER, default=int(text))
    with suppress(ValueError):
        if text[-1:].isdigit() and "." in text:
            return replace(parameter, type=InputType.DOUBLE, default=float(text))
    return parameter
