"""A small safe evaluator: arithmetic, comparisons, choices and a few functions over columns, never `eval`.

The grammar is Python's own, read by `ast` and walked here; whatever is not listed is refused. Values are numbers,
booleans and text. A missing operand makes the result missing.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from generators import portable
from generators.columns import Text, as_text, join

_LONGEST = 2000
_DEEPEST = 50
_INT_LIMIT = 2.0**63
_HIGHEST = 64  # of the exponents that are multiplied out


class FormulaError(ValueError):
    """The formula says something that is not allowed, or that its values do not allow."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A checked formula; `names` are the columns that it needs."""

    source: str
    names: frozenset[str]

    def evaluate(self, columns: Mapping[str, pl.Series], rows: int) -> pl.Series:
        """The value for every row.

        Raises:
            FormulaError: operands of types that do not go together, an integer beyond 64 bits, a division by zero.
        """
        tree = _parse(self.source)
        try:
            result = _Evaluation(columns, rows).visit(tree.body)
        except pl.exceptions.PolarsError as error:
            raise FormulaError(f"the values do not go together: {str(error).splitlines()[0]}") from error
        if result.dtype.is_float() and not result.is_finite().fill_null(value=True).all():
            raise FormulaError("a result is not a finite number")
        return result


def formula(source: str) -> Formula:
    """Check a formula.

    Raises:
        FormulaError: it is not in the grammar.
    """
    tree = _parse(source)
    names: set[str] = set()
    _check(tree.body, names, 0)
    return Formula(source, frozenset(names))


@cache
def _parse(source: str) -> ast.Expression:
    if len(source) > _LONGEST:
        raise FormulaError(f"longer than {_LONGEST} characters")
    try:
        return ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"not a formula: {getattr(error, 'msg', error)}") from error


def _check(node: ast.expr, names: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise FormulaError("nested too deeply")
    if isinstance(node, ast.Name):
        names.add(node.id)
        return
    if isinstance(node, ast.Constant):
        _check_constant(node.value)
        return
    for child in _operands(node):
        _check(child, names, depth + 1)


def _check_constant(value: object) -> None:
    if not isinstance(value, bool | int | float | str):
        raise FormulaError(f"{value!r} is not a number, a text or a truth value")
    if isinstance(value, int | float) and not abs(value) < _INT_LIMIT:
        raise FormulaError(f"{value!r} does not fit into 64 bits")


def _operands(node: ast.expr) -> list[ast.expr]:
    """The parts of a node that the grammar has."""
    match node:
        case ast.BinOp(left=left, right=right, op=op) if type(op) in _ARITHMETIC or isinstance(op, ast.Pow):
            return [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            return [operand]
        case ast.BoolOp(values=values):
            return values
        case ast.Compare(left=left, ops=ops, comparators=right) if all(type(op) in _COMPARISONS for op in ops):
            return [left, *right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            least, most, _ = _FUNCTIONS[name]
            if not least <= len(args) <= most:
                raise FormulaError(f"{name} takes {least}{'' if least == most else f' to {most}'} values")
            return args
    shown = ast.unparse(node)
    raise FormulaError(f"'{shown[:60]}' is not allowed; functions are {', '.join(sorted(_FUNCTIONS))}")


class _Evaluation:
    """One walk over the tree with the columns at hand."""

    def __init__(self, columns: Mapping[str, pl.Series], rows: int) -> None:
        self._columns = columns
        self._rows = rows

    def visit(self, node: ast.expr) -> pl.Series:  # noqa: C901  # a table of the grammar
        match node:
            case ast.Constant(value=value):
                return pl.Series([value]).new_from_index(0, self._rows)
            case ast.Name(id=name):
                return self._columns[name]
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _power(self.visit(left), self.visit(right), whole=_is_whole(right))
            case ast.BinOp(left=left, op=op, right=right):
                return _ARITHMETIC[type(op)](self.visit(left), self.visit(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~_truth(self.visit(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _minus(pl.Series([0]).new_from_index(0, self._rows), self.visit(operand))
            case ast.UnaryOp(operand=operand):
                return _number(self.visit(operand))
            case ast.BoolOp(op=op, values=values):
                return _together([_truth(self.visit(value)) for value in values], all_of=isinstance(op, ast.And))
            case ast.Compare(left=left, ops=ops, comparators=rest):
                sides = [self.visit(left), *(self.visit(side) for side in rest)]
                held = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)]
                return _together(held, all_of=True)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(_truth(self.visit(test)), body, orelse)
            case ast.Call(func=ast.Name(id=name), args=args):
                return _FUNCTIONS[name][2](*(self.visit(arg) for arg in args))
        raise FormulaError(f"'{ast.unparse(node)}' is not allowed")

    def _either(self, test: pl.Series, body: ast.expr, orelse: ast.expr) -> pl.Series:
        """Each branch is evaluated for the rows that take it, so that ``a / b if b else 0`` divides by no zero."""
        chosen = test.fill_null(value=False)
        sides = [(mask, self._only(mask).visit(node)) for mask, node in ((chosen, body), (~chosen, orelse))]
        spread = [_spread(values, mask) for mask, values in sides]
        return _chosen(test, *spread)

    def _only(self, mask: pl.Series) -> "_Evaluation":
        return _Evaluation({name: values.filter(mask) for name, values in self._columns.items()}, int(mask.sum()))


def _spread(values: pl.Series, mask: pl.Series) -> pl.Series:
    """The values at the rows of the mask, in their order; missing elsewhere."""
    place = mask.cum_sum().cast(pl.Int64) - 1
    return values.gather(place.set(~mask, None)) if len(values) else values.clear().extend_constant(None, len(mask))


def _is_whole(node: ast.expr) -> bool:
    """Is the exponent written as a whole number of at least 0? Only then is a power of integers an integer."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _together(held: list[pl.Series], *, all_of: bool) -> pl.Series:
    result = held[0]
    for more in held[1:]:
        result = result & more if all_of else result | more
    return result


def _truth(value: pl.Series) -> pl.Series:
    if value.dtype != pl.Boolean:
        raise FormulaError(f"a condition is {_named(value)}, not true or false")
    return value


def _number(value: pl.Series) -> pl.Series:
    """As Int64 or Float64; true is 1."""
    if value.dtype.is_float():
        return value.cast(pl.Float64)
    if value.dtype.is_integer() or value.dtype == pl.Boolean:
        return value.cast(pl.Int64)
    raise FormulaError(f"{_named(value)} is not a number")


def _named(value: pl.Series) -> str:
    return {pl.String: "text", pl.Boolean: "a truth value"}.get(type(value.dtype), str(value.dtype))


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
        left, right = _number(left), _number(right)
        if left.dtype == pl.Int64 and right.dtype == pl.Int64:
            # The same in floats tells whether the integers would have wrapped round.
            size = _on_arrays(operation, left.cast(pl.Float64), right.cast(pl.Float64)).abs().max()
            if size is not None and not float(size) < _INT_LIMIT:  # type: ignore[arg-type]
                raise FormulaError("an integer grows beyond 64 bits; write one of the numbers with a decimal point")
        return _on_arrays(operation, left, right)

    return apply


_minus = _arithmetic(np.subtract)
_add = _arithmetic(np.add)


def _plus(left: pl.Series, right: pl.Series) -> pl.Series:
    if left.dtype == pl.String and right.dtype == pl.String:
        return join((Text(left), Text(right)), len(left))
    return _add(left, right)


def _divisor(value: pl.Series) -> pl.Series:
    value = _number(value)
    if (value == 0).any():
        raise FormulaError("a division by zero")
    return value


def _divided(left: pl.Series, right: pl.Series) -> pl.Series:
    return _on_arrays(np.true_divide, _number(left).cast(pl.Float64), _divisor(right).cast(pl.Float64))


def _power(base: pl.Series, exponent: pl.Series, *, whole: bool) -> pl.Series:
    """Whole exponents up to 64 by multiplication, row by row; others through the logarithm."""
    base, exponent = _number(base), _number(exponent)
    if whole and base.dtype == pl.Int64 and (exponent <= _HIGHEST).all():
        return _arithmetic(_whole_power)(base, exponent)
    base, exponent = base.cast(pl.Float64), exponent.cast(pl.Float64)
    small = (exponent == exponent.round()) & (exponent.abs() <= _HIGHEST)
    if ((base <= 0) & ~small).any():
        raise FormulaError("a power of a number that is not above 0 with an exponent that is not whole and small")
    if ((base == 0) & (exponent < 0)).any():
        raise FormulaError("a division by zero")
    return _on_arrays(_real_power, base, exponent)


def _real_power(base: NDArray[Any], exponent: NDArray[Any]) -> NDArray[Any]:
    small = (exponent == np.rint(exponent)) & (np.abs(exponent) <= _HIGHEST)
    product = _whole_power(base, np.where(small, np.abs(exponent), 0.0))
    smooth = portable.exp(exponent * portable.log(np.where(small, 1.0, base)))
    return np.where(small, np.where(exponent < 0, 1.0 / product, product), smooth)


def _whole_power(base: NDArray[Any], exponent: NDArray[Any]) -> NDArray[Any]:
    """By squaring: only products, so the bits are the same everywhere."""
    result = np.ones_like(base)
    rest = exponent.astype(np.int64)
    while rest.any():
        result = np.where(rest & 1, result * base, result)
        rest = rest >> 1
        base = np.where(rest > 0, base * base, base)
    return result


def _chosen(test: pl.Series, then: pl.Series, otherwise: pl.Series) -> pl.Series:
    if then.dtype != otherwise.dtype:
        then, otherwise = _number(then), _number(otherwise)
        if then.dtype != otherwise.dtype:
            then, otherwise = then.cast(pl.Float64), otherwise.cast(pl.Float64)
    result = then.zip_with(test.fill_null(value=False), otherwise)
    if not test.null_count():
        return result
    return pl.select(pl.when(test.is_null()).then(None).otherwise(result).alias("")).to_series()


def _least(*values: pl.Series) -> pl.Series:
    result = values[0]
    for value in values[1:]:
        result = _chosen(result <= value, result, value)
    return result


def _greatest(*values: pl.Series) -> pl.Series:
    result = values[0]
    for value in values[1:]:
        result = _chosen(result >= value, result, value)
    return result


def _to_int(value: pl.Series) -> pl.Series:
    if value.dtype == pl.String:
        return value.cast(pl.Int64)
    value = _number(value)
    size = value.cast(pl.Float64).abs().max()
    if size is not None and not float(size) < _INT_LIMIT:  # type: ignore[arg-type]
        raise FormulaError("a number does not fit into 64 bits")
    return _on_arrays(lambda x: np.trunc(x).astype(np.int64), value)


def _to_float(value: pl.Series) -> pl.Series:
    return value.cast(pl.Float64) if value.dtype == pl.String else _number(value).cast(pl.Float64)


def _rounded(value: pl.Series, digits: pl.Series | None = None) -> pl.Series:
    """To the even neighbour on a tie; without digits a whole number."""
    value = _number(value)
    if value.dtype == pl.Int64:
        return value
    if digits is None:
        return _to_int(_on_arrays(np.rint, value))
    if digits.n_unique() != 1 or not digits.dtype.is_integer() or not 0 <= digits[0] <= 15:
        raise FormulaError("round wants a fixed number of digits from 0 to 15")
    factor = 10.0 ** digits[0]
    return _on_arrays(lambda x: np.rint(x * factor) / factor, value)


def _root(value: pl.Series) -> pl.Series:
    if (_number(value) < 0).any():
        raise FormulaError("the square root of a negative number")
    return _on_arrays(np.sqrt, _to_float(value))


def _logarithm(value: pl.Series) -> pl.Series:
    if (_number(value) <= 0).any():
        raise FormulaError("the logarithm of a number that is not above 0")
    return _on_arrays(portable.log, _to_float(value))


def _exponential(value: pl.Series) -> pl.Series:
    if (_number(value) > 709).any():
        raise FormulaError("an exponential too large for a number")
    return _on_arrays(portable.exp, _to_float(value))


def _words(value: pl.Series) -> pl.Series:
    if value.dtype != pl.String:
        raise FormulaError(f"{_named(value)} is not text")
    return value


def _moment(value: pl.Series) -> pl.Series:
    if not value.dtype.is_temporal():
        raise FormulaError(f"{_named(value)} is not a date")
    return value


def _shifted(moment: pl.Series, seconds: pl.Series) -> pl.Series:
    """A date or time, so many seconds later."""
    millis = _to_int(_on_arrays(lambda s: np.rint(s * 1000.0), _to_float(seconds))).cast(pl.Duration("ms"))
    return _moment(moment).cast(pl.Datetime("ms")) + millis


_ARITHMETIC: Mapping[type, Callable[[pl.Series, pl.Series], pl.Series]] = {
    ast.Add: _plus,
    ast.Sub: _minus,
    ast.Mult: _arithmetic(np.multiply),
    ast.Div: _divided,
    ast.FloorDiv: lambda a, b: _on_arrays(np.floor_divide, *_same(_number(a), _divisor(b))),
    ast.Mod: lambda a, b: _on_arrays(np.mod, *_same(_number(a), _divisor(b))),
}


def _same(left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series]:
    if left.dtype == right.dtype:
        return left, right
    return left.cast(pl.Float64), right.cast(pl.Float64)


_COMPARISONS: Mapping[type, Callable[[pl.Series, pl.Series], pl.Series]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}

# Name → fewest arguments, most arguments, function.
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., pl.Series]]] = {
    "abs": (1, 1, lambda v: _number(v).abs()),
    "ceil": (1, 1, lambda v: _to_int(_on_arrays(np.ceil, _to_float(v)))),
    "day": (1, 1, lambda v: _moment(v).dt.day().cast(pl.Int64)),
    "exp": (1, 1, _exponential),
    "float": (1, 1, _to_float),
    "floor": (1, 1, lambda v: _to_int(_on_arrays(np.floor, _to_float(v)))),
    "hour": (1, 1, lambda v: _moment(v).dt.hour().cast(pl.Int64)),
    "int": (1, 1, _to_int),
    "len": (1, 1, lambda v: _words(v).str.len_chars().cast(pl.Int64)),
    "log": (1, 1, _logarithm),
    "lower": (1, 1, lambda v: _words(v).str.to_lowercase()),
    "max": (1, 20, _greatest),
    "min": (1, 20, _least),
    "month": (1, 1, lambda v: _moment(v).dt.month().cast(pl.Int64)),
    "round": (1, 2, _rounded),
    "shift": (2, 2, _shifted),
    "sqrt": (1, 1, _root),
    "str": (1, 1, as_text),
    "upper": (1, 1, lambda v: _words(v).str.to_uppercase()),
    "weekday": (1, 1, lambda v: _moment(v).dt.weekday().cast(pl.Int64)),
    "year": (1, 1, lambda v: _moment(v).dt.year().cast(pl.Int64)),
}
