"""The inputs of a target's runs, and a draft of scenarios with exactly these columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from generators.inference import guess
from generators.inference.draft import Definition, Draft
from harness.model.text.redaction import HIDDEN
from harness.targets.scenarios import KEYS, Input, InputType, typed


@dataclass(frozen=True, slots=True)
class Parameters:
    """All inputs of the pipeline or workflow in the file `source`; `notes` list what was left out."""

    inputs: tuple[Input, ...]
    source: str
    notes: tuple[str, ...] = ()


def draft_of(parameters: Parameters) -> Draft:
    """A draft with exactly the columns id, scenario_name and the inputs."""
    names = frozenset(each.name for each in parameters.inputs)
    draft = Draft(notes=list(parameters.notes), reserved=names | set(KEYS))
    draft.columns["id"] = {"kind": "sequence"}
    draft.columns["scenario_name"] = {"template": f"{{{draft.word('plant')}}}-{{{draft.word('sensor_type')}}}-{{id}}"}
    for parameter in parameters.inputs:
        if parameter.name not in KEYS:
            draft.columns[parameter.name] = _definition(parameter, draft)
    return draft


def _definition(parameter: Input, draft: Draft) -> Definition:
    if parameter.choices:
        values = [typed(choice, parameter.type) for choice in parameter.choices]
        return {"choice": {value: 2 if value == parameter.default else 1 for value in values}}
    default = None if parameter.default == HIDDEN else parameter.default
    return _GUESSES[parameter.type](parameter.name, default, draft)


_GUESSES: Mapping[InputType, Callable[[str, Any, Draft], Definition]] = {
    InputType.INTEGER: lambda name, default, _: guess.integer(name, default),
    InputType.DOUBLE: lambda name, default, _: guess.number(name, default),
    InputType.BOOLEAN: lambda _name, default, _draft: guess.boolean(default),
    InputType.STRING: guess.text,
    InputType.LIST: guess.array,
    InputType.STRUCT: guess.document,
}
