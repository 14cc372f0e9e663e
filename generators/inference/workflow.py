"""Reads the inputs of a hetida designer transformation: its `io_interface`, with defaults from the test wiring.

A directly provisioned input is one column. An input from an adapter has a column for each part of its wiring that a
scenario can vary: ``<input>.ref_id``, and ``<input>.timestampFrom`` and ``….timestampTo`` for a time range.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from generators.inference import guess
from generators.inference.draft import Definition, Draft
from generators.inference.parameter import Parameters, draft_of
from generators.kinds.instants import parse_instant
from harness.documents import Document, Place
from harness.targets.hetida.transformation import DIRECT, parse_transformation, read_json
from harness.targets.scenarios import Input, as_cell, typed

_MAX_POINTS = 200


def read_workflow(path: Path) -> tuple[Parameters, Draft]:
    """The inputs of an exported transformation, and a draft of scenarios for them.

    Raises:
        ConfigError: the file is not an exported transformation.
    """
    transformation = parse_transformation(read_json(path, "workflow"), str(path))
    given = {each.name: each for each in transformation.parameters()}
    direct: list[Input] = []
    series: dict[str, Definition] = {}
    wired: dict[str, Definition] = {}
    draft = Draft()
    for port, wiring in zip(transformation.inputs, transformation.wiring["input_wirings"], strict=True):
        if wiring["adapter_id"] != DIRECT:
            wired |= _adapter_columns(port.name, wiring, draft, Place(Document({}, str(path)), (port.name,)))
            continue
        parameter = replace(given[port.name], default=_default(given[port.name]))
        direct.append(parameter)
        if port.data_type == "SERIES":
            series[port.name] = {"json": _series(parameter.default)}
    complete = draft_of(Parameters(tuple(direct), str(path)))
    complete.helpers |= draft.helpers
    complete.columns |= series | wired
    return Parameters((*direct, *(given[name] for name in wired)), str(path)), complete


def _default(parameter: Input) -> Any:
    """The default, which hetida designer keeps as a text, as a value of the parameter's type; None if it is none."""
    if parameter.default in (None, ""):
        return None
    try:
        return typed(as_cell(parameter.default), parameter.type)
    except ValueError:
        return None


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
