"""DAGs: each task begins when those that it depends on have ended as it demands."""

from collections.abc import Mapping

from harness.simulator.argo.expressions import filled, is_met
from harness.simulator.argo.fields import (
    dependencies,
    fails_fast,
    has_failed,
    is_loop,
    items_of,
    outputs_of,
    runs_after_failure,
)
from harness.simulator.argo.nodes import BAD, DAEMONED, ERROR, FAILED, OMITTED, SKIPPED, SUCCEEDED, TASK_GROUP, Node
from harness.simulator.argo.scopes import results_of
from harness.simulator.argo.templates import Spec
from harness.simulator.argo.work import Work
from harness.simulator.workflows.graph import in_order

_NO_ITEMS = "Skipped, empty params"
_UNMET = "omitted: depends condition not met"


def advance_dag(work: Work, node: Node, template: Spec, scope: dict[str, str]) -> None:
    """Begin the tasks of a DAG that are due; ends it after the last one, or after a failure."""
    tasks = _targets(_tasks(work, node), template["dag"], scope)
    nodes: dict[str, Node] = {}
    for task in tasks:
        ended = _advance_task(work, node, task, nodes, scope, template["dag"])
        if ended is not None and work.hooks_over("tasks", task, ended, scope) and ended.done:
            nodes[task["name"]] = ended
            scope |= results_of(work.run, "tasks", task["name"], ended.name)
    going = [each for each in work.run.nodes.values() if each.boundary == node.name and not each.done]
    bad = [task for task in tasks if has_failed(nodes.get(task["name"]), task)]
    if len(nodes) == len(tasks) or (bad and not going and fails_fast(template["dag"])):
        node.outputs = dict(outputs_of(template, scope)) if len(nodes) == len(tasks) and not bad else {}
        work.end(node, _phase(tasks, nodes, bad))


def _tasks(work: Work, node: Node) -> list[Spec]:
    """The tasks of a DAG, each after those that it depends on."""
    known = work.run.in_order.get(node.template)
    if known is None:
        tasks = {str(task["name"]): task for task in work.run.templates[node.template]["dag"]["tasks"]}
        names = in_order(tasks, lambda name: dependencies(tasks[name])[1])
        known = work.run.in_order[node.template] = [tasks[name] for name in names]
    return known


def _targets(all_tasks: list[Spec], dag: Spec, scope: Mapping[str, str]) -> list[Spec]:
    """The tasks of a DAG: with a ``target`` those that it names, and those that these need."""
    wanted = filled(str(dag.get("target") or ""), scope).split()
    if not wanted:
        return all_tasks
    tasks: dict[str, Spec] = {task["name"]: task for task in all_tasks}
    needed: dict[str, None] = {}
    while wanted:
        name = wanted.pop()
        if name in tasks and name not in needed:
            needed[name] = None
            wanted += dependencies(tasks[name])[1]
    return [task for name, task in tasks.items() if name in needed]


def _phase(tasks: list[Spec], found: Mapping[str, Node], bad: list[Spec]) -> str:
    """Failed if a task at the end of a branch failed, or was never reached because of one."""
    needed = {name for task in tasks for name in dependencies(task)[1]}
    last = [found.get(task["name"]) for task in tasks if task["name"] not in needed]
    if not bad or all(node is not None and node.outcome in {SUCCEEDED, SKIPPED, DAEMONED} for node in last):
        return SUCCEEDED
    phases = {found[task["name"]].phase for task in bad}
    return ERROR if phases == {ERROR} else FAILED


def _advance_task(
    work: Work, dag: Node, task: Spec, found: Mapping[str, Node], scope: Mapping[str, str], of: Spec
) -> Node | None:
    """The node of a task: of all its items, where it has any; none before it is due."""
    name = f"{dag.name}.{task['name']}"
    existing = work.run.nodes.get(name)
    if existing is not None and existing.done:
        return existing
    condition, needs = dependencies(task)
    if any(need not in found for need in needs):
        return None
    node: Node | None
    parents = [last for need in needs for last in work.last_of(work.run.nodes[f"{dag.name}.{need}"])] or [dag]
    if existing is None and condition and not is_met(condition, {key: each.outcome for key, each in found.items()}):
        node = work.skipped(name, task, dag.name, OMITTED, _UNMET)
        work.link(parents, node)
        return node
    failed = any(each.phase in BAD for each in found.values())
    if existing is None and failed and fails_fast(of) and not runs_after_failure(condition):
        return None
    node = _advance_items(work, name, task, dag, scope) if is_loop(task) else work.call(task, name, dag.name, scope)
    work.link(parents, node)
    return node


def _advance_items(work: Work, name: str, task: Spec, dag: Node, scope: Mapping[str, str]) -> Node:
    items = list(items_of(task, scope))
    if not items:
        return work.skipped(name, task, dag.name, SKIPPED, _NO_ITEMS)
    group = work.run.nodes.get(name) or work.group(name, TASK_GROUP, dag, task)
    children = []
    for suffix, extra in items:
        child = work.call(task, f"{name}{suffix}", dag.name, {**scope, **extra})
        children.append(child)
        work.link([group], child)
    if all(child is not None and child.done for child in children):
        bad = [child for child in children if child is not None and child.phase in BAD]
        work.end(group, bad[0].phase if bad else SUCCEEDED)
    return group
