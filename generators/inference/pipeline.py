"""Reads the inputs of a compiled KFP pipeline from the IR's `root.inputDefinitions`, without the KFP SDK."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generators.inference.parameter import Parameter, Parameters
from harness import reading
from harness.model.errors import ConfigError
from harness.prepare.changes import platform_of
from harness.prepare.pools import placing
from harness.targets.kfp.pipeline import read_ir
from harness.targets.scenarios import InputType

_OLD_TYPES = {"STRING": InputType.STRING, "INT": InputType.INTEGER, "DOUBLE": InputType.DOUBLE}  # IR before 2.0
_PYTHON: Mapping[InputType, tuple[type, ...]] = {
    InputType.STRING: (str,), InputType.INTEGER: (int, float), InputType.DOUBLE: (int, float),
    InputType.BOOLEAN: (bool,), InputType.LIST: (list,), InputType.STRUCT: (dict,),
}  # fmt: skip


def read_pipeline(path: Path) -> Parameters:
    """The parameters of a compiled pipeline.

    Raises:
        ConfigError: the file is not a compiled pipeline, or needs an artifact, which a CSV can't hold.
    """
    _, (spec, *rest) = read_ir(path)
    with reading.structured(path, "compile the pipeline with kfp 2"):
        placed_by = placing(platform_of(rest[0] if rest else {}))
        definitions = spec["root"].get("inputDefinitions") or {}
        notes = _artifacts(path, definitions.get("artifacts") or {})
        given = definitions.get("parameters") or {}
        parameters = [p for name, each in given.items() if (p := _parameter(path, str(name), each or {})) is not None]
        kept = [p.name for p in parameters if p.name in placed_by and not p.required]
        notes += tuple(f"'{name}', which places pods, is left out: each run takes its default" for name in kept)
        inputs = tuple(p for p in parameters if p.name not in kept)
        return Parameters(str(spec["pipelineInfo"]["name"]), inputs, str(path), notes)


def _artifacts(path: Path, artifacts: Mapping[str, Any]) -> tuple[str, ...]:
    notes = []
    for name, given in artifacts.items():
        if not (given or {}).get("isOptional"):
            kind = ((given or {}).get("artifactType") or {}).get("schemaTitle", "an artifact")
            raise ConfigError(
                f"{path}: the pipeline's input '{name}' is an artifact ({kind}), which can't be a scenario's column",
                "pass the artifact's URI as a parameter and import it in the pipeline with dsl.importer",
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
    default: Any = given.get("defaultValue")
    literals = given.get("literals") or ()
    if default is not None and type(default) not in _PYTHON[kind]:
        what = f"the default of the pipeline's input '{name}' is not {kind.wording}"
        raise ConfigError(f"{path}: {what}", "compile the pipeline again")
    if kind is InputType.INTEGER:  # the IR keeps every number as a double
        default = int(default) if default is not None else None
        literals = [int(literal) for literal in literals]
    return Parameter(name, kind, not given.get("isOptional") and default is None, default, tuple(literals))
