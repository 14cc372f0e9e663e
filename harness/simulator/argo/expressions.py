"""Argo's texts: ``{{tags}}`` and ``{{=expressions}}``, ``when``, ``depends``, and the expressions of hooks and retries.

Sources: https://argo-workflows.readthedocs.io/en/latest/variables/ and …/enhanced-depends-logic/
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.simulator.engine.expressions import is_true, number, parsed
from harness.simulator.engine.functions import as_text

_TAG = re.compile(r"\{\{=(?P<code>.+?)\}\}(?!\})|\{\{-?\s*(?P<name>[^{}=][^{}]*?)\s*-?\}\}", re.DOTALL)
_NAMED = re.compile(r"[^\s()&|!]+")
_CONSTANTS = {"true": True, "false": False}
# What a task's name alone means in `depends`.
_MEANS_DONE = ("Succeeded", "Skipped", "Daemoned")
# Tags of these are known when they are replaced, or never; of all others only a real Argo knows the value.
_OURS = ("inputs.", "item", "steps.", "tasks.", "workflow.parameters.")


class ExpressionError(Exception):
    """A text that Argo can't evaluate, with its message."""


class UnknownValueError(ExpressionError):
    """An expression whose value only a real Argo knows."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What tags name; see `harness.simulator.engine.expressions.Scope`."""

    values: Mapping[str, Any]

    def value(self, path: str) -> Any:
        """The value of a tag, or of a part of one."""
        if path in self.values:
            return self.values[path]
        within = {key[len(path) + 1 :]: each for key, each in self.values.items() if key.startswith(f"{path}.")}
        if not within:
            raise LookupError(f"failed to resolve {{{{{path}}}}}")
        return within

    def unsettled(self, comparison: str) -> bool:
        """Argo has no unknown values."""
        raise LookupError(comparison)


@dataclass(frozen=True, slots=True)
class _Words:
    """A condition without tags: its words are texts or numbers, or what `known` makes of them."""

    known: Callable[[str], Any]

    def value(self, path: str) -> Any:
        """The word itself."""
        return self.known(path)

    def unsettled(self, comparison: str) -> bool:
        """Nothing is unknown."""
        raise ValueError(comparison)


def filled(value: Any, scope: Mapping[str, str], unknown: str = "") -> Any:
    """A value of a manifest with its tags replaced; `unknown` replaces expressions that can't be evaluated here.

    Raises:
        ExpressionError: a tag names nothing.
        UnknownValueError: an expression can't be evaluated here.
    """
    if isinstance(value, str):
        return _TAG.sub(lambda tag: _replaced(tag, scope, unknown), value) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: filled(each, scope, unknown) for key, each in value.items()}
    return [filled(each, scope, unknown) for each in value] if isinstance(value, list) else value


def _replaced(tag: re.Match[str], scope: Mapping[str, str], unknown: str) -> str:
    if tag["code"] is not None:
        try:
            return as_text(evaluated(tag["code"], scope))
        except UnknownValueError:
            if not unknown:
                raise
            return unknown
    name = tag["name"]
    if name not in scope and name.startswith(_OURS):
        raise ExpressionError(f"failed to resolve {{{{{name}}}}}")
    return scope.get(name, tag[0])


def evaluated(text: str, scope: Mapping[str, Any]) -> Any:
    """The value of an expression.

    Raises:
        UnknownValueError: it can't be evaluated here.
    """
    try:
        return parsed(text.strip())(_Scope(scope))
    except (ArithmeticError, LookupError, RecursionError, StopIteration, TypeError, ValueError) as error:
        raise UnknownValueError(f"failed to evaluate the expression '{text.strip()[:80]}': {error}") from error


def item_scope(item: Any) -> dict[str, str]:
    """The tags of one item of a loop."""
    if isinstance(item, Mapping):
        return {"item": text_of(item), **{f"item.{k}": text_of(v) for k, v in item.items()}}
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
    return _condition(text, _literal, "Invalid 'when' expression")


def depends_on(text: str) -> frozenset[str]:
    """The tasks that a ``depends`` names."""
    return frozenset(name.partition(".")[0] for name in _NAMED.findall(text))


def is_met(text: str, phases: Mapping[str, str]) -> bool:
    """Whether a ``depends`` holds when the tasks have ended in these phases.

    Raises:
        ExpressionError: it is no condition.
    """

    def result(token: str) -> bool:
        task, _, wanted = token.partition(".")
        if task not in phases:
            raise ExpressionError(f"depends names the unknown task {task}")
        wanted = {"AnySucceeded": "Succeeded", "AllFailed": "Failed", "Errored": "Error"}.get(wanted, wanted)
        return phases[task] in ((wanted,) if wanted else _MEANS_DONE)

    return _condition(text, result, "Invalid 'depends' expression")


def _condition(text: str, known: Callable[[str], Any], what: str) -> bool:
    try:
        return is_true(text, _Words(known), bare=True)
    except (LookupError, TypeError, ValueError) as error:
        raise ExpressionError(f"{what} '{text}'") from error


def demand_expression(text: str) -> None:
    """Check that an expression can be parsed.

    Raises:
        ExpressionError: it can't.
    """
    try:
        parsed(text)
    except ValueError as error:
        raise ExpressionError(f"'{text[:80]}' is no expression: {error}") from error


def is_true_of(text: str, scope: Mapping[str, Any]) -> bool:
    """The value of the expression of a hook or a retry.

    Raises:
        ExpressionError: it is no condition, or names nothing.
    """
    found = evaluated(text, scope)
    if not isinstance(found, bool):
        raise ExpressionError(f"the expression '{text[:80]}' is no condition")
    return found


def _literal(token: str) -> Any:
    try:
        return _CONSTANTS[token] if token in _CONSTANTS else number(token)
    except ValueError:
        return token
