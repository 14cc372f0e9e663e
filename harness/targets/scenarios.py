"""Scenario CSVs read against what the target's inputs are: every cell is typed before the first arrival."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.model.errors import ConfigError
from harness.model.scenario import Scenario
from harness.targets.table import rows_of

_KEYS = ("id", "scenario_name")
_MOST_ERRORS = 20
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class InputType(StrEnum):
    """The types of parameters that platforms know, by the names of the KFP IR."""

    STRING = "STRING"
    INTEGER = "NUMBER_INTEGER"
    DOUBLE = "NUMBER_DOUBLE"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    STRUCT = "STRUCT"


@dataclass(frozen=True, slots=True)
class Input:
    """One parameter of a pipeline. Without `required` an empty or missing cell leaves the platform's `default`."""

    name: str
    type: InputType
    required: bool
    default: object = None  # none is known


@dataclass(frozen=True, slots=True)
class ParamMode:
    """How a row becomes parameters: a column each, or the whole row as a JSON list in the parameter `json_into`."""

    json_into: str = ""

    @classmethod
    def parse(cls, text: str) -> "ParamMode":
        """``columns`` or ``json:NAME``.

        Raises:
            ConfigError: the text is neither.
        """
        if text == "columns":
            return cls()
        kind, _, name = text.partition(":")
        if kind != "json" or not name:
            raise ConfigError(f"'{text}' is not a parameter mode", "write columns, or json:NAME of one parameter")
        return cls(name)


def read_scenarios(path: Path, inputs: Sequence[Input], mode: ParamMode) -> list[Scenario]:
    """The scenarios of a CSV with header ``id,scenario_name,…``, each cell typed for its input.

    A byte order mark and CRLF line ends are accepted.

    Raises:
        ConfigError: listing file, row and column of every fault (up to 20).
    """
    rows = rows_of(path, f"generate-scenarios --n 100 -o {path} makes one")
    _, header = next(rows, (0, []))
    if not header:
        raise ConfigError(f"{path} is empty", "the first row must be id,scenario_name,… and the parameters' names")
    faults: list[str] = list(_header_faults(header, inputs, mode))
    if faults:
        raise _error(path, faults)
    scenarios: list[Scenario] = []
    seen: dict[str, int] = {}
    for number, cells in rows:
        if len(cells) != len(header):
            faults.append(f"row {number}: {len(cells)} cells where the header has {len(header)} columns")
            continue
        row = dict(zip(header, cells, strict=True))
        if row["id"] in seen:
            faults.append(f"row {number}, column id: '{row['id']}' stands in row {seen[row['id']]} already")
        seen.setdefault(row["id"], number)
        values, bad = _values(row, inputs, mode)
        faults.extend(f"row {number}, column {column}: {what}" for column, what in bad)
        scenarios.append(Scenario(row["id"], row["scenario_name"], values, row))
    if faults:
        raise _error(path, faults)
    if not scenarios:
        raise ConfigError(f"{path} holds no scenario: only a header", "generate-scenarios --n 100 makes some")
    return scenarios


def _header_faults(header: Sequence[str], inputs: Sequence[Input], mode: ParamMode) -> Iterator[str]:
    for key in _KEYS:
        if key not in header:
            yield f"row 1: there is no column {key}"
    for name in sorted({name for name in header if header.count(name) > 1}):
        yield f"row 1, column {name}: stands there twice"
    known = {i.name: i for i in inputs}
    if mode.json_into:
        yield from _json_faults(known, mode.json_into)
        given = {mode.json_into}
    else:
        given = set(header)
        for name in sorted(given - set(known) - set(_KEYS)):
            yield f"row 1, column {name}: the pipeline has no such parameter; it has {_listed(known)}"
    for name, wanted in known.items():
        if wanted.required and name not in given:
            yield f"row 1: the pipeline needs the parameter {name} ({wanted.type}), and there is no such column"


def _json_faults(known: Mapping[str, Input], name: str) -> Iterator[str]:
    into = known.get(name)
    if into is None:
        yield f"the pipeline has no parameter {name}; it has {_listed(known)}"
    elif into.type not in {InputType.STRING, InputType.LIST}:
        yield f"the parameter {into.name} is a {into.type}: a JSON list needs a STRING or LIST"


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
    faults: list[tuple[str, str]] = []
    for wanted in inputs:
        cell = row.get(wanted.name)
        if cell is None or (cell == "" and not wanted.required):
            continue
        try:
            values[wanted.name] = typed(cell, wanted.type)
        except ValueError:
            faults.append((wanted.name, f"'{_short(cell)}' is not a {wanted.type}"))
    return values, faults


def typed(cell: str, wanted: InputType) -> object:
    """A cell's value as the input's type; JSON for lists and structs, true/false for booleans.

    Raises:
        ValueError: the cell has no such value.
    """
    match wanted:
        case InputType.STRING:
            return cell
        case InputType.INTEGER:
            return int(cell)
        case InputType.DOUBLE:
            value = float(cell)
            if value - value != 0:  # infinities and NaN have no JSON
                raise ValueError(cell)
            return value
        case InputType.BOOLEAN:
            if cell.strip().lower() not in _BOOLEANS:
                raise ValueError(cell)
            return _BOOLEANS[cell.strip().lower()]
        case InputType.LIST | InputType.STRUCT:
            parsed = json.loads(cell)
            if not isinstance(parsed, list if wanted is InputType.LIST else dict):
                raise ValueError(cell)  # noqa: TRY004  # the cell is wrong, not its Python type
            return parsed


def as_cell(value: object) -> str:
    """A value as a cell, or hetida's direct provisioning, holds it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _short(cell: str) -> str:
    return cell if len(cell) <= 60 else cell[:57] + "…"


def _error(path: Path, faults: Sequence[str]) -> ConfigError:
    shown = "\n".join(f"  {fault}" for fault in faults[:_MOST_ERRORS])
    more = f"\n  … and {len(faults) - _MOST_ERRORS} more" if len(faults) > _MOST_ERRORS else ""
    return ConfigError(
        f"{path} does not fit:\n{shown}{more}",
        "mend these cells, or let generate-scenarios make the file from the pipeline or workflow",
    )
