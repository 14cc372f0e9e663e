"""Pipelines as users upload them: what is one, and what it takes."""

from collections.abc import Mapping
from typing import Any

import yaml

from harness.simulator.kfp.errors import invalid
from harness.simulator.kfp.records import Spec


def parse_package(package: bytes) -> tuple[Spec, Spec]:
    """The PipelineSpec of an uploaded package, and its executors' platform settings.

    Raises:
        RpcError: 400: not a compiled pipeline.
    """
    try:
        documents = [each for each in yaml.load_all(package, Loader=yaml.CSafeLoader) if each]  # safe C loader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise invalid(f"Invalid input error: Failed to parse the pipeline: {error}") from error
    if not documents or not isinstance(documents[0], dict):
        raise invalid("Invalid input error: unknown template format: pipeline spec is invalid")
    return checked_spec(documents[0]), platform_of(documents[1] if len(documents) > 1 else {})


def checked_spec(spec: Mapping[str, Any]) -> Spec:
    """A PipelineSpec, or the error for what is none."""
    if not isinstance(spec.get("root"), dict) or not (spec.get("pipelineInfo") or {}).get("name"):
        raise invalid("Invalid input error: unknown template format: pipeline spec is invalid")
    return dict(spec)


def platform_of(document: Mapping[str, Any]) -> Spec:
    """Executors' settings in a platform spec."""
    found = document.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {}).get("executors", {})
    return dict(found)


def complete_parameters(spec: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, object]:
    """The run's parameters with the pipeline's defaults.

    Raises:
        RpcError: 400: a required one is missing, or one is given that the pipeline does not have.
    """
    definitions: Mapping[str, Any] = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    unknown = [name for name in given if name not in definitions]
    if unknown:
        names = ", ".join(sorted(unknown))
        raise invalid(f"Invalid input error: parameter(s) provided are not required or optional by pipeline: {names}")
    values: dict[str, object] = {}
    for name, definition in definitions.items():
        if name in given:
            values[name] = given[name]
        elif "defaultValue" in definition:
            values[name] = definition["defaultValue"]
        elif not definition.get("isOptional"):
            message = f"parameter {name} is not optional, yet has neither default value nor user provided value"
            raise invalid(f"Invalid input error: {message}")
    return values
