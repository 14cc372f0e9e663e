"""Argo's texts: ``{{tags}}``, ``when``, ``depends`` and the expressions of hooks.

Sources: https://argo-workflows.readthedocs.io/en/latest/variables/ and …/enhanced-depends-logic/
"""

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

_TAG = re.compile(r"\{\{-?\s*([^{}]+?)\s*-?\}\}")
_TOKEN = re.compile(r"\s*(\|\||&&|==|!=|>=|<=|>|<|!|\(|\)|'[^']*'|\"[^\"]*\"|[^\s()&|=!<>]+)")
# What the expression of a hook can name; of a language with functions, lists and arithmetic.
_NAME = re.compile(r"(?:workflow|(?:steps|tasks)(?:\.[\w-]+|\[(?:'[\w-]+'|\"[\w-]+\")\]))(?:\.[\w-]+)+")
_INDEX = re.compile(r"\[['\"]([\w-]+)['\"]\]")
_HOOK = "the simulated platform can't evaluate the expression"
_ONLY_IN_CONTAINER = re.compile(r"\.outputs\.(?:result|exitCode)$|\.ip$")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le,
}  # fmt: skip
# What a task's name alone means in `depends`.
_MEANS_DONE = ("Succeeded", "Skipped", "Daemoned")


class ExpressionError(Exception):
    """A text that Argo can't evaluate, with its message."""


def filled(value: Any, scope: Mapping[str, str]) -> Any:
    """A value of a manifest with its tags replaced.

    Raises:
        ExpressionError: a tag names nothing.
    """
    if isinstance(value, str):
        return _TAG.sub(lambda tag: _looked_up(tag[1], scope), value)
    if isinstance(value, Mapping):
        return {key: filled(each, scope) for key, each in value.items()}
    return [filled(each, scope) for each in value] if isinstance(value, list) else value


def _looked_up(name: str, scope: Mapping[str, str]) -> str:
    if name not in scope:
        raise ExpressionError(f"failed to resolve {{{{{name}}}}}")
    return scope[name]


def item_scope(item: Any) -> dict[str, str]:
    """The tags of one item of a loop."""
    if isinstance(item, Mapping):
        return {"item": json.dumps(item, separators=(",", ":")), **{f"item.{k}": text_of(v) for k, v in item.items()}}
    return {"item": text_of(item)}


def item_name(index: int, item: Any) -> str:
    """What an item adds to the name of its node: ``(2:x)``."""
    if isinstance(item, Mapping):
        shown = ",".join(f"{key}:{text_of(item[key])}" for key in sorted(item))
    else:
        shown = text_of(item)
    return f"({index}:{shown})"


def text_of(value: Any) -> str:
    """A JSON value as Argo writes it into a parameter."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def holds(text: str) -> bool:
    """The value of a ``when`` without tags.

    Raises:
        ExpressionError: it is no condition.
    """
    return _Parser(text, _literal).value()


def depends_on(text: str) -> frozenset[str]:
    """The tasks that a ``depends`` names."""
    return frozenset(token.partition(".")[0] for token in _TOKEN.findall(text) if token[0] not in "|&!()<>='\"")


def is_met(text: str, phases: Mapping[str, str]) -> bool:
    """Whether a ``depends`` holds when the tasks have ended in these phases.

    Raises:
        ExpressionError: it is no condition.
    """

    def result(token: str) -> Any:
        task, _, wanted = token.partition(".")
        if task not in phases:
            raise ExpressionError(f"depends names the unknown task {task}")
        return phases[task] in ((wanted,) if wanted else _MEANS_DONE)

    return _Parser(text, result).value()


def demand_expression(text: str) -> None:
    """Check that the expression of a hook can be evaluated here.

    Raises:
        ExpressionError: it can't.
    """
    _Parser(text, lambda token: _literal(token) if _is_constant(token) else _demand_name(token), _HOOK).parse()


def is_true(text: str, scope: Mapping[str, str]) -> bool:
    """The value of a hook's expression.

    Raises:
        ExpressionError: it is no condition, or names nothing.
    """

    def value(token: str) -> Any:
        return _literal(token) if _is_constant(token) else _looked_up(_INDEX.sub(r".\1", token), scope)

    return _Parser(text, value, _HOOK).value()


def _is_constant(token: str) -> bool:
    return token[0] in "'\"" or token in {"true", "false"} or re.fullmatch(r"-?\d+(\.\d+)?", token) is not None


def _demand_name(token: str) -> str:
    if not _NAME.fullmatch(token):
        raise ExpressionError(f"the simulated platform can't evaluate '{token[:40]}'")
    if _ONLY_IN_CONTAINER.search(token):
        raise ExpressionError(f"{token} is known only to a real Argo")
    return ""


def _literal(token: str) -> Any:
    if token[0] in "'\"":
        return token[1:-1]
    try:
        return {"true": True, "false": False}[token] if token in {"true", "false"} else float(token)
    except ValueError:
        return token


class _Parser:
    """Recursive descent over ``or``, ``and``, ``not``, comparisons and parentheses."""

    def __init__(self, text: str, read: Callable[[str], Any], what: str = "Invalid 'when' expression") -> None:
        self._text = text
        self._what = what
        self._tokens = _TOKEN.findall(text)
        self._read = read

    def value(self) -> bool:
        found = self.parse()
        if not isinstance(found, bool):
            raise self._error()
        return found

    def parse(self) -> Any:
        found = self._either()
        if self._tokens:
            raise self._error()
        return found

    def _either(self) -> Any:
        left = self._both()
        while self._next("||"):
            right = self._both()
            left = bool(left) or bool(right)
        return left

    def _both(self) -> Any:
        left = self._compared()
        while self._next("&&"):
            right = self._compared()
            left = bool(left) and bool(right)
        return left

    def _compared(self) -> Any:
        left = self._single()
        if self._tokens and self._tokens[0] in _COMPARE:
            compare, right = _COMPARE[self._tokens.pop(0)], self._single()
            try:
                return compare(left, right)
            except TypeError:
                raise self._error() from None
        return left

    def _single(self) -> Any:
        if self._next("!"):
            return not self._single()
        if self._next("("):
            inner = self._either()
            if not self._next(")"):
                raise self._error()
            return inner
        if not self._tokens:
            raise self._error()
        return self._read(self._tokens.pop(0))

    def _next(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False

    def _error(self) -> ExpressionError:
        return ExpressionError(f"{self._what} '{self._text}'")
