"""Steps: groups one after the other, the steps of a group at once."""

from collections.abc import Mapping

from harness.simulator.argo.fields import goes_on, items_of, outputs_of
from harness.simulator.argo.nodes import BAD, STEP_GROUP, SUCCEEDED, Node
from harness.simulator.argo.scopes import results_of
from harness.simulator.argo.templates import Spec
from harness.simulator.argo.work import Work


def advance_steps(work: Work, node: Node, template: Spec, scope: dict[str, str]) -> None:
    """Begin what is due in a Steps node, group after group; ends it after the last one."""
    for k, steps in enumerate(template["steps"]):
        name = f"{node.name}[{k}]"
        group = work.run.nodes.get(name)
        if group is None:
            group = work.group(name, STEP_GROUP, node)
            work.link(work.last_of(work.run.nodes[f"{node.name}[{k - 1}]"]) if k else [node], group)
        if not group.over:
            _advance_group(work, group, steps, scope)
        if not group.over:
            return
        if group.phase in BAD:
            work.end(node, group.phase, group.message)
            return
        for step in steps:
            scope |= results_of(work.run, "steps", step["name"], f"{name}.{step['name']}")
    node.outputs = dict(outputs_of(template, scope))
    work.end(node, SUCCEEDED)


def _advance_group(work: Work, group: Node, steps: list[Spec], scope: Mapping[str, str]) -> None:
    waits, failed = False, None
    for step in steps:
        for suffix, extra in items_of(step, scope):
            child = work.call(step, f"{group.name}.{step['name']}{suffix}", group.boundary, {**scope, **extra})
            work.link([group], child)
            done = child is not None and work.hooks_over("steps", step, child, {**scope, **extra}) and child.done
            waits = waits or not done
            if child is not None and child.phase in BAD and not goes_on(step, child.phase):
                failed = failed or child
    if waits:
        return
    if failed is None:
        work.end(group, SUCCEEDED)
    else:
        work.end(group, failed.phase, f"child '{work.run.id_of(failed.name)}' failed")
