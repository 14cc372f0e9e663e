"""Sources of the task parameters of a pipeline, and their values as far as they are known before it runs."""

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from harness.simulator.kfp.conditions import Computed, Given, Known, Source

Spec = Mapping[str, Any]
_UNKNOWN = -1  # stands for the step of an output without a known step


def dependencies(task: Spec) -> list[str]:
    """The dependencies of a task: tasks that it names, and tasks whose outputs it reads."""
    inputs: Spec = task.get("inputs", {})
    given = [*inputs.get("parameters", {}).values(), *inputs.get("artifacts", {}).values()]
    read = (each.get("taskOutputParameter") or each.get("taskOutputArtifact") for each in given)
    return list(dict.fromkeys((*task.get("dependentTasks", ()), *(each["producerTask"] for each in read if each))))


def inner_scope(
    task: Spec, types: Spec, outputs: Mapping[str, int], scope: Mapping[str, Source], given: Mapping[str, object]
) -> dict[str, Source]:
    """The sources of a task's parameters.

    Args:
        task: the task with its inputs.
        types: the component's input parameters.
        outputs: by task, the step that produces its outputs.
        scope: the sources in the enclosing pipeline.
        given: the known parameters of the run.
    """
    inner: dict[str, Source] = {}
    for name, spec in task.get("inputs", {}).get("parameters", {}).items():
        produced: Spec = spec.get("taskOutputParameter", {})
        source: Source
        if "runtimeValue" in spec:
            source = Known(spec["runtimeValue"].get("constant"))
        elif produced:
            source = Computed(outputs[produced["producerTask"]], str(produced.get("outputParameterKey")))
        elif spec.get("componentInputParameter") in scope:
            source = scope[spec["componentInputParameter"]]
        else:
            continue
        if "parameterExpressionSelector" in spec:
            source = _selected(source, str(spec["parameterExpressionSelector"]), given)
        if isinstance(source, Known) and types.get(name, {}).get("parameterType") == "STRING":
            source = Known(_text(source.value))
        inner[name] = source
    return inner


def value_of(spec: Spec, scope: Mapping[str, Source], given: Mapping[str, object]) -> Any:
    """The value of an input; none for an optional parameter of the run that was not given.

    Args:
        spec: a constant, or a parameter of the enclosing pipeline.
        scope: the sources in the enclosing pipeline.
        given: the parameters of the run.

    Raises:
        LookupError: a step computes it, or the pipeline has no such parameter.
    """
    if "runtimeValue" in spec:
        return spec["runtimeValue"].get("constant")
    source = scope[str(spec.get("componentInputParameter"))]
    return given.get(source.name) if isinstance(source, Given) else _now(source, given)


def items(task: Spec, scope: Mapping[str, Source], given: Mapping[str, object]) -> list[Any] | None:
    """The items of a loop; none if they are the output of a step."""
    spec: Spec = task.get("parameterIterator", {}).get("items", {})
    try:
        found = spec["raw"] if "raw" in spec else _now(scope[str(spec.get("inputParameter"))], given)
        if isinstance(found, str):
            found = orjson.loads(found)
    except (LookupError, ValueError):
        return None
    return found if isinstance(found, list) else None


def _now(source: Source, given: Mapping[str, object]) -> Any:
    """A value that is known before the run.

    Raises:
        LookupError: the value is unknown.
    """
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
            value = (orjson.loads(value) if isinstance(value, str) else value)[key]
    except (LookupError, TypeError, ValueError):
        step = source.step if isinstance(source, Computed) else _UNKNOWN
        return Computed(step, f"{source} {selector}")
    return Known(value)


def _text(value: Any) -> str:
    """A value as a parameter of type STRING; whole numbers have no decimal point."""
    if isinstance(value, str):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value, default=str)
