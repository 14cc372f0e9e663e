"""Tasks of a KFP run, from ``run_details.task_details``: one entry per node of the Argo workflow, in no order.

A task is two nodes: its driver (``train-driver``), and the node that runs the user's container, which Argo calls
``executor`` inside the node ``train``. Where nodes may be retried, each is an entry of its own besides one for each
attempt: ``executor``, ``executor(0)``, ``executor(1)``. When the driver finds the outputs in the cache, the executor is
SKIPPED and the run still ends as SUCCEEDED. A condition that does not hold is skipped as a group, under a name that the
compiler generated. What never began because something before it failed has no state.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from harness.model.argo.nodes import DRIVER_SUFFIX, parent_of_node, task_of_node
from harness.model.phases import SKIPPED
from harness.targets.kfp.task_nodes import Entry, task_nodes
from harness.targets.target import TaskDetail

_GROUP = re.compile(r"(condition|condition-branches|for-loop|exit-handler)-\d+")
_PIPELINE = "root"


def tasks_of(run: Mapping[str, Any]) -> tuple[TaskDetail, ...]:
    """The tasks in the API's answer for a run, by start: each attempt once, without the groups that contain tasks."""
    entries = [
        task_detail
        for task_detail in (run.get("run_details") or {}).get("task_details") or ()
        if task_detail.get("task_id")
    ]
    workflow, nodes = task_nodes(entries)
    named = list(_by_node(entries, workflow, nodes))
    driven = {name.removesuffix(DRIVER_SUFFIX) for _, name in named if name.endswith(DRIVER_SUFFIX)}
    tasks = [_task(entry, name, driven) for entry, name in named]
    return tuple(sorted(tasks, key=lambda task: (task.started_at, task.name, task.id)))


def _by_node(entries: Sequence[Entry], workflow: str, nodes: Mapping[int, str]) -> Iterator[tuple[Entry, str]]:
    """Entries of tasks with the tasks' names: the nodes that contain no other node."""
    containers = {parent_of_node(name) for name in nodes.values()}
    for k, node in nodes.items():
        name = task_of_node(node, workflow)
        outermost = parent_of_node(parent_of_node(node)) == workflow
        if node not in containers and not _GROUP.fullmatch(name) and not (outermost and name == _PIPELINE):
            yield entries[k], name


def _task(entry: Entry, name: str, driven: set[str]) -> TaskDetail:
    state = str(entry.get("state") or "")
    return TaskDetail(
        id=str(entry["task_id"]),
        name=name,
        state=state,
        started_at=instant(entry.get("start_time")) or instant(entry.get("create_time")) or 0,
        ended_at=instant(entry.get("end_time")),
        error=str((entry.get("error") or {}).get("message", "")),
        cached=state == SKIPPED and name in driven,
    )


def instant(text: str | None) -> int | None:
    """UTC ns of an RFC 3339 timestamp; None for the years 1 and 1970, which mean that it has not happened yet."""
    if not text:
        return None
    at = datetime.fromisoformat(text)
    seconds = int(at.timestamp()) if at.tzinfo else int(at.replace(tzinfo=UTC).timestamp())
    return seconds * 10**9 + at.microsecond * 1000 if seconds > 0 else None
