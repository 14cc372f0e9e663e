"""Which fields of a workflow are modelled, and which have no bearing on times; others are refused by their names."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from harness.simulator.argo.cron import is_due
from harness.simulator.argo.expressions import ExpressionError, demand_expression
from harness.simulator.argo.fields import is_format, is_loop
from harness.simulator.argo.numbers import (
    duration_or_tag,
    label,
    name,
    number_or_tag,
    one_of,
    rank,
    whole,
    whole_or_text,
)
from harness.simulator.workflows.workflow import too_large

Spec = Mapping[str, Any]

_ANY = None  # whatever is in the field is carried along, or read elsewhere
_IGNORED = "ignored"  # Argo's field, without a bearing on times here
_PARAMETERS: Spec = {
    "parameters": [
        {
            "name": name, "value": _ANY, "default": _ANY, "enum": _ANY, "description": _ANY, "globalName": _ANY,
            "valueFrom": dict.fromkeys(
                ("default", "path", "parameter", "expression", "configMapKeyRef", "supplied", "event", "jqFilter",
                 "jsonPath")
            ),
        }
    ],
    "artifacts": _ANY,
}  # fmt: skip
_LOCK: Spec = {"name": name, "namespace": label, "database": _ANY}
_SEMAPHORE: Spec = {"configMapKeyRef": {"name": name, "key": name}, "namespace": label, "database": {"key": name}}
_SYNCHRONIZATION: Spec = {
    "mutex": _LOCK, "mutexes": [_LOCK], "semaphore": _SEMAPHORE, "semaphores": [_SEMAPHORE],
}  # fmt: skip
_RETRY: Spec = {
    "limit": number_or_tag, "retryPolicy": one_of("Always", "OnFailure", "OnError", "OnTransientError"),
    "backoff": {
        "duration": duration_or_tag, "factor": number_or_tag, "maxDuration": duration_or_tag, "cap": duration_or_tag,
    },
    "expression": _ANY, "affinity": _IGNORED,
}  # fmt: skip
_CONTAINER: Spec = dict.fromkeys(
    ("name", "image", "imagePullPolicy", "command", "args", "source", "env", "envFrom", "workingDir", "resources",
     "securityContext", "volumeMounts", "ports", "dependencies", "lifecycle", "livenessProbe", "mirrorVolumeMounts",
     "readinessProbe", "resizePolicy", "restartPolicy", "restartPolicyRules", "startupProbe", "stdin", "stdinOnce",
     "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices")
)  # fmt: skip
_CONTINUE: Spec = {"failed": _ANY, "error": _ANY}
_REFERENCE: Spec = {"name": name, "template": label, "clusterScope": _ANY}
_KINDS = ("container", "script", "containerSet", "resource", "data", "http", "plugin", "steps", "dag", "suspend")
_NEEDED = ("tasks",)  # beside names
_EVERY = "*"  # whatever a user calls it
_HOOKS: Spec = {
    _EVERY: {"template": label, "templateRef": _REFERENCE, "arguments": _PARAMETERS, "expression": _ANY},
}  # fmt: skip
_CALL: Spec = {
    "name": name, "template": label, "templateRef": _REFERENCE, "arguments": _PARAMETERS, "when": _ANY,
    "withItems": _ANY, "withParam": _ANY, "withSequence": dict.fromkeys(("start", "end", "count", "format")),
    "continueOn": _CONTINUE, "hooks": _HOOKS, "onExit": _ANY, "inline": _ANY,
}  # fmt: skip
_PLACEMENT: Spec = {
    "nodeSelector": _ANY, "tolerations": _ANY, "affinity": _IGNORED, "schedulerName": _IGNORED, "volumes": _ANY,
    "securityContext": _IGNORED, "serviceAccountName": _ANY, "automountServiceAccountToken": _IGNORED,
    "executor": _IGNORED, "hostAliases": _IGNORED, "podSpecPatch": _IGNORED, "metrics": _IGNORED,
    "resourceClaims": _IGNORED, "podResources": {"requests": _ANY, "limits": _ANY, "claims": _IGNORED},
}  # fmt: skip
_TEMPLATE: Spec = {
    **_PLACEMENT, "name": name, "inputs": _PARAMETERS, "outputs": {**_PARAMETERS, "result": _ANY, "exitCode": _ANY},
    "metadata": _ANY, "container": _CONTAINER, "script": _CONTAINER,
    "containerSet": {"containers": [_CONTAINER], "volumeMounts": _ANY, "retryStrategy": _IGNORED},
    "resource": _ANY, "data": _ANY, "http": _ANY, "plugin": _ANY, "initContainers": [_CONTAINER],
    "sidecars": [_CONTAINER], "daemon": _ANY, "steps": [[_CALL]], "dag": {
        "tasks": [{**_CALL, "dependencies": [label], "depends": label}], "failFast": _ANY, "target": _ANY,
    },
    "suspend": {"duration": duration_or_tag}, "parallelism": whole, "failFast": _ANY, "retryStrategy": _RETRY,
    "synchronization": _SYNCHRONIZATION, "activeDeadlineSeconds": whole_or_text, "timeout": duration_or_tag,
    "pendingTimeout": _IGNORED, "priorityClassName": _ANY, "archiveLocation": _IGNORED, "annotations": _IGNORED,
    "memoize": {"key": _ANY, "maxAge": _ANY, "cache": {"configMap": {"name": _ANY, "key": _ANY, "optional": _ANY}}},
}  # fmt: skip
_TEMPLATE_DEFAULTS: Spec = {key: check for key, check in _TEMPLATE.items() if key != "name"}
_SPEC: Spec = {
    **_PLACEMENT, "entrypoint": label, "arguments": _PARAMETERS, "templates": [_TEMPLATE], "onExit": _ANY,
    "hooks": _HOOKS, "parallelism": whole, "synchronization": _SYNCHRONIZATION, "ttlStrategy": dict.fromkeys(
        ("secondsAfterCompletion", "secondsAfterSuccess", "secondsAfterFailure"), whole
    ),
    "podGC": {
        "strategy": one_of("OnPodCompletion", "OnPodSuccess", "OnWorkflowCompletion", "OnWorkflowSuccess"),
        "deleteDelayDuration": _IGNORED, "labelSelector": _IGNORED,
    },
    "activeDeadlineSeconds": whole, "priority": rank, "retryStrategy": _RETRY,
    "podPriorityClassName": _ANY, "shutdown": one_of("Stop", "Terminate"),
    "workflowTemplateRef": {"name": name, "clusterScope": _ANY}, "podMetadata": _ANY, "workflowMetadata": _IGNORED,
    "archiveLogs": _IGNORED, "imagePullSecrets": _IGNORED, "artifactRepositoryRef": _IGNORED, "hostNetwork": _IGNORED,
    "dnsPolicy": _IGNORED, "dnsConfig": _IGNORED, "artifactGC": _IGNORED, "podDisruptionBudget": _IGNORED,
    "executorPlugins": _IGNORED, "volumeClaimTemplates": _IGNORED, "volumeClaimGC": _IGNORED,
    "templateDefaults": _TEMPLATE_DEFAULTS,
}  # fmt: skip


class UnsupportedError(Exception):
    """The simulated platform can't run a workflow because of `field`."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


_CRON: Spec = {
    "schedule": _ANY, "schedules": _ANY, "workflowSpec": _ANY, "suspend": _ANY, "concurrencyPolicy": _ANY,
    "successfulJobsHistoryLimit": _ANY, "failedJobsHistoryLimit": _ANY, "workflowMetadata": _ANY,
    **dict.fromkeys(("startingDeadlineSeconds", "stopStrategy", "timezone", "when"), _IGNORED),
}  # fmt: skip


def demand_supported(spec: Spec, place: str = "spec", ignore: Collection[str] = ()) -> list[str]:
    """Check every field of a workflow's specification, which is at `place` in its object.

    Args:
        spec: the specification.
        place: where it is.
        ignore: names of fields that the user wants ignored.

    Returns:
        The fields that are ignored: they have no bearing on times here.

    Raises:
        UnsupportedError: naming the first one that can't be run.
    """
    if why := too_large(spec):
        raise UnsupportedError(place, why)
    ignored: dict[str, None] = {}
    for field, value in _unknown(spec, _SPEC, place, ignored):
        if field.rpartition(".")[2] not in ignore:
            hint = f"--ignore {field.rpartition('.')[2]} runs the workflow without it"
            raise UnsupportedError(field, f"the simulated platform does not model it ({str(value)[:40]}); {hint}")
        ignored[field] = None
    _check_call(place, spec)
    for k, template in enumerate(spec.get("templates") or ()):
        _check_template(f"{place}.templates[{k}]", template)
    return list(ignored)


def demand_supported_cron(spec: Spec, ignore: Collection[str] = ()) -> list[str]:
    """Check every field of a CronWorkflow's specification; as `demand_supported`.

    Raises:
        UnsupportedError: naming the first one that can't be run.
    """
    ignored: dict[str, None] = {}
    for field, _ in _unknown(spec, _CRON, "spec", ignored):
        raise UnsupportedError(field, "the simulated platform does not model it")
    fields = [*ignored, *demand_supported(spec["workflowSpec"], "spec.workflowSpec", ignore)]
    for schedule in schedules_of(spec):
        try:
            is_due(schedule, datetime(2000, 1, 1, tzinfo=UTC))
        except ValueError as error:
            raise UnsupportedError("spec.schedule", str(error)) from error
    return fields


def schedules_of(spec: Spec) -> list[str]:
    """The schedules of a CronWorkflow, of which older versions of Argo have one."""
    return [str(each) for each in (*(spec.get("schedules") or ()), *filter(None, [spec.get("schedule")]))]


def _check_called(place: str, call: Spec) -> None:
    """Check that a step, a task or a hook names a template."""
    reference = call.get("templateRef")
    if reference is not None and not (reference.get("name") and reference.get("template")):
        raise UnsupportedError(f"{place}.templateRef", "it needs a name and a template")
    if sum(map(bool, (reference, call.get("template"), call.get("inline")))) != 1:
        raise UnsupportedError(f"{place}.template", "name one, here or in a templateRef, or write it inline")
    if call.get("inline"):
        _check_inline(f"{place}.inline", call["inline"])


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
    if len(kinds) != 1 or (template[kinds[0]] is None and kinds != ["suspend"]):
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


def _check_inline(place: str, template: Any) -> None:
    for field, value in _unknown({"name": "inline", **template}, _TEMPLATE, place, {}):
        raise UnsupportedError(field, f"the simulated platform does not model it ({str(value)[:40]})")
    _check_template(place, template)


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


def _unknown(value: Any, known: Any, place: str, ignored: dict[str, None]) -> Iterator[tuple[str, Any]]:
    """Fields that are not known, with their values; the known ones without a bearing are added to `ignored`."""
    if known is None:
        return
    if known is _IGNORED:
        ignored[place] = None
        return
    _demand_fit(value, known, place)
    if isinstance(known, list):
        for k, each in enumerate(value):
            yield from _unknown(each, known[0], f"{place}[{k}]", ignored)
        return
    for key, below in value.items() if isinstance(known, Mapping) else ():
        if key not in known and _EVERY not in known:
            yield f"{place}.{key}", below
        elif below is not None:
            yield from _unknown(below, known.get(key, known.get(_EVERY)), f"{place}.{key}", ignored)
