"""Checks documents against the JSON Schemas that editors also use; errors name line and key."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from harness.documents import Document, Place

# To JSON Schema 3.0 is an integer; no list has 3.0 values.
_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema with its parts under `$defs`."""

    path: Path

    def content(self) -> Mapping[str, Any]:
        """The schema as plain values."""
        return _content(self.path)

    def check(self, part: str, value: Mapping[str, Any], place: Place, aliases: frozenset[str] = frozenset()) -> None:
        """Check a value against a part of the schema; `aliases` are short forms that have already been expanded.

        Raises:
            ConfigError: describes the first error.
        """
        known = sorted(self.properties(part).keys() - aliases)
        for key in map(str, value):
            if key not in known and key not in aliases:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"keys are: {', '.join(known)}"
                raise (place / key).error(f"unknown key '{key}'", hint)
        error = next(iter(_validator(self.path, part).iter_errors(_jsonable(value))), None)
        if error is None:
            return
        at = place
        for step in error.absolute_path:
            at = at / step
        raise at.error(_message(error)[:200], self._hint(error, part))

    def properties(self, part: str) -> Mapping[str, Any]:
        """The keys of a part, each with its schema."""
        definitions = self.content()["$defs"]
        node: Any = definitions
        for step in part.split("/"):
            node = node[step]
        shared = definitions["options"]["properties"] if node.get("$ref") == "#/$defs/options" else {}
        return {**shared, **node["properties"]}

    def _hint(self, error: ValidationError, part: str) -> str:
        key = str(error.absolute_path[0]) if error.absolute_path else ""
        described = self.properties(part).get(key, {}).get("description", "")
        return f"{key}: {described}" if described else "see docs/scenarios.md"


SPEC = Schema(Path(__file__).parent / "scenario-spec.schema.json")
WORKLOAD = Schema(Path(__file__).parent / "workload.schema.json")


@cache
def _content(path: Path) -> Mapping[str, Any]:
    loaded: dict[str, Any] = orjson.loads(path.read_bytes())
    return loaded


@cache
def _validator(path: Path, part: str) -> Any:
    return _Validator({"$ref": f"#/$defs/{part}", "$defs": _content(path)["$defs"]})


def _message(error: ValidationError) -> str:
    if error.validator != "anyOf":
        return str(error.message)
    if error.absolute_path:
        return "not in any of the allowed forms"
    options: Any = error.validator_value
    ways = (" and ".join(key for key in option["required"] if key != "kind") for option in options[1:])
    return f"{' or '.join(ways)} is missing"


def validate(document: Document, schema: Schema = SPEC) -> None:
    """Check the outer structure of a document; the fields of a spec are checked when they are read.

    Raises:
        ConfigError: describes the first error.
    """
    if not isinstance(document.data, Mapping):
        raise document.error((), "not a mapping of keys to values", "docs/scenarios.md describes the format")
    _refuse_infinities(document.data, Place(document))
    schema.check("outer", document.data, Place(document))


def check_definition(kind: str, definition: Mapping[str, Any], place: Place) -> None:
    """Check the definition of one field against its kind's part of the schema.

    Raises:
        ConfigError: describes the first error.
    """
    if kind == "by":
        SPEC.check("by", {**definition, **_outlined(definition)}, place)
    else:
        SPEC.check(f"kinds/{kind}", {**definition, "kind": kind}, place, frozenset({"kind"}))


def _outlined(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Placeholders for the cases of a conditional field, which are checked when they are read."""
    outline: dict[str, Any] = {"otherwise": "uuid"} if "otherwise" in definition else {}
    if isinstance(definition.get("cases"), Mapping):
        outline["cases"] = dict.fromkeys(map(str, definition["cases"]), "uuid")
    return outline


def _jsonable(value: object) -> object:
    """The value with dates and keys as text, as JSON Schema expects them."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _refuse_infinities(value: object, place: Place) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise place.error(f"{value} is not a finite number", "give a finite number")
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise place.error("an integer beyond 64 bits", "write it as text, in quotes")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_infinities(item, place / str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_infinities(item, place / index)
