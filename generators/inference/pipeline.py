"""Reads the inputs of a compiled KFP pipeline: the IR's `root.inputDefinitions`. The KFP SDK is not needed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from generators.inference.parameter import Parameter, Parameters
from harness.model.errors import ConfigError
from harness.targets.scenarios import InputType

_COMPILE = "compile it: kfp dsl compile --py pipeline.py --output pipeline.yaml"
_OLD_TYPES = {"STRING": InputType.STRING, "INT": InputType.INTEGER, "DOUBLE": InputType.DOUBLE}  # IR before 2.0


def read_pipeline(path: Path) -> Parameters:
    """The parameters of a compiled pipeline.

    Raises:
        ConfigError: the file is not a compiled pipeline, or needs an artifact, which no CSV can hold.
    """
    spec = _first_document(path)
    spec = spec.get("pipeline_spec", spec)
    root, info = spec.get("root"), spec.get("pipelineInfo")
    if not isinstance(root, Mapping) or not isinstance(info, Mapping):
        if str(spec.get("apiVersion", "")).startswith("argoproj.io/"):
            raise ConfigError(f"{path} is the output of KFP v1 (an Argo Workflow)", "compile it with the KFP SDK v2")
        raise ConfigError(f"{path} is not a compiled pipeline: it has no pipelineInfo and root", _COMPILE)
    definitions = root.get("inputDefinitions") or {}
    notes = _artifacts(path, definitions.get("artifacts") or {})
    found = (_parameter(path, str(name), given or {}) for name, given in (definitions.get("parameters") or {}).items())
    return Parameters(str(info.get("name", path.stem)), tuple(p for p in found if p is not None), str(path), notes)


def _first_document(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "check the pipeline's file name") from error
    if path.suffix == ".py":
        raise ConfigError(f"{path} is Python source, not a compiled pipeline", _COMPILE)
    try:
        # The second document, where there is one, is the platform spec: nothing in it is an input.
        documents = yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        first = next(iter(documents), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f"{path}:{line + 1}" if line is not None else str(path)
        raise ConfigError(f"{where}: not YAML, so not a compiled pipeline", _COMPILE) from error
    if not isinstance(first, Mapping):
        raise ConfigError(f"{path} is not a compiled pipeline", _COMPILE)
    return first


def _artifacts(path: Path, artifacts: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    for name, given in artifacts.items():
        if not (given or {}).get("isOptional"):
            kind = ((given or {}).get("artifactType") or {}).get("schemaTitle", "an artifact")
            raise ConfigError(
                f"{path}: the pipeline's input '{name}' is an artifact ({kind}), which can't be a scenario's column",
                "give the pipeline a parameter with the artifact's URI and load it with dsl.importer",
            )
        notes.append(f"the optional artifact '{name}' is left out")
    return tuple(notes)


def _parameter(path: Path, name: str, given: Mapping[str, Any]) -> Parameter | None:
    if given.get("parameterType") == "TASK_FINAL_STATUS":
        return None  # filled in by the platform
    try:
        kind = _OLD_TYPES.get(given.get("type", "")) or InputType(given.get("parameterType", ""))
    except ValueError as error:
        raise ConfigError(
            f"{path}: the pipeline's input '{name}' has the unknown type {given.get('parameterType')}",
            f"types are: {', '.join(InputType)}",
        ) from error
    default, literals = given.get("defaultValue"), given.get("literals") or ()
    if kind is InputType.INTEGER:  # the IR keeps every number as a double
        default = int(default) if default is not None else None
        literals = [int(literal) for literal in literals]
    return Parameter(name, kind, not given.get("isOptional") and default is None, default, tuple(literals))
