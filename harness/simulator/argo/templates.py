"""Which template a step, a task or a hook calls: one of its own workflow, or one in the cluster (``templateRef``).

A template is known by a key: its name in the workflow, or ``namespaced/WORKFLOWTEMPLATE/NAME`` and
``cluster/CLUSTERWORKFLOWTEMPLATE/NAME``, as Argo writes it in ``status.storedTemplates``. What a template calls by name
is looked up where the template itself is from.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from harness.model.argo.manifest import over_template

Spec = Mapping[str, Any]
Find = Callable[
    [str, str], Spec | None
]  # of the scope (namespaced or cluster) and name: a specification, if there is one

LOCAL = ""
NAMESPACED, CLUSTER = "namespaced", "cluster"


def key_of(call: Spec, caller: str) -> str:
    """The key of the template that a step, task or hook of the template `caller` calls, or that it has ``inline``."""
    if call.get("inline"):
        return f"{caller}#{call['name']}"
    reference = call.get("templateRef")
    if reference:
        return f"{CLUSTER if reference.get('clusterScope') else NAMESPACED}/{reference['name']}/{reference['template']}"
    scope = scope_of(caller)
    return f"{scope}/{call['template']}" if scope else str(call["template"])


def scope_of(key: str) -> str:
    """Where a template is from: ``namespaced/NAME``, ``cluster/NAME``, or `LOCAL`."""
    return key.rpartition("/")[0]


def name_of(key: str) -> str:
    """The name of a template where it is from."""
    return key.rpartition("/")[2].rpartition("#")[2]


def missing(call: Spec) -> str:
    """What Argo says of a call whose template does not exist."""
    if reference := call.get("templateRef"):
        return f"template reference {reference['name']}.{reference['template']} not found"
    return f"template name '{call['template']}' undefined"


def calls_of(template: Spec) -> Iterator[Spec]:
    """The steps and tasks of a template, and their hooks."""
    for call in chain((template.get("dag") or {}).get("tasks") or (), *(template.get("steps") or ())):
        yield call
        yield from hooks_of(call).values()


def hooks_of(call: Spec) -> dict[str, Spec]:
    """The lifecycle hooks of a step, a task or a workflow by name; ``onExit`` is the older form of the hook `exit`."""
    hooks: dict[str, Spec] = dict(call.get("hooks") or {})
    if call.get("onExit"):
        hooks["exit"] = {"template": call["onExit"]}
    return hooks


def templates_of(spec: Spec, find: Find) -> dict[str, Spec]:
    """The templates of a workflow's specification by their keys, with those in the cluster that they call."""
    found: dict[str, Spec] = {str(each["name"]): each for each in spec.get("templates") or ()}
    callers = list(found)
    wanted = [key_of(each, LOCAL) for each in hooks_of(spec).values()]
    while callers or wanted:
        if callers:
            caller = callers.pop()
            for call in calls_of(found[caller]):
                key = key_of(call, caller)
                if call.get("inline") and key not in found:
                    found[key] = call["inline"]
                    callers.append(key)
                else:
                    wanted.append(key)
        for key in wanted:
            if key not in found and (template := _in_cluster(key, find)) is not None:
                found[key] = template
                callers.append(key)
        wanted = []
    return found


def whole(spec: Spec, find: Find) -> Spec:
    """A workflow's specification, over that of the template that it refers to if it does.

    Raises:
        LookupError: with the name of a template that does not exist.
    """
    reference = spec.get("workflowTemplateRef")
    if not reference:
        return spec
    template = find(CLUSTER if reference.get("clusterScope") else NAMESPACED, str(reference.get("name")))
    if template is None:
        raise LookupError(str(reference.get("name")))
    return over_template(spec, template)


def parameters_of(spec: Spec, configured: Callable[[Spec], str | None]) -> dict[str, str]:
    """The values of a workflow's own parameters; `configured` as for `Run`."""
    found = {}
    for parameter in (spec.get("arguments") or {}).get("parameters") or ():
        value = parameter.get("value", parameter.get("default"))
        if value is None and parameter.get("valueFrom"):
            value = configured(parameter["valueFrom"])
        found[str(parameter["name"])] = plain(value if value is not None else "")
    return found


def plain(value: Any) -> str:
    """A value as Argo writes it into a parameter."""
    return value if isinstance(value, str) else json.dumps(value)


def _in_cluster(key: str, find: Find) -> Spec | None:
    scope, _, place = scope_of(key).partition("/")
    spec = find(scope, place) if scope else None
    return next(
        (template for template in (spec or {}).get("templates") or () if template["name"] == name_of(key)), None
    )
