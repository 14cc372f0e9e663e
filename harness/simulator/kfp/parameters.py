"""Where the parameters of a pipeline's tasks come from, and what is known of them before anything runs."""

import json
import re
from collections.abc import Mapping
from typing import Any

from harness.simulator.kfp.conditions import Computed, Given, Known, Source

Spec = Mapping[str, Any]
_UNKNOWN = -1  # the step of an output that no step is known to have


def dependencies(task: Spec) -> list[str]:
    """The tasks that come before a task: those it names, and those whose outputs it reads."""
    inputs: Spec = task.get("inputs", {})
    given = [*inputs.get("parameters", {}).values(), *inputs.get("artifacts", {}).values()]
    read = (each.get("taskOutputParameter") or each.get("taskOutputArtifact") for each in given)
    return list(dict.fromkeys((*task.get("dependentTasks", ()), *(each["producerTask"] for each in read if each))))


def inner_scope(
    task: Spec, types: Spec, outputs: Mapping[str, int], scope: Mapping[str, Source], given: Mapping[str, object]
) -> dict[str, Source]:
    """Where a task's parameters come from.

    Args:
        task: with its inputs.
        types: the component's input parameters.
        outputs: for each task that may be read, the step that has its outputs.
        scope: the same of the pipeline it stands in.
        given: the run's parameters, as far as they are known.
    """
    inner: dict[str, Source] = {}
    for name, says in task.get("inputs", {}).get("parameters", {}).items():
        produced: Spec = says.get("taskOutputParameter", {})
        source: Source
        if "runtimeValue" in says:
            source = Known(says["runtimeValue"].get("constant"))
        elif produced:
            source = Computed(outputs[produced["producerTask"]], str(produced.get("outputParameterKey")))
        elif says.get("componentInputParameter") in scope:
            source = scope[says["componentInputParameter"]]
        else:
            continue
        if "parameterExpressionSelector" in says:
            source = _selected(source, str(says["parameterExpressionSelector"]), given)
        if isinstance(source, Known) and types.get(name, {}).get("parameterType") == "STRING":
            source = Known(_text(source.value))
        inner[name] = source
    return inner


def items(task: Spec, scope: Mapping[str, Source], given: Mapping[str, object]) -> list[Any] | None:
    """What a loop runs over; none where only an earlier step knows."""
    says: Spec = task.get("parameterIterator", {}).get("items", {})
    try:
        found = says["raw"] if "raw" in says else _now(scope[str(says.get("inputParameter"))], given)
        if isinstance(found, str):
            found = json.loads(found)
    except (LookupError, ValueError):
        return None
    return found if isinstance(found, list) else None


def _now(source: Source, given: Mapping[str, object]) -> Any:
    """A value that is known before anything runs; a LookupError where it is not."""
    if isinstance(source, Known):
        return source.value
    if isinstance(source, Given):
        return given[source.name]
    raise LookupError


def _selected(source: Source, selector: str, given: Mapping[str, object]) -> Source:
    """A part of a loop's item: ``parseJson(string_value)["a"]``."""
    try:
        value = _now(source, given)
        for key in re.findall(r'\["([^"]*)"\]', selector):
            value = (json.loads(value) if isinstance(value, str) else value)[key]
    except (LookupError, TypeError, ValueError):
        step = source.step if isinstance(source, Computed) else _UNKNOWN
        return Computed(step, f"{source} {selector}")
    return Known(value)


def _text(value: Any) -> str:
    """A value as a parameter of the type STRING: numbers without a point where they are whole."""
    if isinstance(value, str):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value, default=str)
