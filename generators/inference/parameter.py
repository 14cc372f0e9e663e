"""The inputs of a target's runs, and a draft of scenarios with exactly these columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from generators.inference import guess
from generators.inference.draft import Definition, Draft
from harness.targets.scenarios import InputType

KEYS = ("id", "scenario_name")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One input of a pipeline or workflow. If there are `literals`, only these values are allowed."""

    name: str
    type: InputType
    required: bool
    default: Any = None
    literals: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameters:
    """All inputs of the pipeline or workflow `name`, read from `source`; `notes` list what was left out."""

    name: str
    inputs: tuple[Parameter, ...]
    source: str
    notes: tuple[str, ...] = ()


def draft_of(parameters: Parameters) -> Draft:
    """A draft with exactly the columns id, scenario_name and the inputs."""
    names = frozenset(found.name for found in parameters.inputs)
    draft = Draft(notes=list(parameters.notes), reserved=names | set(KEYS))
    draft.columns["id"] = {"kind": "sequence"}
    draft.columns["scenario_name"] = {"template": f"{{{draft.word('plant')}}}-{{{draft.word('sensor_type')}}}-{{id}}"}
    for found in parameters.inputs:
        if found.name not in KEYS:
            draft.columns[found.name] = _definition(found, draft)
    return draft


def _definition(found: Parameter, draft: Draft) -> Definition:
    if found.literals:
        return {"choice": {literal: 2 if literal == found.default else 1 for literal in found.literals}}
    return _GUESSES[found.type](found.name, found.default, draft)


_GUESSES: Mapping[InputType, Callable[[str, Any, Draft], Definition]] = {
    InputType.INTEGER: lambda name, default, _: guess.integer(name, default),
    InputType.DOUBLE: lambda name, default, _: guess.number(name, default),
    InputType.BOOLEAN: lambda _name, default, _draft: guess.boolean(default),
    InputType.STRING: guess.text,
    InputType.LIST: guess.array,
    InputType.STRUCT: guess.document,
}
