"""Checks specs against the JSON Schema that is shipped for editors, and says what is wrong with line and key."""

import difflib
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from jsonschema import Draft202012Validator

from generators.document import Document, Key, Place
from harness.model.errors import ConfigError

PATH = Path(__file__).parent / "scenario-spec.schema.json"


@cache
def schema() -> Mapping[str, Any]:
    """The JSON Schema of specs."""
    loaded: dict[str, Any] = orjson.loads(PATH.read_bytes())
    return loaded


@cache
def _validator(part: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": schema()["$defs"]})


def validate(document: Document) -> None:
    """Check the outer shape of a spec; definitions are checked one by one as they are read.

    Raises:
        ConfigError: the first thing that is wrong.
    """
    if not isinstance(document.data, Mapping):
        raise document.error((), "not a scenario spec", "a spec is a mapping with `fields:`; see docs/scenarios.md")
    _refuse_infinities(document.data, Place(document))
    _check("outer", document.data, Place(document))


def check_definition(kind: str, definition: Mapping[str, Any], place: Place) -> None:
    """Check the definition of one field against its kind's part of the schema.

    Raises:
        ConfigError: the first thing that is wrong.
    """
    if kind == "by":
        outline = {**definition, "cases": dict.fromkeys(definition.get("cases") or (), "uuid"), "otherwise": "uuid"}
        _check("by", outline if isinstance(definition.get("cases"), Mapping) else definition, place)
    else:
        _check(f"kinds/{kind}", {"kind": kind, **definition}, place)


def _check(part: str, value: Mapping[str, Any], place: Place) -> None:
    known = _known_keys(part)
    for key in map(str, value):
        if key not in known and key != "kind":
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"keys are: {', '.join(known)}"
            raise (place / key).error(f"unknown key '{key}'", hint)
    error = next(iter(_validator(part).iter_errors(_jsonable(value))), None)
    if error is None:
        return
    at = place
    for step in error.absolute_path:
        at = at / step
    raise _explained(error.message, error.validator, error.schema, error.absolute_path, part, at)


def _explained(message: str, rule: object, failed: Any, path: Any, part: str, at: Place) -> ConfigError:
    main: Key = path[0] if path else ""
    properties = _properties(part)
    described = properties.get(str(main), {}).get("description", "")
    if rule == "anyOf" and not path:
        ways = (" and ".join(key for key in option["required"] if key != "kind") for option in failed["anyOf"][1:])
        message = f"{' or '.join(ways)} is missing"
    elif rule == "anyOf":
        message = "not in any of the forms allowed"
    return at.error(message[:200], f"{main}: {described}" if described else "see docs/scenarios.md")


def _properties(part: str) -> Mapping[str, Any]:
    node: Any = schema()["$defs"]
    for step in part.split("/"):
        node = node[step]
    found: Mapping[str, Any] = node["properties"]
    return found if part == "outer" else {**schema()["$defs"]["options"]["properties"], **found}


def _known_keys(part: str) -> list[str]:
    """The keys that may stand there; the short form has been written out before."""
    short = part.removeprefix("kinds/") if part.startswith("kinds/") else ""
    return sorted(set(_properties(part)) - {short, "kind"})


def _jsonable(value: object) -> object:
    """Dates as text, keys as text: what the schema can speak of."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _refuse_infinities(value: object, place: Place) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise place.error(f"{value} is no finite number", "give a finite one")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise place.error("an integer beyond 64 bits", "write it as text, in quotes")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_infinities(item, place / str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_infinities(item, place / index)
