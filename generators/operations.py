"""The operators and functions of formulas, on columns.

A missing operand makes the result missing. Integers beyond 64 bits, divisions by zero and results that are not numbers
are errors, never wrong values; and no result depends on which rows are evaluated together.
"""

import ast
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from generators import portable
from generators.columns import Text, as_text, join

INT_LIMIT = 2.0**63
_MAX_EXP = 709  # exp() of more is infinite
_MAX_WHOLE_EXPONENT = 64  # up to here powers are multiplied out


class FormulaError(ValueError):
    """A formula is not in the grammar, or can't be evaluated for its values."""


def truth(value: pl.Series) -> pl.Series:
    """The value itself, which must be boolean."""
    if value.dtype != pl.Boolean:
        raise FormulaError(f"a condition is {_named(value)} instead of true or false")
    return value


def number(value: pl.Series) -> pl.Series:
    """The value as Int64 or Float64; true is 1."""
    if value.dtype.is_float():
        return value.cast(pl.Float64)
    if value.dtype.is_integer() or value.dtype == pl.Boolean:
        return value.cast(pl.Int64)
    raise FormulaError(f"{_named(value)} is not a number")


def _named(value: pl.Series) -> str:
    return {pl.String: "text", pl.Boolean: "a boolean"}.get(type(value.dtype), str(value.dtype))


def _on_arrays(operation: Callable[..., NDArray[Any]], *operands: pl.Series) -> pl.Series:
    """Apply a NumPy operation where no operand is missing."""
    missing = operands[0].is_null()
    for operand in operands[1:]:
        missing = missing | operand.is_null()
    with np.errstate(all="ignore"):
        result = operation(*(operand.fill_null(1).to_numpy() for operand in operands))
    values = pl.Series(result)
    return values.set(missing, None) if missing.any() else values


def _arithmetic(operation: Callable[..., NDArray[Any]]) -> Callable[[pl.Series, pl.Series], pl.Series]:
    def apply(left: pl.Series, right: pl.Series) -> pl.Series:
        left, right = number(left), number(right)
        if left.dtype == pl.Int64 and right.dtype == pl.Int64:
            # The same operation on floats shows whether the integers would overflow.
            size = _on_arrays(operation, left.cast(pl.Float64), right.cast(pl.Float64)).abs().max()
            if size is not None and not float(size) < INT_LIMIT:  # type: ignore[arg-type]
                raise FormulaError("an integer exceeds 64 bits; write one of the numbers with a decimal point")
        return _on_arrays(operation, left, right)

    return apply


minus = _arithmetic(np.subtract)
_add = _arithmetic(np.add)


def _plus(left: pl.Series, right: pl.Series) -> pl.Series:
    if left.dtype == pl.String and right.dtype == pl.String:
        return join((Text(left), Text(right)), len(left))
    return _add(left, right)


def _divisor(value: pl.Series) -> pl.Series:
    value = number(value)
    if (value == 0).any():
        raise FormulaError("division by zero")
    return value


def _divided(left: pl.Series, right: pl.Series) -> pl.Series:
    return _on_arrays(np.true_divide, number(left).cast(pl.Float64), _divisor(right).cast(pl.Float64))


def power(base: pl.Series, exponent: pl.Series, *, whole: bool) -> pl.Series:
    """Whole exponents up to 64 by multiplication; others by the logarithm."""
    base, exponent = number(base), number(exponent)
    if whole and base.dtype == pl.Int64 and (exponent <= _MAX_WHOLE_EXPONENT).all():
        return _arithmetic(_whole_power)(base, exponent)
    base, exponent = base.cast(pl.Float64), exponent.cast(pl.Float64)
    small = (exponent == exponent.round()) & (exponent.abs() <= _MAX_WHOLE_EXPONENT)
    if ((base <= 0) & ~small).any():
        raise FormulaError(f"a base of 0 or less needs a whole exponent of at most {_MAX_WHOLE_EXPONENT}")
    if ((base == 0) & (exponent < 0)).any():
        raise FormulaError("division by zero")
    return _on_arrays(_real_power, base, exponent)


def _real_power(base: NDArray[Any], exponent: NDArray[Any]) -> NDArray[Any]:
    small = (exponent == np.rint(exponent)) & (np.abs(exponent) <= _MAX_WHOLE_EXPONENT)
    product = _whole_power(base, np.where(small, np.abs(exponent), 0.0))
    logarithm = exponent * portable.log(np.where(small, 1.0, base))
    smooth = np.where(logarithm > _MAX_EXP, np.inf, portable.exp(np.minimum(logarithm, _MAX_EXP)))
    return np.where(small, np.where(exponent < 0, 1.0 / product, product), smooth)


def _whole_power(base: NDArray[Any], exponent: NDArray[Any]) -> NDArray[Any]:
    """By squaring: products only, so the result is bit-identical on every machine."""
    result = np.ones_like(base)
    rest = exponent.astype(np.int64)
    while rest.any():
        result = np.where(rest & 1, result * base, result)
        rest = rest >> 1
        base = np.where(rest > 0, base * base, base)
    return result


def chosen(test: pl.Series, then: pl.Series, otherwise: pl.Series) -> pl.Series:
    """`then` where the test is true, otherwise `otherwise`; numbers become the wider type."""
    if then.dtype != otherwise.dtype:
        then, otherwise = number(then), number(otherwise)
        if then.dtype != otherwise.dtype:
            then, otherwise = then.cast(pl.Float64), otherwise.cast(pl.Float64)
    result = then.zip_with(test.fill_null(value=False), otherwise)
    if not test.null_count():
        return result
    return pl.select(pl.when(test.is_null()).then(None).otherwise(result).alias("")).to_series()


def _least(*values: pl.Series) -> pl.Series:
    return reduce(lambda least, value: chosen(least <= value, least, value), values)


def _greatest(*values: pl.Series) -> pl.Series:
    return reduce(lambda greatest, value: chosen(greatest >= value, greatest, value), values)


def _to_int(value: pl.Series) -> pl.Series:
    if value.dtype == pl.String:
        return value.cast(pl.Int64)
    value = number(value)
    size = value.cast(pl.Float64).abs().max()
    if size is not None and not float(size) < INT_LIMIT:  # type: ignore[arg-type]
        raise FormulaError("a number does not fit into 64 bits")
    return _on_arrays(lambda x: np.trunc(x).astype(np.int64), value)


def _to_float(value: pl.Series) -> pl.Series:
    return value.cast(pl.Float64) if value.dtype == pl.String else number(value).cast(pl.Float64)


def _rounded(value: pl.Series, digits: pl.Series | None = None) -> pl.Series:
    """Rounds half to even; without digits to an integer."""
    value = number(value)
    if value.dtype == pl.Int64:
        return value
    if digits is None:
        return _to_int(_on_arrays(np.rint, value))
    if digits.n_unique() != 1 or not digits.dtype.is_integer() or not 0 <= digits[0] <= 15:
        raise FormulaError("round takes a constant number of digits from 0 to 15")
    factor = 10.0 ** digits[0]
    return _on_arrays(lambda x: np.rint(x * factor) / factor, value)


def _root(value: pl.Series) -> pl.Series:
    if (number(value) < 0).any():
        raise FormulaError("square root of a negative number")
    return _on_arrays(np.sqrt, _to_float(value))


def _logarithm(value: pl.Series) -> pl.Series:
    if (number(value) <= 0).any():
        raise FormulaError("logarithm of 0 or a negative number")
    return _on_arrays(portable.log, _to_float(value))


def _exponential(value: pl.Series) -> pl.Series:
    if (number(value) > _MAX_EXP).any():
        raise FormulaError("the result of exp is too large")
    return _on_arrays(portable.exp, _to_float(value))


def _string(value: pl.Series) -> pl.Series:
    if value.dtype != pl.String:
        raise FormulaError(f"{_named(value)} is not text")
    return value


def _moment(value: pl.Series) -> pl.Series:
    if not value.dtype.is_temporal():
        raise FormulaError(f"{_named(value)} is not a date")
    return value


def _shifted(moment: pl.Series, seconds: pl.Series) -> pl.Series:
    """A date or time, shifted by seconds."""
    millis = _to_int(_on_arrays(lambda s: np.rint(s * 1000.0), _to_float(seconds))).cast(pl.Duration("ms"))
    return _moment(moment).cast(pl.Datetime("ms")) + millis


ARITHMETIC: Mapping[type, Callable[[pl.Series, pl.Series], pl.Series]] = {
    ast.Add: _plus,
    ast.Sub: minus,
    ast.Mult: _arithmetic(np.multiply),
    ast.Div: _divided,
    ast.FloorDiv: lambda a, b: _on_arrays(np.floor_divide, *_same_type(number(a), _divisor(b))),
    ast.Mod: lambda a, b: _on_arrays(np.mod, *_same_type(number(a), _divisor(b))),
}


def _same_type(left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series]:
    if left.dtype == right.dtype:
        return left, right
    return left.cast(pl.Float64), right.cast(pl.Float64)


COMPARISONS: Mapping[type, Callable[[pl.Series, pl.Series], pl.Series]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}

# Name → minimum and maximum number of arguments, function.
FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., pl.Series]]] = {
    "abs": (1, 1, lambda v: number(v).abs()),
    "ceil": (1, 1, lambda v: _to_int(_on_arrays(np.ceil, _to_float(v)))),
    "day": (1, 1, lambda v: _moment(v).dt.day().cast(pl.Int64)),
    "exp": (1, 1, _exponential),
    "float": (1, 1, _to_float),
    "floor": (1, 1, lambda v: _to_int(_on_arrays(np.floor, _to_float(v)))),
    "hour": (1, 1, lambda v: _moment(v).dt.hour().cast(pl.Int64)),
    "int": (1, 1, _to_int),
    "len": (1, 1, lambda v: _string(v).str.len_chars().cast(pl.Int64)),
    "log": (1, 1, _logarithm),
    "lower": (1, 1, lambda v: _string(v).str.to_lowercase()),
    "max": (1, 20, _greatest),
    "min": (1, 20, _least),
    "month": (1, 1, lambda v: _moment(v).dt.month().cast(pl.Int64)),
    "round": (1, 2, _rounded),
    "shift": (2, 2, _shifted),
    "sqrt": (1, 1, _root),
    "str": (1, 1, as_text),
    "upper": (1, 1, lambda v: _string(v).str.to_uppercase()),
    "weekday": (1, 1, lambda v: _moment(v).dt.weekday().cast(pl.Int64)),
    "year": (1, 1, lambda v: _moment(v).dt.year().cast(pl.Int64)),
}
