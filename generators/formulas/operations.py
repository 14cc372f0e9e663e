"""The operators and functions of formulas, on columns.

A missing operand makes the result missing. Integers beyond 64 bits, divisions by zero and results that are not numbers
are errors, never wrong values; and no result depends on which rows are evaluated together.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from generators import portable
from generators.columns import Array, Column, join, missing_in, objects

INT_LIMIT = 2.0**63
_MAX_EXP = 709  # exp() of more is infinite
_MAX_WHOLE_EXPONENT = 64  # up to here powers are multiplied out
_NAMES = {"O": "text", "b": "a boolean", "i": "a whole number", "f": "a number", "M": "a date"}
_DAYS, _MONTHS, _YEARS, _MILLIS = (f"datetime64[{unit}]" for unit in ("D", "M", "Y", "ms"))


class FormulaError(ValueError):
    """A formula is not in the grammar, or can't be evaluated for its values."""


def truth(value: Column) -> Column:
    """The value itself, which must be boolean."""
    if value.kind != "b":
        raise FormulaError(f"a condition is {_NAMES[value.kind]} instead of true or false")
    return value


def number(value: Column) -> Column:
    """The value as int64 or float64; true is 1."""
    if value.kind not in "ifb":
        raise FormulaError(f"{_NAMES[value.kind]} is not a number")
    return Column(value.values.astype(np.int64), value.missing) if value.kind == "b" else value


def _real(value: Column) -> Column:
    return Column(number(value).values.astype(np.float64), value.missing)


def _apply(operation: Callable[..., Array], *operands: Column) -> Column:
    """The operation on numbers, which are 1 where they are missing."""
    with np.errstate(all="ignore"):
        return Column(operation(*(operand.filled(1) for operand in operands)), missing_in(operands))


def _demand_size(values: Array, message: str) -> None:
    """Check that numbers, as floats, fit into 64 bits."""
    if not np.abs(values).max(initial=0.0) < INT_LIMIT:
        raise FormulaError(message)


def _arithmetic(operation: Callable[..., Array]) -> Callable[[Column, Column], Column]:
    def apply(left: Column, right: Column) -> Column:
        left, right = number(left), number(right)
        if left.kind == right.kind == "i":
            # The same operation on floats shows whether the integers would overflow.
            sizes = _apply(operation, _real(left), _real(right)).filled(0.0)
            _demand_size(sizes, "an integer exceeds 64 bits; write one of the numbers with a decimal point")
        return _apply(operation, left, right)

    return apply


minus = _arithmetic(np.subtract)
_add = _arithmetic(np.add)


def _plus(left: Column, right: Column) -> Column:
    return join((left, right), len(left)) if left.kind == right.kind == "O" else _add(left, right)


def _divisor(value: Column) -> Column:
    value = number(value)
    if (value.filled(1) == 0).any():
        raise FormulaError("division by zero")
    return value


def _divided(left: Column, right: Column) -> Column:
    return _apply(np.true_divide, _real(left), _real(_divisor(right)))


def power(base: Column, exponent: Column, *, whole: bool) -> Column:
    """Whole exponents up to 64 by multiplication; others by the logarithm."""
    base, exponent = number(base), number(exponent)
    if whole and base.kind == "i" and (exponent.filled(1) <= _MAX_WHOLE_EXPONENT).all():
        return _arithmetic(_whole_power)(base, exponent)
    base, exponent = _real(base), _real(exponent)
    below, raised = base.filled(1), exponent.filled(1)
    if ((below <= 0) & ~_is_small(raised)).any():
        raise FormulaError(f"a base of 0 or less needs a whole exponent of at most {_MAX_WHOLE_EXPONENT}")
    if ((below == 0) & (raised < 0)).any():
        raise FormulaError("division by zero")
    return _apply(_real_power, base, exponent)


def _is_small(exponent: Array) -> Array:
    return np.asarray((exponent == np.rint(exponent)) & (np.abs(exponent) <= _MAX_WHOLE_EXPONENT))


def _real_power(base: Array, exponent: Array) -> Array:
    small = _is_small(exponent)
    product = _whole_power(base, np.where(small, np.abs(exponent), 0.0))
    logarithm = exponent * portable.log(np.where(small, 1.0, base))
    smooth = np.where(logarithm > _MAX_EXP, np.inf, portable.exp(np.minimum(logarithm, _MAX_EXP)))
    return np.where(small, np.where(exponent < 0, 1.0 / product, product), smooth)


def _whole_power(base: Array, exponent: Array) -> Array:
    """By squaring: products only, so the result is bit-identical on every machine."""
    result = np.ones_like(base)
    rest = exponent.astype(np.int64)
    while rest.any():
        result = np.where(rest & 1, result * base, result)
        rest = rest >> 1
        base = np.where(rest > 0, base * base, base)
    return result


def chosen(test: Column, then: Column, otherwise: Column) -> Column:
    """`then` where the test is true, otherwise `otherwise`; numbers become the wider type."""
    if then.kind != otherwise.kind:
        then, otherwise = number(then), number(otherwise)
    taken = test.filled(value=False)
    missing = missing_in((test,))
    if then.missing is not None or otherwise.missing is not None:
        none = np.zeros(len(test), dtype=bool)
        sides = (none if column.missing is None else column.missing for column in (then, otherwise))
        missing = missing_in((test, Column(taken, np.where(taken, *sides))))
    return Column(np.where(taken, then.values, otherwise.values), missing)


def _extreme(compare: Callable[[Any, Any], Any]) -> Callable[..., Column]:
    return lambda *values: reduce(lambda best, value: chosen(_compared(compare, best, value), best, value), values)


def _to_int(value: Column) -> Column:
    if value.kind == "O":
        return _parsed(int, value, np.int64)
    value = number(value)
    _demand_size(_real(value).filled(0.0), "a number does not fit into 64 bits")
    return _apply(lambda x: np.trunc(x).astype(np.int64), value)


def _to_float(value: Column) -> Column:
    return _parsed(float, value, np.float64) if value.kind == "O" else _real(value)


def _parsed(read: Callable[[str], float], value: Column, kind: type) -> Column:
    try:
        return Column(np.array([read(text) for text in value.filled("1")], dtype=kind), value.missing)
    except (ValueError, OverflowError) as error:
        raise FormulaError(f"incompatible values: {error}") from error


def _rounded(value: Column, digits: Column | None = None) -> Column:
    """Rounds half to even; without digits to an integer."""
    value = number(value)
    if value.kind == "i":
        return value
    if digits is None:
        return _to_int(_apply(np.rint, value))
    places = set(digits.to_list())
    if digits.kind != "i" or len(places) > 1 or not places <= set(range(16)):
        raise FormulaError("round takes a constant number of digits from 0 to 15")
    factor = 10.0 ** next(iter(places), 0)
    return _apply(lambda x: np.rint(x * factor) / factor, value)


def _within(function: Callable[[Array], Array], is_wrong: Callable[[Array], Array], message: str) -> Any:
    """A function of numbers that is not defined for some."""

    def apply(value: Column) -> Column:
        value = _to_float(number(value))
        if is_wrong(value.filled(1)).any():
            raise FormulaError(message)
        return _apply(function, value)

    return apply


def _string(function: Callable[[str], object], kind: type = object) -> Callable[[Column], Column]:
    def apply(value: Column) -> Column:
        if value.kind != "O":
            raise FormulaError(f"{_NAMES[value.kind]} is not text")
        return Column(objects(map(function, value.filled("")), len(value)).astype(kind), value.missing)

    return apply


def _moment(part: Callable[[Array], Array]) -> Callable[[Column], Column]:
    """A part of a date or time, as a number."""

    def apply(value: Column) -> Column:
        if value.kind != "M":
            raise FormulaError(f"{_NAMES[value.kind]} is not a date")
        return Column(part(value.values).astype(np.int64), value.missing)

    return apply


def _shifted(moment: Column, seconds: Column) -> Column:
    """A date or time, shifted by seconds; a time in whole seconds stays one."""
    millis = _to_int(_apply(lambda s: np.rint(s * 1000.0), _to_float(seconds)))
    at = _moment(lambda values: values.astype(_MILLIS))(moment)
    shifted = (at.values + millis.values).astype(_MILLIS)
    exact = moment.values.dtype == np.dtype(_MILLIS)
    return Column(shifted if exact else shifted.astype("datetime64[s]"), missing_in((at, millis)))


ARITHMETIC: Mapping[type, Callable[[Column, Column], Column]] = {
    ast.Add: _plus,
    ast.Sub: minus,
    ast.Mult: _arithmetic(np.multiply),
    ast.Div: _divided,
    ast.FloorDiv: lambda a, b: _apply(np.floor_divide, number(a), _divisor(b)),
    ast.Mod: lambda a, b: _apply(np.mod, number(a), _divisor(b)),
}


def _compared(compare: Callable[[Any, Any], Any], left: Column, right: Column) -> Column:
    if left.kind != right.kind:
        left, right = number(left), number(right)
    blank = "" if left.kind == "O" else 1
    sides = (left.filled(blank), right.filled(blank)) if left.kind != "M" else (left.values, right.values)
    return Column(np.asarray(compare(*sides), dtype=bool), missing_in((left, right)))


COMPARISONS: Mapping[type, Callable[[Column, Column], Column]] = {
    kind: lambda a, b, compare=compare: _compared(compare, a, b)  # type: ignore[misc]
    for kind, compare in (
        (ast.Eq, operator.eq), (ast.NotEq, operator.ne), (ast.Lt, operator.lt), (ast.LtE, operator.le),
        (ast.Gt, operator.gt), (ast.GtE, operator.ge),
    )
}  # fmt: skip

# Name → minimum and maximum number of arguments, function.
FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Column]]] = {
    "abs": (1, 1, lambda v: _apply(np.abs, number(v))),
    "ceil": (1, 1, lambda v: _to_int(_apply(np.ceil, _to_float(v)))),
    "day": (1, 1, _moment(lambda t: (t.astype(_DAYS) - t.astype(_MONTHS).astype(_DAYS)).astype(np.int64) + 1)),
    "exp": (1, 1, _within(portable.exp, lambda x: x > _MAX_EXP, "the result of exp is too large")),
    "float": (1, 1, _to_float),
    "floor": (1, 1, lambda v: _to_int(_apply(np.floor, _to_float(v)))),
    "hour": (1, 1, _moment(lambda t: t.astype("datetime64[h]").astype(np.int64) % 24)),
    "int": (1, 1, _to_int),
    "len": (1, 1, _string(len, np.int64)),
    "log": (1, 1, _within(portable.log, lambda x: x <= 0, "logarithm of 0 or a negative number")),
    "lower": (1, 1, _string(str.lower)),
    "max": (1, 20, _extreme(operator.ge)),
    "min": (1, 20, _extreme(operator.le)),
    "month": (1, 1, _moment(lambda t: t.astype(_MONTHS).astype(np.int64) % 12 + 1)),
    "round": (1, 2, _rounded),
    "shift": (2, 2, _shifted),
    "sqrt": (1, 1, _within(np.sqrt, lambda x: x < 0, "square root of a negative number")),
    "str": (1, 1, Column.text),
    "upper": (1, 1, _string(str.upper)),
    "weekday": (1, 1, _moment(lambda t: (t.astype(_DAYS).astype(np.int64) + 3) % 7 + 1)),  # 1970 began on a Thursday
    "year": (1, 1, _moment(lambda t: t.astype(_YEARS).astype(np.int64) + 1970)),
}
