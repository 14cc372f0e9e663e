"""Scenario CSVs, read against the target's inputs: every cell is converted before the first arrival."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

import orjson

from harness.model.errors import ConfigError
from harness.model.scenario import Scenario
from harness.model.text.inert import one_line
from harness.targets.table import rows_of

KEYS = ("id", "scenario_name")
TENANT = "tenant"  # a column that every file may have
_MAX_ERRORS = 20
_MOST_CHOICES = 12  # in a message
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class InputType(StrEnum):
    """The types of parameters, by their names in the KFP IR; `wording` names a value of the type in messages."""

    STRING = "STRING"
    INTEGER = "NUMBER_INTEGER"
    DOUBLE = "NUMBER_DOUBLE"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    STRUCT = "STRUCT"

    @property
    def wording(self) -> str:
        """A value of this type, with its article."""
        return _WORDINGS[self]


_WORDINGS = {
    InputType.STRING: "a string",
    InputType.INTEGER: "an integer",
    InputType.DOUBLE: "a number",
    InputType.BOOLEAN: "a boolean (true or false)",
    InputType.LIST: "a JSON list",
    InputType.STRUCT: "a JSON object",
}


@dataclass(frozen=True, slots=True)
class Input:
    """One parameter of a pipeline. If not `required`, an empty or missing cell leaves the platform's `default`.

    With `as_double` the platform reads every number as a double: larger integers than 2^53 would become others.
    `choices` are the only values that the platform takes; empty for any.
    """

    name: str
    type: InputType
    required: bool
    default: object = None  # None if unknown
    as_double: bool = False
    choices: tuple[str, ...] = ()


class InexactError(ValueError):
    """A value of the right type that would arrive as another one, or not at all."""


@dataclass(frozen=True, slots=True)
class ParamMode:
    """How a row becomes parameters: one per column, or the whole row as a JSON list in the parameter `json_into`."""

    json_into: str = ""

    @classmethod
    def parse(cls, text: str) -> "ParamMode":
        """Parse ``columns`` or ``json:NAME``.

        Raises:
            ConfigError: the text is neither.
        """
        if text == "columns":
            return cls()
        kind, _, name = text.partition(":")
        if kind != "json" or not name:
            raise ConfigError(f"'{text}' is not a parameter mode", "write columns, or json:PARAMETER")
        return cls(name)


def read_scenarios(path: Path, inputs: Sequence[Input], mode: ParamMode) -> list[Scenario]:
    """The scenarios of a CSV with the header ``id,scenario_name,…``, each cell converted to the type of its input.

    Raises:
        ConfigError: lists file, row and column of every error (up to 20).
    """
    rows = rows_of(path, f"create it: generate-scenarios --n 100 -o {path}")
    _, header = next(rows, (0, []))
    if not header:
        raise ConfigError(f"{path} is empty", "the header is id,scenario_name,… and the parameters' names")
    errors = list(_header_errors(header, inputs, mode))
    if errors:
        raise _error(path, errors)
    scenarios: list[Scenario] = []
    seen: dict[str, int] = {}
    for number, cells in rows:
        if len(cells) != len(header):
            errors.append(f"row {number}: {len(cells)} cells, but the header has {len(header)} columns")
            continue
        row = dict(zip(header, cells, strict=True))
        if row["id"] in seen:
            errors.append(f"row {number}, column id: '{row['id']}' is already used in row {seen[row['id']]}")
        seen.setdefault(row["id"], number)
        values, bad = _values(row, inputs, mode)
        errors.extend(f"row {number}, column {column}: {problem}" for column, problem in bad)
        scenarios.append(Scenario(row["id"], row["scenario_name"], values, row, row.get(TENANT, "")))
    if errors:
        raise _error(path, errors)
    if not scenarios:
        raise ConfigError(f"{path} has a header but no scenarios", "generate-scenarios --n 100 creates some")
    return scenarios


def _header_errors(header: Sequence[str], inputs: Sequence[Input], mode: ParamMode) -> Iterator[str]:
    for key in KEYS:
        if key not in header:
            yield f"row 1: the column {key} is missing{_nearest(key, header, 'is it')}"
    for name in sorted(name for name, count in Counter(header).items() if count > 1):
        yield f"row 1, column {name}: given twice"
    known = {i.name: i for i in inputs}
    if mode.json_into:
        yield from _json_errors(known, mode.json_into)
        given = {mode.json_into}
    else:
        given = set(header)
        for name in sorted(given - set(known) - {*KEYS, TENANT}):
            meant = _nearest(name, {*known, *KEYS, TENANT} - given, "did you mean")
            yield f"row 1, column {name}: unknown parameter{meant}; the pipeline has: {_listed(known)}"
    for name, wanted in known.items():
        if wanted.required and name not in given:
            yield f"row 1: the column {name} is missing; the pipeline requires it ({wanted.type.wording})"


def _nearest(name: str, names: Collection[str], asked: str) -> str:
    """The most similar name, as a question; "" if none is similar."""
    folded = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), folded, 1)
    return f" ({asked} '{one_line(folded[close[0]])}'?)" if close else ""


def _json_errors(known: Mapping[str, Input], name: str) -> Iterator[str]:
    into = known.get(name)
    if into is None:
        yield f"the pipeline has no parameter {name}; it has: {_listed(known)}"
    elif into.choices:
        yield f"the parameter {into.name} takes one of: {_shown(into.choices)}, but json mode sends whole rows"
    elif into.type not in {InputType.STRING, InputType.LIST}:
        yield f"the parameter {into.name} takes {into.type.wording}, but json mode needs a string or a JSON list"


def _listed(known: Mapping[str, Input]) -> str:
    return ", ".join(known) or "none"


def _values(
    row: Mapping[str, str], inputs: Sequence[Input], mode: ParamMode
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    if mode.json_into:
        into = next(i for i in inputs if i.name == mode.json_into)
        as_list = [dict(row)]
        return {into.name: as_list if into.type is InputType.LIST else json.dumps(as_list)}, []
    values: dict[str, object] = {}
    errors: list[tuple[str, str]] = []
    for wanted in inputs:
        cell = row.get(wanted.name)
        if cell is None or (cell == "" and not wanted.required):
            continue
        try:
            values[wanted.name] = value_of(cell, wanted)
        except ValueError as error:
            errors.append((wanted.name, f"'{_short(cell)}' is {error}"))
    return values, errors


def value_of(cell: str, wanted: Input) -> object:
    """A cell converted to a value that the input takes.

    Raises:
        ValueError: says what the cell is instead, such as "not an integer".
    """
    if wanted.choices and cell not in wanted.choices:
        raise ValueError(f"not one of: {_shown(wanted.choices)}")
    try:
        return typed(cell, wanted.type, as_double=wanted.as_double)
    except InexactError as error:
        raise ValueError(f"not a value that can be sent exactly: {error}") from None
    except ValueError:
        raise ValueError(f"not {wanted.type.wording}") from None


def typed(cell: str, wanted: InputType, *, as_double: bool = False) -> object:
    """A cell converted to the input's type; lists and structs are JSON, booleans true/false or 1/0.

    Raises:
        InexactError: it would not arrive as it is; `as_double`: see `Input`.
        ValueError: the cell is not a value of this type.
    """
    match wanted:
        case InputType.STRING:
            return cell
        case InputType.INTEGER:
            return _sendable(int(cell), as_double=as_double)
        case InputType.DOUBLE:
            value = float(cell)
            if value - value != 0:  # JSON has neither infinities nor NaN
                raise ValueError(cell)
            return value
        case InputType.BOOLEAN:
            if cell.strip().lower() not in _BOOLEANS:
                raise ValueError(cell)
            return _BOOLEANS[cell.strip().lower()]
        case InputType.LIST | InputType.STRUCT:
            try:
                parsed = json.loads(cell)
            except RecursionError:
                raise InexactError("it is nested too deeply") from None
            if not isinstance(parsed, list if wanted is InputType.LIST else dict):
                raise ValueError(cell)  # noqa: TRY004  # the cell is wrong, not its Python type
            return _sendable(parsed, as_double=as_double)


def _sendable(value: object, *, as_double: bool) -> object:
    """The value itself, as submissions encode it without a change.

    Raises:
        InexactError: they can't.
    """
    try:
        sent = orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER if as_double else None)
    except TypeError as error:  # orjson's JSONEncodeError
        raise InexactError(str(error)) from None
    if orjson.loads(sent) != value:
        raise InexactError("JSON has neither NaN nor Infinity")
    return value


def as_cell(value: object) -> str:
    """A value as the text of a cell or of hetida's direct provisioning: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _shown(choices: Sequence[str]) -> str:
    more = f", … ({len(choices)} in all)" if len(choices) > _MOST_CHOICES else ""
    return ", ".join(_short(choice) for choice in choices[:_MOST_CHOICES]) + more


def _short(cell: str) -> str:
    return cell if len(cell) <= 60 else cell[:57] + "…"


def _error(path: Path, errors: Sequence[str]) -> ConfigError:
    shown = "\n".join(f"  {error}" for error in errors[:_MAX_ERRORS])
    more = f"\n  … and {len(errors) - _MAX_ERRORS} more" if len(errors) > _MAX_ERRORS else ""
    return ConfigError(
        f"{path} does not match the pipeline:\n{shown}{more}",
        "fix these cells, or generate the file from the pipeline or workflow with generate-scenarios",
    )
