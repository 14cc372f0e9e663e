"""What the values of a record may be, so that no reader of a folder meets a value that no test writes."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import orjson

from harness.model.schedules import MOST_ARRIVALS

_LATEST_AT = 2**62  # ns: in the year 2116; differences of instants still fit 64 bits
_MAX_NUMBER = 2**40
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Column:
    """What a field's values may be.

    Attributes:
        name: of the field.
        kind: str, int, float or bool; of an enumeration and of a mapping, which is JSON, str.
        optional: whether a value may be missing. A measured one may: JSON has no infinities.
        default: of a missing field; `MISSING` for none.
        bounds: least and greatest whole number.
        choices: the values of an enumeration; () allows every text.
        is_mapping: whether it is a JSON object of texts.
    """

    name: str
    kind: type
    optional: bool
    default: Any
    bounds: tuple[int, int]
    choices: tuple[str, ...]
    is_mapping: bool


@cache
def columns(kind: type) -> tuple[Column, ...]:
    """The columns of a kind of records."""
    hints = get_type_hints(kind)
    return tuple(_column(field.name, hints[field.name], field.default) for field in fields(kind))


def _column(name: str, hint: Any, default: Any) -> Column:
    known = [each for each in get_args(hint) if each is not NoneType] if NoneType in get_args(hint) else [hint]
    (plain,) = known
    is_mapping = get_origin(plain) is Mapping
    choices = tuple(map(str, plain)) if isinstance(plain, type) and issubclass(plain, Enum) else ()
    bounds = (-_LATEST_AT, _LATEST_AT) if name.rsplit("_", maxsplit=1)[-1] == "at" else (0, _MAX_NUMBER)
    if name == "seq":
        bounds = 0, MOST_ARRIVALS - 1
    return Column(
        name,
        str if is_mapping or choices else plain,
        plain is not hint or plain is float,
        "{}" if is_mapping else default,
        bounds,
        choices,
        is_mapping,
    )


def problem(kind: type, raw: object) -> str:
    """What is wrong with a row of this kind; "" if nothing is."""
    if not isinstance(raw, dict):
        return "it is not a record"
    for column in columns(kind):
        if column.name in raw:
            wrong = _problem(column, raw[column.name])
        else:
            wrong = "is missing" if column.default is MISSING else ""
        if wrong:
            return f"'{column.name}' {wrong}"
    return ""


def _problem(column: Column, value: object) -> str:
    if value is None:
        return "" if column.optional else "is missing"
    wanted = (int, float) if column.kind is float else column.kind
    if not isinstance(value, wanted) or (isinstance(value, bool) and column.kind is not bool):
        return f"is not {_WORDS[column.kind]}"
    if isinstance(value, int) and column.kind is int and not column.bounds[0] <= value <= column.bounds[1]:
        return "is out of range"
    if isinstance(value, str):
        return problem_of_text(column, value)
    return ""


def problem_of_text(column: Column, text: str) -> str:
    """What is wrong with a text of this column; "" if nothing is."""
    if column.choices and text not in column.choices:
        return f"is not one of {', '.join(column.choices)}"
    if column.is_mapping:
        try:
            mapping = orjson.loads(text)
        except orjson.JSONDecodeError:
            mapping = None
        if not isinstance(mapping, dict) or not all(isinstance(value, str) for value in mapping.values()):
            return "is not a JSON object of texts"
    return ""
