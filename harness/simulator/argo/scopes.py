"""What the tags of a template can name: ``{{workflow.name}}``, ``{{inputs.parameters.x}}``, ``{{steps.a.status}}``."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.errors import ConfigError
from harness.reading import parse_json
from harness.simulator.argo.expressions import ExpressionError
from harness.simulator.argo.fields import value_of
from harness.simulator.argo.nodes import BAD, OMITTED, SKIPPED, Node, Run
from harness.simulator.argo.templates import Spec

_OF_NODES = re.compile(r"\{\{(steps|tasks)\.")
_NO_ADDRESS = "10.244.0.1"


def globals_of(run: Run) -> dict[str, str]:
    """What all tags of a workflow can name."""
    if not run.known:
        metadata = run.manifest["metadata"]
        run.known |= {"workflow.name": run.name, "workflow.namespace": run.namespace, "workflow.uid": run.name}
        run.known |= {"workflow.serviceAccountName": str(run.spec.get("serviceAccountName") or "default")}
        run.known |= {"workflow.mainEntrypoint": str(run.spec.get("entrypoint")), "workflow.failures": "[]"}
        run.known |= {"workflow.priority": str(run.priority), "workflow.duration": "0"}
        run.known |= {f"workflow.parameters.{key}": value for key, value in run.parameters.items()}
        listed = [{"name": key, "value": value} for key, value in run.parameters.items()]
        run.known["workflow.parameters"] = json.dumps(listed)
        for kind in ("labels", "annotations"):
            run.known |= {f"workflow.{kind}.{key}": str(value) for key, value in (metadata.get(kind) or {}).items()}
    root = run.nodes.get(run.name)
    status = {"workflow.status": root.phase} if root is not None and root.over else {}
    return {**run.known, **status}


def scope_of(run: Run, template: Spec, values: Mapping[str, str], *, inner: bool) -> dict[str, str]:
    """What the tags of a template can name, called with `values`; one that is not `inner` takes the workflow's, too.

    Raises:
        ExpressionError: an input has no value.
    """
    scope = globals_of(run)
    for parameter in (template.get("inputs") or {}).get("parameters") or ():
        name = str(parameter["name"])
        value = values.get(name, parameter.get("value", parameter.get("default")))
        if value is None and parameter.get("valueFrom"):
            value = run.configured(parameter["valueFrom"])
        if value is None and not inner:
            value = run.parameters.get(name)
        if value is None:
            raise ExpressionError(f"inputs.parameters.{name} was not supplied")
        scope[f"inputs.parameters.{name}"] = value_of(value, scope)
    return scope


def results_of(run: Run, kind: str, task: str, node: str) -> Mapping[str, str]:
    """What later steps or tasks (`kind`) can read of one whose node has ended."""
    found, own = run.nodes.get(node), f"{kind}.{task}"
    if found is not None and found.results is not None:
        return found.results
    known: dict[str, str] = {}
    if found is not None:
        known = {
            f"{own}.status": found.phase, f"{own}.name": found.name, f"{own}.id": run.id_of(found.name),
            f"{own}.ip": _NO_ADDRESS, f"{own}.startedAt": f"{found.started:.0f}",
            f"{own}.finishedAt": f"{found.finished or found.started:.0f}", f"{own}.hostNodeName": found.host,
            **{f"{own}.outputs.{name}": value for name, value in _outputs(found)},
        }  # fmt: skip
        known[f"{own}.exitCode"] = known.get(f"{own}.outputs.exitCode", "0")
    items = [item for item in _items(run, found, node) if item.phase not in {SKIPPED, OMITTED}]
    known |= _together(own, items) if items else {}
    if found is not None and found.over:  # it stays as it is
        found.results = known
    return known


def _outputs(node: Node) -> Iterator[tuple[str, str]]:
    for name, value in node.outputs.items():
        yield f"parameters.{name}", value
    if node.result is not None:
        yield "result", node.result
    if node.phase in BAD or node.pod is not None:
        yield "exitCode", str(node.pod.exit_code if node.pod is not None else 1)


def _items(run: Run, group: Node | None, name: str) -> list[Node]:
    """The nodes of a loop's items: of a task they have a group, of a step only names."""
    begin = f"{name}("
    if group is None:
        around = run.nodes.get(name.rpartition(".")[0])
        return [
            run.nodes[child] for child in (around.children if around is not None else ()) if child.startswith(begin)
        ]
    return (
        [run.nodes[child] for child in group.children if child.startswith(begin)] if group.type == "TaskGroup" else []
    )


def _together(own: str, items: list[Node]) -> dict[str, str]:
    """The outputs of all items, as lists."""
    names = dict.fromkeys(name for item in items for name in item.outputs)
    known = {f"{own}.outputs.parameters": json.dumps([item.outputs for item in items])}
    for name in names:
        known[f"{own}.outputs.parameters.{name}"] = json.dumps([item.outputs.get(name, "") for item in items])
    results = [_parsed(item.result) for item in items if item.result is not None]
    return known | ({f"{own}.outputs.result": json.dumps(results)} if results else {})


def _parsed(text: str) -> Any:
    """A result as an item of a list: as JSON, if it is that."""
    try:
        return parse_json(text, "a result")
    except ConfigError:
        return text


def arguments_of(call: Spec, scope: Mapping[str, str], template: Spec | None = None) -> dict[str, str]:
    """The values that a step, a task or a hook gives to the parameters of its template.

    One that a skipped node did not write is left out if the `template` has a value of its own.

    Raises:
        ExpressionError: a value can't be found.
    """
    inputs = (template or {}).get("inputs") or {}
    own = {str(p["name"]) for p in inputs.get("parameters") or () if "value" in p or "default" in p}
    found: dict[str, str] = {}
    for parameter in (call.get("arguments") or {}).get("parameters") or ():
        if "value" in parameter:
            try:
                found[str(parameter["name"])] = value_of(parameter["value"], scope)
            except ExpressionError as error:
                if str(parameter["name"]) not in own or not _OF_NODES.search(str(error)):
                    raise
    return found
