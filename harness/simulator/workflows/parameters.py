"""What a task's parameters, condition and placement depend on, as far as that is known before it runs.

Conditions are the part of CEL that KFP's compiler writes for ``dsl.If``, ``Elif`` and ``Else``:
``inputs.parameter_values['x'] == 'y'``, the other comparisons, ``int(…)``, ``double(…)``, ``string(…)``, ``bool(…)``,
``!``, ``&&``, ``||`` and parentheses (https://github.com/google/cel-spec). A comparison with an unknown value
is drawn at random: within a run, the same comparison of the same value always has the same outcome, so that exactly
one branch of an ``If``/``Elif``/``Else`` is taken.

Placement is that of the ``…Json`` fields of the Kubernetes platform spec. As in KFP's driver
(backend/src/v2/driver/k8s.go): a parameter is one of the pipeline that the task is in, and one that is optional and not
given sets nothing.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from harness.model.errors import ConfigError
from harness.simulator.engine.expressions import parsed

_PARAMETERS = "inputs.parameter_values."
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


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a task; `names` are the sources of its parameters."""

    text: str
    names: Mapping[str, Source]

    def holds(self, read: Read, draw: Draw) -> bool:
        """Whether the task runs; an expression that cannot be parsed is drawn as a whole."""
        try:
            return bool(parsed(self.text)(_Reading(self.names, read, draw)))
        except (LookupError, TypeError, ValueError):
            return draw((self.text, tuple(self.names.values())))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the names in a condition refer to; see `harness.simulator.engine.expressions.Scope`."""

    names: Mapping[str, Source]
    read: Read
    draw: Draw

    def value(self, path: str) -> object:
        return self.read(self.names[path.removeprefix(_PARAMETERS)])

    def unsettled(self, comparison: str) -> bool:
        # The sources distinguish equal names in different pipelines.
        named = (source for name, source in sorted(self.names.items()) if f"'{name}'" in comparison)
        return self.draw((comparison, tuple(named)))


Spec = Mapping[str, Any]
_UNKNOWN = -1  # the step of an output without a known step


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


_SELECTOR, _TOLERATION, _AFFINITY = "nodeSelectorJson", "tolerationJson", "nodeAffinityJson"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def has_parameters(platform: Spec) -> bool:
    """Whether the settings of an executor depend on parameters."""
    fields = (platform.get("nodeSelector", {}), *platform.get("tolerations", ()), *platform.get("nodeAffinity", ()))
    return any(name in field for field in fields for name in (_SELECTOR, _TOLERATION, _AFFINITY))


def placed(platform: Spec, scope: Mapping[str, Source], given: Mapping[str, object]) -> Spec:
    """The settings of an executor with the parameters' values.

    Args:
        platform: the settings.
        scope: the sources of the parameters of the task's pipeline.
        given: the parameters of the run.

    Raises:
        ConfigError: a value has the wrong form, or is a step's output, which is not known before the run.
    """
    if not has_parameters(platform):
        return platform

    def read(field: str, holder: Spec) -> Any:
        try:
            return value_of(holder[field], scope, given)
        except LookupError as error:
            raise ConfigError(f"{field}: the simulated platform does not know its value before the run") from error

    tolerations = [
        inner
        for toleration in platform.get("tolerations", ())
        for inner in (_tolerations(read(_TOLERATION, toleration)) if _TOLERATION in toleration else (toleration,))
    ]
    affinity = [
        term
        for each in platform.get("nodeAffinity", ())
        for term in (_terms(read(_AFFINITY, each)) if _AFFINITY in each else (each,))
    ]
    selector = platform.get("nodeSelector", {})
    if _SELECTOR in selector:
        selector = {"labels": _labels(read(_SELECTOR, selector))}
    return {**platform, "nodeSelector": selector, "tolerations": tolerations, "nodeAffinity": affinity}


def _labels(value: Any) -> Spec:
    if not isinstance(value or {}, dict) or not all(isinstance(each, str) for each in (value or {}).values()):
        raise ConfigError(f"{_SELECTOR}: {value} does not map labels to texts", 'for example {"agentpool": "spot"}')
    return value or {}


def _tolerations(value: Any) -> list[Spec]:
    """Of one toleration, or of a list."""
    found = [value] if isinstance(value, dict) else value or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ConfigError(
            f"{_TOLERATION}: {value} is no toleration", 'for example {"key": "sku", "operator": "Exists"}'
        )
    return [each for each in found if each]


def _terms(value: Any) -> Iterator[Spec]:
    """The terms of a pod's node affinity in the form of the platform spec; those with a weight are preferred."""
    try:
        yield from ((value or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
        for each in (value or {}).get(_PREFERRED) or ():
            yield {"weight": each["weight"], **each["preference"]}
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(f"{_AFFINITY}: {value} is no node affinity", "write it as in the spec of a pod") from error
