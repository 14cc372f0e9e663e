"""The tasks in a run's JSON: one for each node of its workflow, groups and retry wrappers too, as of the last report.

The API server gives each node an id of its own, lists the tasks in the order of these ids, and names those that follow
a task by Argo's ids, under ``pod_name``. It adds to a task's history what a report shows, so that a state between two
reports is never seen.
"""

from collections.abc import Callable, Iterator
from hashlib import md5
from typing import Any
from uuid import UUID

from harness.simulator.kfp import workflow as phases
from harness.simulator.kfp.node_paths import node_id
from harness.simulator.kfp.nodes import POD, SKIP, Node, nodes_of
from harness.simulator.kfp.records import Run
from harness.simulator.kfp.templates import node_path
from harness.simulator.kfp.workflow import Workflow

Document = dict[str, Any]
NOT_OVER = "0001-01-01T00:00:00Z"
_STATES = {
    phases.SUCCEEDED: "SUCCEEDED",
    phases.SKIPPED: "SKIPPED",
    phases.OMITTED: "",  # KFP knows no such state
    phases.FAILED: "FAILED",
    phases.ERROR: "FAILED",
}


def task_details(run: Run, stamp: Callable[[float], str], *, wrapped: bool) -> list[Document]:
    """The tasks of a run; none before the first report of a workflow that the controller has taken up.

    `wrapped`: every node may be retried, see `nodes_of`.
    """
    workflow = run.workflow
    if workflow is None or not run.reports:
        return []
    known = run.reports[-1]
    nodes = {each.path: each for each in nodes_of(workflow, wrapped=wrapped) if each.started <= known}
    running = dict(_starts(workflow, wrapped=wrapped))
    tasks = [_task(run, workflow.name, node, nodes, running.get(node.path), stamp) for node in nodes.values()]
    return sorted(tasks, key=lambda task: str(task["task_id"]))


def _starts(workflow: Workflow, *, wrapped: bool) -> Iterator[tuple[str, float]]:
    """When the containers of pods started, by the path of the pod's node."""
    for plan, step in workflow.made():
        for number, pod in enumerate(step.pods, 1):
            if pod.started is not None:
                yield node_path(plan, number, wrapped=wrapped), pod.started


def _task(
    run: Run, workflow: str, node: Node, nodes: dict[str, Node], running: float | None, stamp: Callable[[float], str]
) -> Document:
    known = run.reports[-1]
    over = node.finished is not None and node.finished <= known
    history = list(_history(node, running, run.reports))
    task: Document = {
        "run_id": run.id,
        "task_id": str(UUID(bytes=md5(f"{run.id}{node.path}".encode(), usedforsecurity=False).digest(), version=4)),
        "display_name": node.name if node.within else workflow + node.path,
        "create_time": stamp(run.created),
        "start_time": stamp(node.started),
        "end_time": stamp(node.finished) if over and node.finished is not None else NOT_OVER,
        "state": history[-1][1],
        "state_history": [_set(update_time=stamp(at), state=state) for at, state in history],
        "child_tasks": [{"pod_name": node_id(workflow, path)} for path in node.children if path in nodes],
    }
    return _set(**task)


def _history(node: Node, running: float | None, reports: list[float]) -> Iterator[tuple[float, str]]:
    """The states that reports showed, each with the first report of it."""
    before = None
    for at in reports:
        state = _state(node, running, at) if at >= node.started else None
        if state is not None and state != before:
            yield at, state
            before = state


def _state(node: Node, running: float | None, at: float) -> str:
    if node.finished is not None and node.finished <= at:
        return _STATES[node.phase]
    if node.type == SKIP:
        return _STATES[node.phase]
    return "PENDING" if node.type == POD and (running is None or running > at) else "RUNNING"


def _set(**fields: object) -> Document:
    return {name: value for name, value in fields.items() if value not in ("", [])}
