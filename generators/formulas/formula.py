"""A small safe evaluator: arithmetic, comparisons, choices and a few functions over columns, without `eval`.

The grammar is a subset of Python's, parsed by `ast`; anything that is not listed here is rejected. Values are numbers,
booleans and text. A missing operand makes the result missing.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from generators.columns import Column, from_values, missing_in
from generators.formulas.operations import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    INT_LIMIT,
    FormulaError,
    chosen,
    minus,
    number,
    power,
    truth,
)
from generators.streams import Bools

_MAX_LENGTH = 2000
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Formula:
    """A checked formula; `names` are the columns that it refers to."""

    source: str
    names: frozenset[str]

    def evaluate(self, columns: Mapping[str, Column], rows: int) -> Column:
        """The value for every row.

        Raises:
            FormulaError: incompatible types, an integer beyond 64 bits, or a division by zero.
        """
        result = _Evaluation(columns, rows).visit(_parse(self.source).body)
        if result.kind == "f" and not np.isfinite(result.filled(0.0)).all():
            raise FormulaError("the result is not a finite number")
        return result


def formula(source: str) -> Formula:
    """Parse and check a formula.

    Raises:
        FormulaError: it is not in the grammar.
    """
    tree = _parse(source)
    names: set[str] = set()
    _check(tree.body, names, 0)
    return Formula(source, frozenset(names))


@cache
def _parse(source: str) -> ast.Expression:
    if len(source) > _MAX_LENGTH:
        raise FormulaError(f"longer than {_MAX_LENGTH} characters")
    try:
        return ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"not a formula: {getattr(error, 'msg', error)}") from error


def _check(node: ast.expr, names: set[str], depth: int) -> None:
    if depth > _MAX_DEPTH:
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
        raise FormulaError(f"{value!r} is not a number, text or a boolean")
    if isinstance(value, int | float) and not abs(value) < INT_LIMIT:
        raise FormulaError(f"{value!r} does not fit into 64 bits")


def _operands(node: ast.expr) -> list[ast.expr]:
    """The operands of a node that is in the grammar; raises `FormulaError` for any other."""
    match node:
        case ast.BinOp(left=left, right=right, op=op) if type(op) in ARITHMETIC or isinstance(op, ast.Pow):
            return [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            return [operand]
        case ast.BoolOp(values=values):
            return values
        case ast.Compare(left=left, ops=ops, comparators=right) if all(type(op) in COMPARISONS for op in ops):
            return [left, *right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            least, most, _ = FUNCTIONS[name]
            if not least <= len(args) <= most:
                raise FormulaError(f"{name} takes {least}{'' if least == most else f' to {most}'} arguments")
            return args
    shown = ast.unparse(node)
    raise FormulaError(f"'{shown[:60]}' is not allowed; functions are {', '.join(sorted(FUNCTIONS))}")


class _Evaluation:
    """Evaluates a tree over the given columns."""

    def __init__(self, columns: Mapping[str, Column], rows: int) -> None:
        self._columns = columns
        self._rows = rows

    def visit(self, node: ast.expr) -> Column:  # noqa: C901  # a table of the grammar
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.Name(id=name):
                return self._columns[name]
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return power(self.visit(left), self.visit(right), whole=_is_whole(right))
            case ast.BinOp(left=left, op=op, right=right):
                return ARITHMETIC[type(op)](self.visit(left), self.visit(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                column = truth(self.visit(operand))
                return Column(~column.values, column.missing)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return minus(self._constant(0), self.visit(operand))
            case ast.UnaryOp(operand=operand):
                return number(self.visit(operand))
            case ast.BoolOp(op=op, values=values):
                return _together([truth(self.visit(value)) for value in values], all_of=isinstance(op, ast.And))
            case ast.Compare(left=left, ops=ops, comparators=rest):
                sides = [self.visit(left), *(self.visit(side) for side in rest)]
                held = [COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False)]
                return _together(held, all_of=True)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._either(truth(self.visit(test)), body, orelse)
            case ast.Call(func=ast.Name(id=name), args=args):
                return FUNCTIONS[name][2](*(self.visit(arg) for arg in args))
        raise FormulaError(f"'{ast.unparse(node)}' is not allowed")

    def _constant(self, value: object) -> Column:
        return from_values([value]).take(np.zeros(self._rows, dtype=np.int64))

    def _either(self, test: Column, body: ast.expr, orelse: ast.expr) -> Column:
        """Each branch is evaluated only for the rows that take it, so ``a / b if b else 0`` never divides by zero."""
        taken = test.filled(value=False)
        return chosen(test, *(self._spread(mask, node) for mask, node in ((taken, body), (~taken, orelse))))

    def _spread(self, mask: Bools, node: ast.expr) -> Column:
        """The values of the rows of the mask, each in its row; what the other rows have does not count."""
        inside = {name: column.take(mask) for name, column in self._columns.items()}
        found = _Evaluation(inside, int(mask.sum())).visit(node)
        place = np.cumsum(mask) - 1
        return (
            found.take(np.maximum(place, 0)) if len(found) else Column(np.zeros(self._rows, dtype=found.values.dtype))
        )


def _is_whole(node: ast.expr) -> bool:
    """Whether the exponent is an integer literal of at least 0: only then is a power of integers an integer."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)


def _together(held: list[Column], *, all_of: bool) -> Column:
    combine = np.logical_and if all_of else np.logical_or
    return Column(combine.reduce([column.values for column in held]), missing_in(held))
