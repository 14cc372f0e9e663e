"""Conditions of a compiled pipeline: the part of CEL that KFP's compiler writes for ``dsl.If``, ``Elif`` and ``Else``.

``inputs.parameter_values['x'] == 'y'``, the other comparisons, ``int(…)``, ``double(…)``, ``string(…)``, ``bool(…)``,
``!``, ``&&``, ``||`` and parentheses (https://github.com/google/cel-spec). A comparison with an unknown value
is drawn at random: within a run, the same comparison of the same value always has the same outcome, so that exactly
one branch of an ``If``/``Elif``/``Else`` is taken.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Read = Callable[["Source"], object]  # the value; raises LookupError if it is unknown
Draw = Callable[[object], bool]  # a random outcome for this key


class Known(NamedTuple):
    """A constant in the pipeline."""

    value: object


class Given(NamedTuple):
    """A parameter of the run."""

    name: str


class Computed(NamedTuple):
    """An output of a step: the step's index in the graph, and the output's name."""

    step: int
    name: str


Source = Known | Given | Computed
_Names = Mapping[str, Source]
_Evaluate = Callable[[_Names, Read, Draw], object]

_TOKENS = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?)"""
    r"""|(?P<word>[A-Za-z_][\w.]*)|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!()\[\]-]))"""
)
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "null": None}
_CONVERSIONS: Mapping[str, Callable[[object], object]] = {
    "int": lambda value: int(float(str(value))),
    "double": lambda value: float(str(value)),
    "string": str,
    "bool": lambda value: value if isinstance(value, bool) else str(value).lower() == "true",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a task; `names` are the sources of its parameters."""

    text: str
    names: _Names

    def holds(self, read: Read, draw: Draw) -> bool:
        """Whether the task runs; an expression that cannot be parsed is drawn as a whole."""
        try:
            return bool(_Parser(self.text).whole()(self.names, read, draw))
        except (LookupError, ValueError):
            return draw((self.text, tuple(self.names.values())))


class _Parser:
    """Recursive descent, one method for each level of precedence."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKENS.match(text, at)
            if found is None:
                raise ValueError(f"{text!r} at {at}")
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()
        self._at = 0

    def whole(self) -> _Evaluate:
        evaluate = self._either()
        if self._at < len(self._tokens):
            raise ValueError(self._tokens[self._at][1])
        return evaluate

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise ValueError("the condition ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, *signs: str) -> str:
        """Consume and return the next token if it is one of the signs, otherwise ""."""
        if self._at < len(self._tokens) and self._tokens[self._at][1] in signs:
            return self._next()[1]
        return ""

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise ValueError(f"{sign} is missing")

    def _either(self) -> _Evaluate:
        evaluate = self._both()
        while self._takes("||"):
            evaluate = _any(evaluate, self._both())
        return evaluate

    def _both(self) -> _Evaluate:
        evaluate = self._comparison()
        while self._takes("&&"):
            evaluate = _all(evaluate, self._comparison())
        return evaluate

    def _comparison(self) -> _Evaluate:
        begun = self._at
        left = self._unary()
        sign = self._takes(*_ORDER)
        if not sign:
            return left
        right = self._unary()
        return _compared(left, sign, right, " ".join(token for _, token in self._tokens[begun : self._at]))

    def _unary(self) -> _Evaluate:
        if self._takes("!"):
            return _not(self._unary())
        if self._takes("-"):
            kind, token = self._next()
            if kind != "number":
                raise ValueError(token)
            return _constant(-_number(token))
        return self._primary()

    def _primary(self) -> _Evaluate:
        kind, symbol = self._next()
        if symbol == "(":
            inside = self._either()
            self._expect(")")
            return inside
        if kind == "text":
            return _constant(re.sub(r"\\(.)", r"\1", symbol[1:-1]))
        if kind == "number":
            return _constant(_number(symbol))
        if symbol in _CONSTANTS:
            return _constant(_CONSTANTS[symbol])
        if symbol == "inputs.parameter_values":
            self._expect("[")
            _, name = self._next()
            self._expect("]")
            return _parameter(name[1:-1])
        if symbol in _CONVERSIONS:
            self._expect("(")
            inside = self._either()
            self._expect(")")
            return _converted(_CONVERSIONS[symbol], inside)
        raise ValueError(symbol)


def _number(token: str) -> int | float:
    return int(token) if token.isdigit() else float(token)


def _constant(value: object) -> _Evaluate:
    return lambda _names, _read, _draw: value


def _parameter(name: str) -> _Evaluate:
    return lambda names, read, _draw: read(names[name])


def _converted(convert: Callable[[object], object], inside: _Evaluate) -> _Evaluate:
    return lambda names, read, draw: convert(inside(names, read, draw))


def _not(inside: _Evaluate) -> _Evaluate:
    return lambda names, read, draw: not inside(names, read, draw)


def _any(left: _Evaluate, right: _Evaluate) -> _Evaluate:
    return lambda names, read, draw: bool(left(names, read, draw)) or bool(right(names, read, draw))


def _all(left: _Evaluate, right: _Evaluate) -> _Evaluate:
    return lambda names, read, draw: bool(left(names, read, draw)) and bool(right(names, read, draw))


def _compared(left: _Evaluate, sign: str, right: _Evaluate, text: str) -> _Evaluate:
    def evaluate(names: _Names, read: Read, draw: Draw) -> bool:
        try:
            one, other = left(names, read, draw), right(names, read, draw)
            if isinstance(one, bool) != isinstance(other, bool):  # in CEL, true is not a number
                return sign == "!="
            return _ORDER[sign](one, other)
        except (LookupError, TypeError, ValueError):
            # The sources distinguish equal names in different pipelines.
            return draw((text, tuple(source for name, source in sorted(names.items()) if f"'{name}'" in text)))

    return evaluate
