"""Reads the inputs of a hetida designer transformation: its `io_interface`, with defaults from the test wiring.

A directly provisioned input is one column. An input from an adapter has a column for each part of its wiring that a
scenario can vary: ``<input>.ref_id``, and ``<input>.timestampFrom`` and ``….timestampTo`` for a time range.
"""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from generators.inference import guess
from generators.inference.draft import Definition, Draft
from generators.inference.parameter import Parameter, Parameters, draft_of
from generators.kinds.instants import parse_instant
from harness import reading
from harness.documents import Document, Place
from harness.model.errors import ConfigError
from harness.targets.hetida.transformation import DIRECT, HINT, SCALARS, read_json
from harness.targets.scenarios import InputType

_MAX_POINTS = 200


def read_workflow(path: Path) -> tuple[Parameters, Draft]:
    """The inputs of an exported transformation, and a draft of scenarios for them.

    Raises:
        ConfigError: the file is not an exported transformation.
    """
    exported = _read(path)
    with reading.structured(path, HINT):
        return _parameters(path, exported)


def _parameters(path: Path, exported: Mapping[str, Any]) -> tuple[Parameters, Draft]:
    wirings = {str(w.get("workflow_input_name")): w for w in _wirings(exported) if isinstance(w, Mapping)}
    direct: list[Parameter] = []
    columns: dict[str, Definition] = {}
    notes: list[str] = []
    draft = Draft()
    for given in exported["io_interface"].get("inputs") or []:
        wiring = wirings.get(str(given.get("name")), {})
        if not given.get("name"):
            notes.append("an input without a name is left out")
        elif wiring.get("adapter_id", DIRECT) != DIRECT:
            columns |= _adapter_columns(given["name"], wiring, draft, Place(Document({}, str(path)), (given["name"],)))
        else:
            direct.append(_parameter(given, wiring))
    name = str(exported.get("name") or path.stem)
    complete = _completed(Parameters(name, tuple(direct), str(path), tuple(notes)), columns, draft, exported)
    wired = (Parameter(column, InputType.STRING, required=True) for column in columns)
    return Parameters(name, (*direct, *wired), str(path), tuple(notes)), complete


def _read(path: Path) -> Mapping[str, Any]:
    exported = read_json(path, "workflow")
    if isinstance(exported, list) and len(exported) == 1:
        exported = exported[0]  # an export of several transformations is a list
    if not isinstance(exported, Mapping) or not isinstance(exported.get("io_interface"), Mapping):
        raise ConfigError(f"{path} is not an exported transformation: it has no io_interface", HINT)
    return exported


def _wirings(exported: Mapping[str, Any]) -> list[Any]:
    wiring = exported.get("test_wiring") or exported.get("wiring") or {}
    return list(wiring.get("input_wirings") or [])


def _parameter(given: Mapping[str, Any], wiring: Mapping[str, Any]) -> Parameter:
    kind = str(given.get("data_type") or given.get("type") or "ANY").upper()
    text = (wiring.get("filters") or {}).get("value", given.get("value"))
    required = given.get("type") != "OPTIONAL"
    name = str(given["name"])
    if kind in SCALARS:
        return Parameter(name, SCALARS[kind], required, _scalar(SCALARS[kind], text))
    document = _document(text)
    shape = InputType.LIST if isinstance(document, list) else InputType.STRUCT
    if document is None and kind in {"DATAFRAME", "MULTITSFRAME"}:
        shape = InputType.LIST
    return Parameter(name, shape, required, document)


def _scalar(kind: InputType, text: object) -> Any:
    from harness.targets.scenarios import typed

    if text is None or text == "":
        return None
    try:
        return typed(str(text), kind)
    except ValueError:
        return None


def _document(text: object) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _completed(
    parameters: Parameters, columns: dict[str, Definition], draft: Draft, exported: Mapping[str, Any]
) -> Draft:
    complete = draft_of(parameters)
    complete.helpers |= draft.helpers
    complete.columns |= columns
    kinds = {str(i.get("name")): str(i.get("data_type")).upper() for i in exported["io_interface"].get("inputs") or []}
    for parameter in parameters.inputs:
        if kinds.get(parameter.name) == "SERIES" and parameter.name in complete.columns:
            complete.columns[parameter.name] = {"json": _series(parameter.default)}
    return complete


def _series(default: Any) -> dict[str, Any]:
    """A series at the default's instants with values near its own; without a default, a day of hourly values."""
    if isinstance(default, dict) and default and all(isinstance(v, int | float) for v in default.values()):
        points = {str(at): float(value) for at, value in list(default.items())[:_MAX_POINTS]}
    else:
        points = {f"2025-01-01T{hour:02d}:00:00Z": 100.0 for hour in range(24)}
    return {at: {"$": {"normal": [value, max(abs(value) / 20, 0.01)], "decimals": 3}} for at, value in points.items()}


def _adapter_columns(name: str, wiring: Mapping[str, Any], draft: Draft, place: Place) -> dict[str, Definition]:
    columns: dict[str, Definition] = {}
    reference = str(wiring.get("ref_id") or name)
    columns[f"{name}.ref_id"] = guess.text("ref", reference, draft)
    filters = wiring.get("filters") or {}
    if "timestampFrom" in filters and "timestampTo" in filters:
        start, _ = parse_instant(filters["timestampFrom"], place / "timestampFrom")
        end, _ = parse_instant(filters["timestampTo"], place / "timestampTo")
        year = dt.datetime.fromtimestamp(start / 1000, dt.UTC).year
        begin = draft.helper(
            f"{name}_from", {"datetime": [f"{year}-01-01T00:00:00Z", f"{year}-12-31T00:00:00Z"], "step": "1h"}
        )
        close = draft.helper(f"{name}_to", {"expression": f"shift({begin}, {(end - start) // 1000})"})
        columns[f"{name}.timestampFrom"] = {"template": f"{{{begin}}}"}
        columns[f"{name}.timestampTo"] = {"template": f"{{{close}}}"}
    return columns
