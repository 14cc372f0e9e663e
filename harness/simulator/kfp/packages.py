"""Uploaded pipeline packages: parsing, and the parameters of their runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.model.errors import ConfigError
from harness.reading import parse_yaml
from harness.simulator.kfp.errors import Code, RpcError, internal, invalid
from harness.simulator.kfp.records import Spec

_UNKNOWN_FORMAT = "unknown template format"


def parse_package(package: bytes) -> tuple[Spec, Spec]:
    """The PipelineSpec of an uploaded package, and its executors' platform settings.

    Raises:
        RpcError: 400: not a compiled pipeline; 500: nothing at all.
    """
    if not package:
        raise internal("Failed to create a pipeline and a pipeline version: the pipeline spec is empty")
    try:
        documents = [each for each in parse_yaml(package, "the package") if each]
    except ConfigError as error:
        raise _no_spec(_UNKNOWN_FORMAT) from error
    if not documents or not isinstance(documents[0], dict):
        raise _no_spec(_UNKNOWN_FORMAT)
    try:
        spec = checked_spec(documents[0])
    except RpcError as error:
        raise _no_spec(_UNKNOWN_FORMAT) from error
    return spec, platform_of(documents[1] if len(documents) > 1 else {})


@contextmanager
def reading() -> Iterator[None]:
    """Turn errors while reading a PipelineSpec into API errors.

    Raises:
        RpcError: 400: malformed PipelineSpec.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _no_spec(f"invalid v2 pipeline spec: {error}") from error


def checked_spec(spec: Mapping[str, Any]) -> Spec:
    """The PipelineSpec after a check of its required parts.

    Raises:
        RpcError: 400: not a PipelineSpec.
    """
    information = spec.get("pipelineInfo")
    if not isinstance(information, dict) or not information.get("name"):
        raise _no_spec("invalid v2 pipeline spec: name is empty")
    if not isinstance(spec.get("root"), dict):
        raise _no_spec("invalid v2 pipeline spec: root component is empty")
    return dict(spec)


def _no_spec(detail: str) -> RpcError:
    return RpcError(Code.INVALID_ARGUMENT, f"InvalidInputError: {detail}: pipeline spec is invalid", detail)


def platform_of(document: Mapping[str, Any]) -> Spec:
    """The executors' settings in a platform spec."""
    with reading():
        found = document.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {}).get("executors", {})
        return dict(found)


def config_of(package: bytes) -> Spec:
    """What a package, which can be read, sets for the pipeline as a whole."""
    documents = [each for each in parse_yaml(package, "the package") if each]
    with reading():
        kubernetes = (documents[1] if len(documents) > 1 else {}).get("platforms", {}).get("kubernetes", {})
        return dict(kubernetes.get("pipelineConfig") or {})


def complete_parameters(spec: Mapping[str, Any], given: Mapping[str, object]) -> dict[str, object]:
    """The run's parameters with the pipeline's defaults.

    Raises:
        RpcError: 400: a parameter is missing, of the wrong type, or unknown.
    """
    with reading():
        definitions = dict(spec["root"].get("inputDefinitions", {}).get("parameters", {}))
        definitions = {name: dict(each) for name, each in definitions.items()}
    values: dict[str, object] = {}
    for name, definition in definitions.items():
        if name in given:
            _check_type(name, str(definition.get("parameterType", "")), given[name])
            values[name] = given[name]
        elif "defaultValue" in definition:
            values[name] = definition["defaultValue"]
        elif not definition.get("isOptional"):
            raise invalid(f"parameter {name} is not optional, yet has neither default value nor user provided value")
    unknown = [name for name in given if name not in definitions]
    if unknown:
        raise invalid(f"parameter(s) provided are not required by pipeline: {', '.join(unknown)}")
    return values


def _check_type(name: str, parameter_type: str, value: object) -> None:
    """As the server does before it creates the workflow (backend/src/apiserver/template/v2_template.go)."""
    if parameter_type not in _TYPES:
        return
    python_type, wanted, detail = _TYPES[parameter_type]
    if not isinstance(value, python_type) or (isinstance(value, bool) and parameter_type != "BOOLEAN"):
        raise invalid(f"input parameter {name} requires type {wanted}, but the {detail} value type")


_NUMBER = ((int, float), "double or integer", "parameter value is not of number")
_TYPES: Mapping[str, tuple[type | tuple[type, ...], str, str]] = {
    "NUMBER_DOUBLE": _NUMBER,
    "NUMBER_INTEGER": _NUMBER,
    "STRING": (str, "string", "input parameter is not of string"),
    "BOOLEAN": (bool, "bool", "input parameter is not of bool"),
    "LIST": (list, "list", "input parameter is not of list"),
    "STRUCT": (dict, "struct", "input parameter is not of struct"),
}
