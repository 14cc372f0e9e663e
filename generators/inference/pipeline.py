"""Reads the inputs of a compiled KFP pipeline: the IR's `root.inputDefinitions`. The KFP SDK is not needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from generators.inference import guess
from generators.inference.draft import Definition, Draft
from harness.model.errors import ConfigError

_COMPILE = "compile it: kfp dsl compile --py pipeline.py --output pipeline.yaml"


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of the pipeline. `type` is the IR's: NUMBER_INTEGER, NUMBER_DOUBLE, STRING, BOOLEAN, LIST, STRUCT."""

    name: str
    type: str
    required: bool
    default: Any = None
    literals: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What can be given to a run."""

    name: str
    inputs: tuple[Input, ...]
    notes: tuple[str, ...] = ()


def read_pipeline(path: Path) -> Pipeline:
    """The parameters of a compiled pipeline.

    Raises:
        ConfigError: the file is not a compiled pipeline, or needs an artifact, which no CSV can hold.
    """
    spec = _first_document(path)
    if "spec" in spec and "apiVersion" in spec:
        raise ConfigError(f"{path} is a pipeline of KFP v1 ({spec.get('kind')})", "compile it with the KFP SDK v2")
    spec = spec.get("pipeline_spec", spec)
    root = spec.get("root")
    if not isinstance(root, Mapping) or not isinstance(spec.get("pipelineInfo"), Mapping):
        raise ConfigError(f"{path} is not a compiled pipeline: it has no pipelineInfo and root", _COMPILE)
    definitions = root.get("inputDefinitions") or {}
    notes = _artifacts(path, definitions.get("artifacts") or {})
    parameters = definitions.get("parameters") or {}
    inputs = tuple(_input(path, str(name), given) for name, given in parameters.items())
    return Pipeline(str(spec["pipelineInfo"].get("name", path.stem)), inputs, notes)


def _first_document(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", "check the pipeline's file name") from error
    if path.suffix == ".py":
        raise ConfigError(f"{path} is Python source, not a compiled pipeline", _COMPILE)
    try:
        # The second document, where there is one, is the platform spec: nothing in it is an input.
        documents = yaml.load_all(
            text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )  # it is the safe loader, in C
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


def _input(path: Path, name: str, given: Any) -> Input:
    given = given or {}
    kind = given.get("parameterType") or {"STRING": "STRING", "INT": "NUMBER_INTEGER", "DOUBLE": "NUMBER_DOUBLE"}.get(
        given.get("type", ""), ""
    )
    if kind not in _DEFINITIONS:
        raise ConfigError(
            f"{path}: the pipeline's input '{name}' has the type {kind or 'nothing'}, which can't be a scenario's column",
            f"types are: {', '.join(sorted(_DEFINITIONS))}",
        )
    default = given.get("defaultValue")
    if kind == "NUMBER_INTEGER" and isinstance(default, float) and default.is_integer():
        default = int(default)  # the IR keeps every number as a double
    literals = given.get("literals") or ()
    if kind == "NUMBER_INTEGER":
        literals = [int(literal) for literal in literals]
    required = not given.get("isOptional") and default is None
    return Input(name, kind, required, default, tuple(literals))


def draft_of(pipeline: Pipeline) -> Draft:
    """A spec with exactly the columns id, scenario_name and the pipeline's parameters."""
    names = frozenset(found.name for found in pipeline.inputs)
    draft = Draft(notes=list(pipeline.notes), reserved=names | {"id", "scenario_name"})
    draft.columns["id"] = {"kind": "sequence"}
    draft.columns["scenario_name"] = {"template": f"{{{draft.word('plant')}}}-{{{draft.word('sensor_type')}}}-{{id}}"}
    for found in pipeline.inputs:
        if found.name not in {"id", "scenario_name"} or found.type != "STRING":
            draft.columns[found.name] = _definition(found, draft)
    if draft.columns["id"] != {"kind": "sequence"}:
        draft.columns["id"] = {"kind": "sequence"}
    return draft


def _definition(found: Input, draft: Draft) -> Definition:
    if found.literals:
        weights = {literal: 2 if literal == found.default else 1 for literal in found.literals}
        return {"choice": weights}
    return _DEFINITIONS[found.type](found, draft)


_DEFINITIONS = {
    "NUMBER_INTEGER": lambda found, draft: guess.integer(found.name, found.default),  # noqa: ARG005  # one shape for all
    "NUMBER_DOUBLE": lambda found, draft: guess.number(found.name, found.default),  # noqa: ARG005
    "BOOLEAN": lambda found, draft: guess.boolean(found.default),  # noqa: ARG005
    "STRING": lambda found, draft: guess.text(found.name, found.default, draft),
    "LIST": lambda found, draft: guess.array(found.name, found.default, draft),
    "STRUCT": lambda found, draft: guess.document(found.name, found.default, draft),
}
