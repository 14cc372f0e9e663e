"""Which fields of a workflow can be run; everything else is refused by its name, not ignored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from harness.simulator.argo.cron import is_due
from harness.simulator.argo.expressions import ExpressionError, demand_expression
from harness.simulator.argo.fields import is_format, is_loop
from harness.simulator.argo.numbers import duration, duration_or_tag, label, name, one_of, rank, whole, whole_or_text

Spec = Mapping[str, Any]

_ANY = None  # whatever is in the field is carried along or has no effect on times
_PARAMETERS: Spec = {
    "parameters": [
        {
            "name": name, "value": _ANY, "default": _ANY, "enum": _ANY, "description": _ANY, "globalName": _ANY,
            "valueFrom": {"default": _ANY, "path": _ANY, "parameter": _ANY},
        }
    ],
    "artifacts": _ANY,
}  # fmt: skip
_LOCK: Spec = {"name": name, "namespace": label}
_SEMAPHORE: Spec = {"configMapKeyRef": {"name": name, "key": name}, "namespace": label}
_SYNCHRONIZATION: Spec = {
    "mutex": _LOCK, "mutexes": [_LOCK], "semaphore": _SEMAPHORE, "semaphores": [_SEMAPHORE],
}  # fmt: skip
_RETRY: Spec = {
    "limit": whole_or_text, "retryPolicy": one_of("Always", "OnFailure", "OnError", "OnTransientError"),
    "backoff": {"duration": duration, "factor": whole_or_text, "maxDuration": duration},
}  # fmt: skip
_CONTAINER: Spec = dict.fromkeys(
    ("name", "image", "imagePullPolicy", "command", "args", "source", "env", "envFrom", "workingDir", "resources",
     "securityContext", "volumeMounts", "ports")
)  # fmt: skip
_CONTINUE: Spec = {"failed": _ANY, "error": _ANY}
_REFERENCE: Spec = {"name": name, "template": label, "clusterScope": _ANY}
_KINDS = ("container", "script", "steps", "dag", "suspend")
_NEEDED = ("tasks", "configMapKeyRef")  # beside names
_EVERY = "*"  # whatever a user calls it
_HOOKS: Spec = {
    _EVERY: {"template": label, "templateRef": _REFERENCE, "arguments": _PARAMETERS, "expression": _ANY},
}  # fmt: skip
_CALL: Spec = {
    "name": name, "template": label, "templateRef": _REFERENCE, "arguments": _PARAMETERS, "when": _ANY,
    "withItems": _ANY, "withParam": _ANY, "withSequence": dict.fromkeys(("start", "end", "count", "format")),
    "continueOn": _CONTINUE, "hooks": _HOOKS, "onExit": _ANY,
}  # fmt: skip
_TEMPLATE: Spec = {
    "name": name, "inputs": _PARAMETERS, "outputs": _PARAMETERS, "metadata": _ANY, "container": _CONTAINER,
    "script": _CONTAINER, "steps": [[_CALL]], "dag": {
        "tasks": [{**_CALL, "dependencies": [label], "depends": label}], "failFast": _ANY,
    },
    "suspend": {"duration": duration_or_tag}, "parallelism": whole, "retryStrategy": _RETRY,
    "synchronization": _SYNCHRONIZATION,
    "activeDeadlineSeconds": whole_or_text, "nodeSelector": _ANY, "tolerations": _ANY, "serviceAccountName": _ANY,
    "priorityClassName": _ANY, "volumes": _ANY, "securityContext": _ANY, "archiveLocation": _ANY,
    "memoize": {"key": _ANY, "maxAge": _ANY, "cache": {"configMap": {"name": _ANY, "key": _ANY, "optional": _ANY}}},
}  # fmt: skip
_SPEC: Spec = {
    "entrypoint": label, "arguments": _PARAMETERS, "templates": [_TEMPLATE], "onExit": _ANY, "hooks": _HOOKS,
    "parallelism": whole, "synchronization": _SYNCHRONIZATION, "ttlStrategy": dict.fromkeys(
        ("secondsAfterCompletion", "secondsAfterSuccess", "secondsAfterFailure"), whole
    ),
    "podGC": {
        "strategy": one_of("OnPodCompletion", "OnPodSuccess", "OnWorkflowCompletion", "OnWorkflowSuccess"),
    },
    "activeDeadlineSeconds": whole, "priority": rank,
    "podPriorityClassName": _ANY, "serviceAccountName": _ANY, "shutdown": one_of("Stop", "Terminate"),
    "workflowTemplateRef": {"name": name, "clusterScope": _ANY},
    "nodeSelector": _ANY, "tolerations": _ANY, "podMetadata": _ANY, "workflowMetadata": _ANY, "volumes": _ANY,
    "securityContext": _ANY, "archiveLogs": _ANY, "imagePullSecrets": _ANY, "artifactRepositoryRef": _ANY,
    "executor": _ANY, "automountServiceAccountToken": _ANY, "hostNetwork": _ANY, "dnsPolicy": _ANY,
    "templateDefaults": {"retryStrategy": _RETRY},
}  # fmt: skip
_NEEDS_CONTAINER = re.compile(r"\{\{-?\s*(=|(?:steps|tasks)\.[\w-]+\.(?:outputs\.(?:result|exitCode)|ip)\b)")


class UnsupportedError(Exception):
    """The simulated platform can't run a workflow because of `field`."""

    def __init__(self, field: str, why: str = "the simulated platform can't run it") -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


_CRON: Spec = {
    "schedule": _ANY, "schedules": _ANY, "workflowSpec": _ANY, "suspend": _ANY, "concurrencyPolicy": _ANY,
    "successfulJobsHistoryLimit": _ANY, "failedJobsHistoryLimit": _ANY, "workflowMetadata": _ANY,
}  # fmt: skip


def demand_supported(spec: Spec, place: str = "spec") -> None:
    """Check every field of a workflow's specification, which is at `place` in its object.

    Raises:
        UnsupportedError: naming the first one that can't be run.
    """
    _refuse_unknown(spec, _SPEC, place)
    for where, text in _texts(spec, place):
        if found := _NEEDS_CONTAINER.search(text):
            what = "an expression" if found[1] == "=" else found[1]
            raise UnsupportedError(where, f"{what} is known only to a real Argo")
    _check_call(place, spec)
    for k, template in enumerate(spec.get("templates") or ()):
        _check_template(f"{place}.templates[{k}]", template)


def demand_supported_cron(spec: Spec) -> None:
    """Check every field of a CronWorkflow's specification.

    Raises:
        UnsupportedError: naming the first one that can't be run.
    """
    _refuse_unknown(spec, _CRON, "spec")
    demand_supported(spec["workflowSpec"], "spec.workflowSpec")
    for schedule in schedules_of(spec):
        try:
            is_due(schedule, datetime(2000, 1, 1, tzinfo=UTC))
        except ValueError as error:
            raise UnsupportedError("spec.schedule", str(error)) from error


def schedules_of(spec: Spec) -> list[str]:
    """The schedules of a CronWorkflow, of which older versions of Argo have one."""
    return [str(each) for each in (*(spec.get("schedules") or ()), *filter(None, [spec.get("schedule")]))]


def _refuse_unknown(spec: Spec, known: Spec, place: str) -> None:
    for field, value in _unknown(spec, known, place):
        raise UnsupportedError(field, f"the simulated platform can't run it ({str(value)[:40]})")


def _check_called(place: str, call: Spec) -> None:
    """Check that a step, a task or a hook names a template."""
    reference = call.get("templateRef")
    if reference is not None and not (reference.get("name") and reference.get("template")):
        raise UnsupportedError(f"{place}.templateRef", "it needs a name and a template")
    if bool(reference) == bool(call.get("template")):
        raise UnsupportedError(f"{place}.template", "name one, here or in a templateRef")


def _check_call(place: str, call: Spec) -> None:
    """Check the hooks and the sequence of a step or task; of a workflow, the hooks."""
    hooks = call.get("hooks") or {}
    for key, hook in hooks.items():
        where, text = f"{place}.hooks.{key}", str(hook.get("expression") or "")
        _check_called(where, hook)
        if not text and key != "exit":
            raise UnsupportedError(f"{where}.expression", "a hook needs one, unless its name is exit")
        if text:
            try:
                demand_expression(text)
            except ExpressionError as error:
                raise UnsupportedError(f"{where}.expression", str(error)) from error
    sequence = call.get("withSequence") or {}
    shown = str(sequence.get("format") or "%d")
    if "{{" not in shown and not is_format(shown):
        raise UnsupportedError(f"{place}.withSequence.format", f"'{shown}' does not format one whole number")


def _check_template(place: str, template: Spec) -> None:
    kinds = [kind for kind in _KINDS if kind in template]
    if len(kinds) != 1 or template[kinds[0]] is None:
        raise UnsupportedError(place, f"a template is one of {', '.join(_KINDS)}")
    for k, task in enumerate((template.get("dag") or {}).get("tasks") or ()):
        where = f"{place}.dag.tasks[{k}]"
        _check_called(where, task)
        _check_call(where, task)
        if is_loop(task) and (task.get("hooks") or task.get("onExit")):
            raise UnsupportedError(f"{where}.hooks", "the simulated platform can't run hooks of a task with a loop")
    for k, group in enumerate(template.get("steps") or ()):
        for n, step in enumerate(group):
            _check_called(f"{place}.steps[{k}][{n}]", step)
            _check_call(f"{place}.steps[{k}][{n}]", step)
    suspended = template.get("suspend")
    if suspended is not None and not suspended.get("duration"):
        raise UnsupportedError(f"{place}.suspend", "without a duration it waits for a person")
    for k, each in enumerate((template.get("outputs") or {}).get("parameters") or ()):
        if "default" not in (each.get("valueFrom") or {}) and "value" not in each:
            raise UnsupportedError(
                f"{place}.outputs.parameters[{k}].valueFrom",
                "what a container writes is not known here: give the simulated platform a valueFrom.default",
            )


def _demand_fit(value: Any, known: Any, place: str) -> None:
    """Refuse a value that can't be what is `known` of its field, or lacks what it needs."""
    if callable(known):
        if why := known(value):
            raise UnsupportedError(place, str(why))
    elif isinstance(known, list):
        if not isinstance(value, list):
            raise UnsupportedError(place, "it is not a list")
    elif not isinstance(value, Mapping):
        raise UnsupportedError(place, "it is not an object")
    else:
        for field, check in known.items():
            if (check is name or field in _NEEDED) and value.get(field) is None:
                raise UnsupportedError(f"{place}.{field}", "it is missing")


def _unknown(value: Any, known: Any, place: str) -> Iterator[tuple[str, Any]]:
    if known is None:
        return
    _demand_fit(value, known, place)
    if isinstance(known, list):
        for k, each in enumerate(value):
            yield from _unknown(each, known[0], f"{place}[{k}]")
        return
    for key, below in value.items() if isinstance(known, Mapping) else ():
        if key not in known and _EVERY not in known:
            yield f"{place}.{key}", below
        elif below is not None:
            yield from _unknown(below, known.get(key, known.get(_EVERY)), f"{place}.{key}")


def _texts(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _texts(below, f"{place}.{key}")
    elif isinstance(value, Sequence):
        for k, below in enumerate(value):
            yield from _texts(below, f"{place}[{k}]")
