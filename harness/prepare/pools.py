"""The pool as a parameter of the run: one uploaded pipeline serves a sweep over pools.

The parameter is a JSON object, the pods' node selector: ``{"agentpool": "spot"}``. KFP's driver reads it from the
inputs of the pipeline that a step is in (backend/src/v2/driver/k8s.go), so each nested pipeline passes it on.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from harness.model.errors import ConfigError
from harness.prepare.settings import Placement
from harness.prepare.steps import Document, Task, tasks_of

SELECTOR = "nodeSelectorJson"
_FIELDS = (SELECTOR, "tolerationJson", "nodeAffinityJson")
_TYPE = "STRUCT"
_PASSED_ON = "pipelinechannel--"  # how the SDK names a parameter in conditions and loops


def parametrize(spec: Document, platform: Mapping[str, Any], steps: Sequence[Task], wanted: Placement) -> None:
    """Give the pipeline, and each nested pipeline with one of the steps, the parameter `wanted.parameter`.

    Its default is the steps' own selector with the labels of `wanted`.

    Args:
        spec: the PipelineSpec, changed in place.
        platform: the settings by executor.
        steps: whose pods it places.
        wanted: placement of the steps.

    Raises:
        ConfigError: the pipeline has an input of this name for something else, or the steps' selectors differ.
    """
    name, inputs = wanted.parameter, _inputs(spec["root"])
    given = inputs.get(name)
    if given is not None and given.get("parameterType") != _TYPE:
        raise ConfigError(
            f"--pool-parameter: the pipeline's input '{name}' is a {given.get('parameterType')}, not a {_TYPE}",
            "give another name",
        )
    if given is None or "defaultValue" in given:
        default = _default(given, [platform.get(step.label, {}) for step in steps], wanted)
        inputs[name] = {**(given or {}), "defaultValue": default, "isOptional": True, "parameterType": _TYPE}
    _pass_on(spec, name, {step.dag for step in steps})


def placing(platform: Mapping[str, Any]) -> frozenset[str]:
    """The parameters of the pipeline that place pods.

    Args:
        platform: the settings by executor.
    """
    return frozenset(
        field[name]["componentInputParameter"].removeprefix(_PASSED_ON)
        for each in platform.values()
        for field in (each.get("nodeSelector", {}), *each.get("tolerations", ()), *each.get("nodeAffinity", ()))
        for name in _FIELDS
        if "componentInputParameter" in field.get(name, {})
    )


def _inputs(component: Document) -> Document:
    found: Document = component.setdefault("inputDefinitions", {}).setdefault("parameters", {})
    return found


def _default(
    given: Mapping[str, Any] | None, platforms: Sequence[Mapping[str, Any]], wanted: Placement
) -> dict[str, str]:
    """The selector that all have once the labels of `wanted` are set."""
    own = [] if given is None else [given["defaultValue"]]
    selectors = [platform.get("nodeSelector", {}) for platform in platforms]
    own += [selector.get("labels", {}) for selector in selectors if SELECTOR not in selector]
    found: list[dict[str, str]] = []
    for labels in own:
        if (selector := labels | dict(wanted.selector)) not in found:
            found.append(selector)
    if len(found) > 1:
        shown = " and ".join(", ".join(f"{key}={value}" for key, value in each.items()) or "none" for each in found)
        raise ConfigError(
            f"--pool-parameter: the steps have different node selectors: {shown}",
            "choose steps that share a pool with --task, or set the labels in which they differ with --node-selector",
        )
    return found[0] if found else dict(wanted.selector)


def _pass_on(spec: Document, name: str, pipelines: Collection[str]) -> None:
    """Let these components, and all that contain them, take the parameter from the pipeline around them."""
    tasks = list(tasks_of(spec))
    takers: set[str] = set()
    open_ = {pipeline for pipeline in pipelines if pipeline}
    while open_:
        takers |= open_
        around = {task.dag for task in tasks if _component(task) in open_}
        open_ = {each for each in around if each} - takers
    source = {"componentInputParameter": name}
    for taker in takers:
        callers = [task for task in tasks if _component(task) == taker]
        inputs = _inputs(spec["components"][taker])
        if name in inputs and any(_passed(task).get(name) != source for task in callers):
            raise ConfigError(
                f"--pool-parameter: the nested pipeline {taker} has an input '{name}' of its own", "give another name"
            )
        inputs.setdefault(name, {"parameterType": _TYPE})
        for task in callers:
            _passed(task)[name] = dict(source)


def _component(task: Task) -> str:
    return str(task.spec.get("componentRef", {}).get("name", ""))


def _passed(task: Task) -> Document:
    found: Document = task.spec.setdefault("inputs", {}).setdefault("parameters", {})
    return found
