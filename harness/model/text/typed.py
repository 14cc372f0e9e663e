"""Frozen dataclasses from plain values, as JSON, messages and YAML carry them, checked by the types of their fields.

A type may be annotated with the function that reads what is written (``Annotated[float, parse_duration]``), and bounds.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from math import inf, isfinite
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from harness.model.errors import ConfigError, suggestion

T = TypeVar("T")
Key = str | int
KeyPath = tuple[Key, ...]
Makers = Mapping[type, Callable[[Any], object]]
NO_MAKERS: Makers = types.MappingProxyType({})

_WORDS: Mapping[type, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class MismatchError(TypeError):
    """A value is not of its field's type; `path` leads to it."""

    def __init__(self, path: KeyPath, problem: str, hint: str = "") -> None:
        super().__init__(f"'{dotted(path)}' {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Range:
    """A range of numbers; `open` excludes the least itself."""

    least: float
    most: float = inf
    open: bool = False

    def allows(self, value: object) -> bool:
        """Whether the value is a number in the range."""
        if not isinstance(value, int | float) or value > self.most:
            return False
        return value > self.least if self.open else value >= self.least

    def __str__(self) -> str:
        if self.most < inf:
            return f"a number from {self.least:,g} to {self.most:,.12g}"
        return f"a number above {self.least:g}" if self.open else f"{self.least:g} or more"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A choice of texts."""

    values: tuple[str, ...]

    def allows(self, value: object) -> bool:
        """Whether the value is one of them."""
        return value in self.values

    def __str__(self) -> str:
        return f"one of: {', '.join(self.values)}"


def dotted(path: KeyPath) -> str:
    """A path in the usual notation: ``fields.lr.values[2]``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def from_plain(kind: type[T], raw: object, where: str = "") -> T:
    """The `kind` of a mapping. Unknown keys are left out, missing ones have their default; lists become tuples.

    Raises:
        MismatchError: a field is missing, or is not of its type; `where` and the field's name say which.
    """
    return cast("T", _Reader().dataclass(kind, raw, (where,) if where else ()))


def from_written(kind: type[T], raw: object, makers: Makers = NO_MAKERS) -> T:
    """The `kind` of what people write: every key is known, no number is below 0 or infinite, and a text may be one.

    Args:
        kind: of the whole.
        raw: a mapping; keys without a value have their default.
        makers: of values, by type; they raise `ConfigError` or `ValueError`, as functions of annotations do.

    Raises:
        MismatchError: as `from_plain`, and for an unknown key.
    """
    return cast("T", _Reader(makers).dataclass(kind, raw, ()))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


class _Reader:
    """Makes values of what a program wrote, or with `makers` of what people did."""

    def __init__(self, makers: Makers | None = None) -> None:
        self._makers = makers or {}
        self._written = makers is not None

    def dataclass(self, kind: Any, raw: object, path: KeyPath) -> object:
        if not isinstance(raw, Mapping):
            raise _not(raw, "a mapping", path, f"keys: {', '.join(field.name for field in fields(kind))}")
        if self._written:
            raw = {str(name): value for name, value in raw.items() if value is not None}
            _demand_known(kind, raw, path)
        values: dict[str, Any] = {}
        for field in fields(kind):
            if field.name in raw:
                values[field.name] = self._value(_hints(kind)[field.name], raw[field.name], (*path, field.name))
            elif field.default is MISSING and field.default_factory is MISSING:
                raise MismatchError((*path, field.name), "is missing", "add it")
        return kind(**values)

    def _value(self, hint: Any, value: Any, path: KeyPath) -> object:
        origin, args = get_origin(hint), get_args(hint)
        if hint in self._makers:
            return _made(self._makers[hint], value, path)
        if origin is Annotated:
            return self._annotated(args[0], args[1:], value, path)
        if origin in {Union, types.UnionType}:
            kind = next((each for each in args if each is type(value)), None)
            return (
                value if kind else self._value(next(each for each in args if each is not types.NoneType), value, path)
            )
        if origin is tuple:
            return self._several(args, value, path)
        if origin is not None:  # a mapping with names as keys
            if not isinstance(value, Mapping) or not (self._written or all(isinstance(name, str) for name in value)):
                raise _not(value, "a mapping", path)
            return {str(name): self._value(args[1], each, (*path, str(name))) for name, each in value.items()}
        if is_dataclass(hint):
            return value if isinstance(value, cast("type", hint)) else self.dataclass(hint, value, path)
        return value if hint is object else self._scalar(hint, value, path)

    def _annotated(self, kind: Any, more: tuple[Any, ...], value: object, path: KeyPath) -> object:
        readers = [each for each in more if callable(each)]
        if readers and kind is float and (isinstance(value, bool) or not isinstance(value, str | int | float)):
            raise _not(value, "a number", path)
        found = _made(readers[0], value, path) if readers else self._value(kind, value, path)
        if kind is float:
            self._scalar(float, found, path)
        for bounds in more:
            if isinstance(bounds, Range | OneOf) and not bounds.allows(found):
                raise MismatchError(path, f"{_short(value)} is not {bounds}", f"give {bounds}")
        return found

    def _several(self, hints: tuple[Any, ...], value: object, path: KeyPath) -> tuple[object, ...]:
        """A list of one type, or of one type per place."""
        if not isinstance(value, list | tuple):
            raise _not(value, "a list", path)
        if hints[-1] is Ellipsis:
            hints = (hints[0],) * len(value)
        if len(hints) != len(value):
            raise _not(value, f"a list of {len(hints)}", path)
        return tuple(
            self._value(hint, each, (*path, k)) for k, (hint, each) in enumerate(zip(hints, value, strict=True))
        )

    def _scalar(self, kind: Any, value: Any, path: KeyPath) -> object:
        if issubclass(kind, StrEnum):
            if value not in tuple(kind):
                raise _not(value, f"one of: {', '.join(kind)}", path)
            return kind(value)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if self._written and number and kind is str:
            return str(value)
        if not ((isinstance(value, kind) and number == (kind in {int, float})) or (number and kind is float)):
            raise _not(value, _WORDS[kind], path)
        if not (self._written and number):
            return value
        if value < 0:
            raise MismatchError(path, f"{value} is below 0", "give 0 or more")
        if not isfinite(value):
            raise _not(value, _WORDS[kind], path)
        return kind(value)


def _demand_known(kind: Any, raw: Mapping[str, object], path: KeyPath) -> None:
    known = [field.name for field in fields(kind)]
    for name in raw:
        if name not in known:
            raise MismatchError((*path, name), "unknown key", f"{suggestion(name, known)}keys: {', '.join(known)}")


def _made(make: Callable[[Any], object], value: object, path: KeyPath) -> object:
    try:
        return make(value)
    except ConfigError as error:
        raise MismatchError(path, error.message, error.hint) from error
    except (TypeError, ValueError) as error:
        raise MismatchError(path, str(error)) from error


def _not(value: object, wanted: str, path: KeyPath, hint: str = "") -> MismatchError:
    problem = f"is {_short(value)}, not {wanted}" if path else f"it is not {wanted}"
    return MismatchError(path, problem, hint or f"give {wanted}")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"
