"""Operators and functions of the expressions in workflows, as `harness.simulator.engine.expressions` reads them."""

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

_MOST_ITEMS = 10_000
_EXPONENTIAL = re.compile(r"\)[*+{?]")  # a repeated group, which may take forever to match


def _matches(text: Any, pattern: Any) -> bool:
    if _EXPONENTIAL.search(str(pattern)):
        raise LookupError(f"the pattern {str(pattern)[:40]}")
    return re.search(str(pattern), str(text)) is not None


def _plain(value: Any) -> int | float:
    """A number, and no text, which a number could multiply to any length."""
    if not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]} is no number")
    return value


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=~": _matches, "matches": _matches,
    "in": lambda one, many: one in many,
    "contains": lambda text, part: part in text,
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
}  # fmt: skip
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": lambda one, other: _plain(one) * _plain(other), "/": operator.truediv,
    "%": lambda one, other: _plain(one) % _plain(other),
    "..": lambda first, last: list(range(int(first), min(int(last), int(first) + _MOST_ITEMS) + 1)),
    "**": lambda base, power: float(base) ** min(float(power), 100.0),
}  # fmt: skip


def json_path(value: Any, path: str) -> Any:
    """The part of a JSON document (or its text) at ``$.a[0].b``, or a list for ``[*]``.

    Raises:
        LookupError: there is no such part, or the path has filters or slices.
    """
    found = json.loads(value) if isinstance(value, str) else value
    keys = re.findall(r"\.([\w-]+)|\[(\d+)\]|\[['\"]([^'\"]+)['\"]\]|(\[\*\])|(.)", path.removeprefix("$"))
    many = False
    for name, index, quoted, every, other in keys:
        if other:
            raise LookupError(path)
        if every:
            many = True
            continue
        key: Any = int(index) if index else name or quoted
        found = [each[key] for each in found] if many else found[key]
    return found


def as_text(value: Any) -> str:
    """A value as an expression writes it into a text."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _whole(value: Any) -> int:
    return int(float(str(value)))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "asInt": _whole, "int": _whole, "asFloat": lambda it: float(str(it)), "float": lambda it: float(str(it)),
    "double": lambda it: float(str(it)), "string": as_text, "toString": as_text, "toJson": as_text, "toJSON": as_text,
    "bool": lambda it: it if isinstance(it, bool) else str(it).lower() == "true", "atoi": _whole,
    "fromJson": json.loads, "fromJSON": json.loads, "jsonpath": json_path, "len": len, "abs": abs,
    "min": min, "max": max, "sum": sum, "first": lambda it: it[0],
    "last": lambda it: it[-1], "upper": lambda it: str(it).upper(), "lower": lambda it: str(it).lower(),
    "trim": lambda it: str(it).strip(), "split": lambda it, by: it.split(by), "join": lambda it, by="": by.join(it),
    "replace": lambda old, new, it: it.replace(old, new), "default": lambda other, it: it or other,
    "add": lambda *it: sum(map(_whole, it)), "sub": lambda one, other: _whole(one) - _whole(other),
    "mul": lambda one, other: _whole(one) * _whole(other), "keys": list, "values": lambda it: [*it.values()],
}  # fmt: skip
LAMBDAS: Mapping[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "filter": lambda items, holds: [item for item in items if holds(item)],
    "map": lambda items, change: [change(item) for item in items],
    "all": lambda items, holds: all(map(holds, items)),
    "any": lambda items, holds: any(map(holds, items)),
    "none": lambda items, holds: not any(map(holds, items)),
    "count": lambda items, holds: sum(map(bool, map(holds, items))),
    "find": lambda items, holds: next(item for item in items if holds(item)),
}
