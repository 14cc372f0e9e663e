"""Expressions of workflows, in as much of their languages as the documentation and examples use.

KFP's conditions are CEL, Argo's ``when`` and ``depends`` govaluate, and its ``{{=…}}`` and hooks expr. Sources:
https://github.com/google/cel-spec, https://github.com/Knetic/govaluate, https://expr-lang.org/docs/language-definition
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from harness.simulator.engine.functions import ARITHMETIC, COMPARISONS, FUNCTIONS, LAMBDAS

_CODE = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"""
    r"""|(?P<word>[A-Za-z_$\#][\w]*)|(?P<sign>\?\?|\?\.|\.\.|\*\*|=~|==|!=|<=|>=|&&|\|\||[-+*/%<>!()\[\]{}.,?:|]))"""
)
_WORDS = re.compile(
    r"""\s*(?:(?P<text>'[^']*'|"[^"]*")|(?P<sign>=~|==|!=|<=|>=|&&|\|\||[<>!(),])|(?P<bare>[^\s()&|=!<>,]+))"""
)
_PRECEDENCE = {
    "??": 1, "||": 2, "or": 2, "&&": 3, "and": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "=~": 4, "in": 4,
    "contains": 4, "matches": 4, "startsWith": 4, "endsWith": 4, "..": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
    "**": 8,
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "null": None, "nil": None}
_MOST_LEVELS = 50
_CONDITION = "is no condition"


class Scope(Protocol):
    """What the names in an expression refer to."""

    def value(self, path: str) -> Any:
        """The value of ``a.b.c``; raises LookupError if it is unknown."""
        ...

    def unsettled(self, comparison: str) -> bool:
        """The outcome of a comparison with an unknown value; raises LookupError where there is none."""
        ...


Evaluate = Callable[[Scope], Any]


@lru_cache(4096)
def parsed(text: str, *, bare: bool = False) -> Evaluate:
    """What evaluates an expression; `bare` words are texts or numbers, as in ``when`` after its tags were replaced.

    Raises:
        ValueError: it can't be parsed; evaluation raises LookupError, TypeError and ValueError.
    """
    return _Parser(text, _WORDS if bare else _CODE).whole()


def is_true(text: str, scope: Scope, *, bare: bool = False) -> bool:
    """The value of a condition.

    Raises:
        LookupError, TypeError, ValueError: it can't be evaluated, or is no condition.
    """
    found = parsed(text, bare=bare)(scope)
    if not isinstance(found, bool):
        raise ValueError(_CONDITION)  # noqa: TRY004  # its text is at fault
    return found


class _Parser:
    """Precedence climbing; every method returns what evaluates the part that it has read."""

    def __init__(self, text: str, tokens: re.Pattern[str]) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = tokens.match(text, at)
            if match is None:
                raise ValueError(f"{text[:80]!r} at {at}")
            self._tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        self._at = 0
        self._depth = 0

    def whole(self) -> Evaluate:
        evaluate = self._choice()
        if self._at < len(self._tokens):
            raise ValueError(self._tokens[self._at][1])
        return evaluate

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise ValueError("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, *signs: str) -> str:
        """Consume and return the next token if it is one of the signs, otherwise ""."""
        if self._at < len(self._tokens) and self._tokens[self._at][1] in signs and self._tokens[self._at][0] != "text":
            self._at += 1
            return self._tokens[self._at - 1][1]
        return ""

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise ValueError(f"{sign} is missing")

    def _choice(self) -> Evaluate:
        self._depth += 1
        if self._depth > _MOST_LEVELS:
            raise ValueError("it has too many levels")
        condition = self._binary(1)
        if self._takes("?"):
            yes = self._choice()
            self._expect(":")
            no = self._choice()
            self._depth -= 1
            return lambda scope: yes(scope) if condition(scope) else no(scope)
        self._depth -= 1
        return condition

    def _binary(self, least: int) -> Evaluate:
        begun = self._at
        left = self._unary()
        while self._at < len(self._tokens) and self._tokens[self._at][0] != "text":
            sign = self._tokens[self._at][1]
            precedence = _PRECEDENCE.get(sign, 0)
            if precedence < least:
                break
            self._at += 1
            right = self._binary(precedence + 1)
            text = " ".join(token for _, token in self._tokens[begun : self._at])
            left = _joined(sign, left, right, text)
        return left

    def _unary(self) -> Evaluate:
        if self._takes("!", "not"):
            inside = self._unary()
            return lambda scope: not inside(scope)
        if self._takes("-"):
            inside = self._unary()
            return lambda scope: -inside(scope)
        return self._after(self._primary())

    def _primary(self) -> Evaluate:
        kind, token = self._next()
        if token == "(":  # noqa: S105  # a sign
            return self._bracketed()
        if kind == "text":
            return _constant(re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] != "`" else token[1:-1])
        if kind == "number":
            return _constant(number(token))
        if kind == "bare":
            return lambda scope: scope.value(token)
        if token == "[":  # noqa: S105  # a sign
            items = self._list("]")
            return lambda scope: [item(scope) for item in items]
        if token == "{":  # noqa: S105  # a sign
            return self._map()
        if kind != "word":
            raise ValueError(token)
        if token in _CONSTANTS:
            return _constant(_CONSTANTS[token])
        return self._named(token)

    def _bracketed(self) -> Evaluate:
        inside = self._choice()
        if self._takes(","):  # govaluate's list: x in (a, b)
            rest = self._list(")")
            return lambda scope: [inside(scope), *(each(scope) for each in rest)]
        self._expect(")")
        return inside

    def _named(self, path: str) -> Evaluate:
        """A name with what is known of its parts when it is read: ``steps['a'].outputs.result`` is one path."""
        while True:
            if self._tokens[self._at : self._at + 1] == [("sign", "(")] and path != "#":
                self._at += 1
                return self._call(path)
            following = self._tokens[self._at : self._at + 3]
            if (
                [each[1] for each in following[:1]] in (["."], ["?."])
                and len(following) > 1
                and following[1][0] == "word"
            ):
                path, self._at = f"{path}.{following[1][1]}", self._at + 2
            elif (
                len(following) == 3 and following[0][1] == "[" and following[1][0] == "text" and following[2][1] == "]"
            ):
                path, self._at = f"{path}.{following[1][1][1:-1]}", self._at + 3
            else:
                return lambda scope: scope.value(path)

    def _call(self, path: str) -> Evaluate:
        name = path.removeprefix("sprig.")
        given: list[Evaluate] = []
        while not self._takes(")"):
            if given:
                self._expect(",")
            if name in LAMBDAS and self._takes("{"):
                given.append(self._predicate())
            else:
                given.append(self._choice())
        if name in LAMBDAS:
            if len(given) != 2:
                raise ValueError(name)
            return lambda scope: LAMBDAS[name](given[0](scope), lambda item: given[1](_Inner(scope, item)))
        if name not in FUNCTIONS:
            return _unknown_function(name)
        return lambda scope: FUNCTIONS[name](*(each(scope) for each in given))

    def _predicate(self) -> Evaluate:
        inside = self._choice()
        self._expect("}")
        return inside

    def _after(self, value: Evaluate) -> Evaluate:
        """Indices, attributes and pipes after a value."""
        while sign := self._takes("[", ".", "?.", "|"):
            if sign == "[":
                key = self._choice()
                self._expect("]")
                value = _part(value, key)
            elif sign == "|":
                _, name = self._next()
                self._expect("(")
                value = self._piped(value, name)
            else:
                value = _part(value, _constant(self._next()[1]))
        return value

    def _piped(self, value: Evaluate, name: str) -> Evaluate:
        rest = self._list(")")
        if name not in FUNCTIONS:
            return _unknown_function(name)
        return lambda scope: FUNCTIONS[name](value(scope), *(each(scope) for each in rest))

    def _list(self, end: str) -> list[Evaluate]:
        items: list[Evaluate] = []
        while not self._takes(end):
            items.append(self._choice())
            if not self._takes(","):
                self._expect(end)
                break
        return items

    def _map(self) -> Evaluate:
        entries: list[tuple[str, Evaluate]] = []
        while not self._takes("}"):
            kind, key = self._next()
            self._expect(":")
            entries.append((key[1:-1] if kind == "text" else key, self._choice()))
            self._takes(",")
        return lambda scope: {key: each(scope) for key, each in entries}


class _Inner:
    """The scope of a predicate: ``#`` is the item."""

    def __init__(self, outer: Scope, item: Any) -> None:
        self._outer = outer
        self._item = item

    def value(self, path: str) -> Any:
        first, _, rest = path.partition(".")
        if first != "#":
            return self._outer.value(path)
        found = self._item
        for key in filter(None, rest.split(".")):
            found = found[key]
        return found

    def unsettled(self, comparison: str) -> bool:
        return self._outer.unsettled(comparison)


def number(token: str) -> int | float:
    """A number as it is written."""
    return int(token) if token.isdigit() else float(token)


def _constant(value: object) -> Evaluate:
    return lambda _: value


def _unknown_function(name: str) -> Evaluate:
    def evaluate(_: Scope) -> Any:
        raise LookupError(f"the function {name}")

    return evaluate


def _part(value: Evaluate, key: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        found, its = value(scope), key(scope)
        return found[int(its)] if isinstance(found, list | str) else found[str(its)]

    return evaluate


def _joined(sign: str, left: Evaluate, right: Evaluate, text: str) -> Evaluate:
    if sign in {"&&", "and"}:
        return lambda scope: bool(left(scope)) and bool(right(scope))
    if sign in {"||", "or"}:
        return lambda scope: bool(left(scope)) or bool(right(scope))
    if sign == "??":
        return lambda scope: found if (found := _or_nil(left, scope)) is not None else right(scope)
    if sign in ARITHMETIC:
        return lambda scope: ARITHMETIC[sign](left(scope), right(scope))

    def compare(scope: Scope) -> bool:
        try:
            one, other = left(scope), right(scope)
            if isinstance(one, bool) != isinstance(other, bool) and sign in {"==", "!="}:  # true is not a number
                return sign == "!="
            return bool(COMPARISONS[sign](one, other))
        except (LookupError, TypeError, ValueError):
            return scope.unsettled(text)

    return compare


def _or_nil(value: Evaluate, scope: Scope) -> Any:
    try:
        return value(scope)
    except LookupError:
        return None
