"""What the tags of a template can name: ``{{workflow.name}}``, ``{{inputs.parameters.x}}``, ``{{steps.a.status}}``."""

from collections.abc import Mapping

from harness.simulator.argo.expressions import ExpressionError
from harness.simulator.argo.fields import value_of
from harness.simulator.argo.nodes import Run
from harness.simulator.argo.templates import Spec, parameters_of


def globals_of(run: Run) -> dict[str, str]:
    """What all tags of a workflow can name."""
    scope = {"workflow.name": run.name, "workflow.namespace": run.namespace, "workflow.uid": run.name}
    scope |= {"workflow.serviceAccountName": str(run.spec.get("serviceAccountName") or "default")}
    scope |= {f"workflow.parameters.{key}": value for key, value in parameters_of(run.spec).items()}
    if run.name in run.nodes and run.nodes[run.name].over:
        scope["workflow.status"] = run.nodes[run.name].phase
    return scope


def scope_of(run: Run, template: Spec, values: Mapping[str, str], *, inner: bool) -> dict[str, str]:
    """What the tags of a template can name, called with `values`; one that is not `inner` takes the workflow's, too.

    Raises:
        ExpressionError: an input has no value.
    """
    scope = globals_of(run)
    for each in (template.get("inputs") or {}).get("parameters") or ():
        name = str(each["name"])
        value = values.get(name, each.get("value", each.get("default")))
        if value is None and not inner:
            value = parameters_of(run.spec).get(name)
        if value is None:
            raise ExpressionError(f"inputs.parameters.{name} was not supplied")
        scope[f"inputs.parameters.{name}"] = value_of(value, scope)
    return scope


def results_of(run: Run, kind: str, task: str, node: str) -> dict[str, str]:
    """What later steps or tasks (`kind`) can read of one whose node has ended."""
    found = run.nodes.get(node)
    if found is None:  # of a loop in a step group: its items have nodes of their own
        return {}
    own = f"{kind}.{task}"
    outputs = {f"{own}.outputs.parameters.{name}": value for name, value in found.outputs.items()}
    return {f"{own}.status": found.phase, f"{own}.name": found.name, **outputs}


def arguments_of(call: Spec, scope: Mapping[str, str]) -> dict[str, str]:
    """The values that a step, a task or a hook gives to the parameters of its template."""
    given = (call.get("arguments") or {}).get("parameters") or ()
    return {str(each["name"]): value_of(each.get("value"), scope) for each in given if "value" in each}
