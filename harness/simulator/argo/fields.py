"""What the fields of templates, steps and tasks mean."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_duration
from harness.reading import parse_json
from harness.simulator.argo.expressions import ExpressionError, depends_on, evaluated, filled, item_name, item_scope
from harness.simulator.argo.nodes import BAD, DAG, FAILED, HTTP, PLUGIN, POD, STEPS, SUSPEND, Node
from harness.simulator.argo.templates import Spec, plain
from harness.simulator.engine.functions import as_text

MOST_ITEMS = 10_000  # of one loop: with more, a workflow would not fit into its object
POD_KINDS = ("container", "script", "containerSet", "resource", "data")
_TYPES = {"steps": STEPS, "dag": DAG, "suspend": SUSPEND, "http": HTTP, "plugin": PLUGIN}
_FORMAT = re.compile(r"(?:[^%]|%%)*%[-+ #0]*\d{0,3}[dxXo](?:[^%]|%%)*")


def runs_after_failure(condition: str) -> bool:
    """Whether a ``depends`` asks for an outcome other than success: then its task runs after a failure."""
    return any(word in condition for word in (".Failed", ".Errored", ".AnySucceeded", ".AllFailed"))


def is_pod(template: Spec) -> bool:
    """Whether a template runs in a pod."""
    return any(kind in template for kind in POD_KINDS)


def type_of(template: Spec) -> str:
    """The type of a template's nodes."""
    return POD if is_pod(template) else next(kind for name, kind in _TYPES.items() if name in template)


def fails_fast(dag: Spec) -> bool:
    """Whether a DAG begins nothing new after a failure."""
    return dag.get("failFast") is not False


def dependencies(task: Spec) -> tuple[str, list[str]]:
    """The condition of a task, and the names in it."""
    if task.get("depends"):
        condition = str(task["depends"])
        return condition, sorted(depends_on(condition))
    names = [str(dependency) for dependency in task.get("dependencies") or ()]
    return " && ".join(names), names


def has_failed(node: Node | None, task: Spec) -> bool:
    """Whether a task ended badly, and that counts."""
    return node is not None and node.phase in BAD and not goes_on(task, node.phase)


def goes_on(step: Spec, phase: str) -> bool:
    """Whether a step that ended badly in this phase counts as good."""
    allowed = step.get("continueOn") or {}
    return bool(allowed.get("failed" if phase == FAILED else "error"))


def items_of(step: Spec, scope: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """(what it adds to the name, what its tags name) of each item of a step; one without for a step without items."""
    if "withItems" in step:
        items = filled(step["withItems"], scope)
    elif "withParam" in step:
        try:
            items = parse_json(filled(str(step["withParam"]), scope), "withParam")
        except ConfigError as error:
            raise ExpressionError(error.message) from error
    elif "withSequence" in step:
        items = _sequence({key: filled(plain(each), scope) for key, each in step["withSequence"].items()})
    else:
        yield "", {}
        return
    if not isinstance(items, list) or len(items) > MOST_ITEMS:
        raise ExpressionError(f"the simulated platform runs loops over a list of at most {MOST_ITEMS:,} items")
    for index, item in enumerate(items):
        yield item_name(index, item), item_scope(item)


def is_loop(step: Spec) -> bool:
    """Whether a step runs once for each of some items."""
    return any(key in step for key in ("withItems", "withParam", "withSequence"))


def _sequence(given: Mapping[str, str]) -> list[str]:
    """The items of a ``withSequence``: upwards or downwards, both ends included."""
    start = _whole(given.get("start") or "0")
    if not given.get("end") and not given.get("count"):
        raise ExpressionError("neither end nor count was specified in withSequence")
    end = _whole(given["end"]) if given.get("end") else start + _whole(given["count"]) - 1
    if not given.get("end") and end == start - 1:
        return []
    if abs(end - start) >= MOST_ITEMS:
        raise ExpressionError(f"the simulated platform runs loops over a list of at most {MOST_ITEMS:,} items")
    shown = given.get("format") or "%d"
    if not is_format(shown):
        raise ExpressionError(f"the simulated platform can't format a number as '{shown}'")
    return [shown % number for number in range(start, end + 1 if end >= start else end - 1, 1 if end >= start else -1)]


def is_format(text: str) -> bool:
    """Whether a text formats one whole number, to Go as to Python."""
    return _FORMAT.fullmatch(text) is not None


def _whole(text: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        raise ExpressionError(f'strconv.Atoi: parsing "{text[:40]}": invalid syntax')
    return int(text)


def outputs_of(
    template: Spec, scope: Mapping[str, str], written: Callable[[str], str] | None = None
) -> Iterator[tuple[str, str]]:
    """Name and value of each output parameter; `written` gives what a container wrote for one, if a container did.

    Raises:
        ExpressionError: one has no value.
    """
    for parameter in (template.get("outputs") or {}).get("parameters") or ():
        name, source = str(parameter["name"]), parameter.get("valueFrom") or {}
        if "value" in parameter:
            yield name, value_of(parameter["value"], scope)
            continue
        try:
            if source.get("parameter"):
                yield name, filled(str(source["parameter"]), scope)
                continue
            if source.get("expression"):
                yield name, as_text(evaluated(str(source["expression"]), scope))
                continue
        except ExpressionError:
            if "default" not in source:
                raise
        yield (
            name,
            plain(source.get("default", ""))
            if "default" in source or written is None
            else written(f"parameters.{name}"),
        )


def value_of(value: Any, scope: Mapping[str, str]) -> str:
    """A parameter's value, its tags replaced; what only a real platform can evaluate becomes a number."""
    return str(filled(plain(value), scope, unknown="1"))


def seconds(text: str | float) -> float:
    """A duration, as ``20`` or ``1m30s``."""
    return float(text) if not isinstance(text, str) or text.isdigit() else parse_duration(text)
