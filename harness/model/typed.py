"""Frozen dataclasses from plain values, as JSON or messages carry them, checked against the types of their fields."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_WORDS: Mapping[type, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def from_plain(kind: type[T], raw: object, where: str = "") -> T:
    """The `kind` of a mapping. Unknown keys are left out, missing ones have their default; lists become tuples.

    Raises:
        TypeError: a field is missing, or is not of its type; `where` and the field's name say which.
    """
    if not isinstance(raw, Mapping):
        raise _not(raw, "a mapping", where)
    hints = _hints(cast("Any", kind))
    prefix = f"{where}." if where else ""
    values: dict[str, Any] = {}
    for each in fields(cast("Any", kind)):
        if each.name in raw:
            values[each.name] = _value(hints[each.name], raw[each.name], f"{prefix}{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise TypeError(f"'{prefix}{each.name}' is missing")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: object, where: str) -> object:
    origin, args = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        if value is None and types.NoneType in args:
            return None
        return _value(next(each for each in args if each is not types.NoneType), value, where)
    if origin is tuple:
        return _several(args, value, where)
    if origin is not None:  # a mapping with names as keys
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise _not(value, "a mapping", where)
        return {name: _value(args[1], each, f"{where}.{name}") for name, each in value.items()}
    if hint is object:
        return value
    if is_dataclass(hint):
        return value if isinstance(value, cast("type", hint)) else from_plain(cast("type[Any]", hint), value, where)
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise _not(value, _WORDS[hint], where)
    return value


def _several(hints: tuple[Any, ...], value: object, where: str) -> tuple[object, ...]:
    """A list of one type, or of one type per place."""
    if not isinstance(value, list | tuple):
        raise _not(value, "a list", where)
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        raise _not(value, f"a list of {len(hints)}", where)
    return tuple(_value(hint, each, f"{where}[{k}]") for k, (hint, each) in enumerate(zip(hints, value, strict=True)))


def _not(value: object, wanted: str, where: str) -> TypeError:
    shown = repr(value)
    return TypeError(
        f"'{where}' is {shown if len(shown) <= 60 else shown[:57] + '…'}, not {wanted}"
        if where
        else f"it is not {wanted}"
    )
