"""Tasks of a KFP run, from ``run_details.task_details``: one entry per node of the Argo workflow.

A task is two nodes: its driver (``train-driver``), and the node that runs the user's container, which Argo calls
``executor`` inside the node ``train``. When the driver finds the outputs in the cache, the executor is SKIPPED and the
run still ends as SUCCEEDED. A condition that does not hold is skipped as a group, under a name the compiler generated.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from harness.model.phases import SKIPPED
from harness.targets.target import TaskDetail

_EXECUTOR = re.compile(r"executor(\(\d+\))?")  # with (0), (1) … when retries are enabled
_GROUP = re.compile(r"(condition|condition-branches|for-loop|exit-handler)-\d+")
_DRIVER = "-driver"


def tasks_of(run: Mapping[str, Any]) -> tuple[TaskDetail, ...]:
    """The tasks in the API's answer for a run, without the workflow itself and the groups that contain tasks."""
    entries = [each for each in (run.get("run_details") or {}).get("task_details") or () if each.get("task_id")]
    parents = dict(_parents(entries))
    names = {str(each["task_id"]): str(each.get("display_name", "")) for each in entries}
    driven = {name.removesuffix(_DRIVER) for name in names.values() if name.endswith(_DRIVER)}
    # A node that contains an executor is represented by that executor.
    inner = {parents.get(str(each["task_id"]), "") for each in entries if _is_executor(each)}
    return tuple(
        _task(each, names.get(parents.get(str(each["task_id"]), ""), ""), driven)
        for each in entries
        if str(each["task_id"]) not in inner and _is_task(each, parents)
    )


def _parents(entries: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    """(task, parent) pairs: some versions name children in the parent, others the parent in the child."""
    for each in entries:
        parent = str(each["task_id"])
        for child in each.get("child_tasks") or ():
            yield str(child.get("task_id") or child.get("pod_name") or ""), parent
    for each in entries:
        if each.get("parent_task_id"):
            yield str(each["task_id"]), str(each["parent_task_id"])


def _is_executor(entry: Mapping[str, Any]) -> bool:
    return _EXECUTOR.fullmatch(str(entry.get("display_name", ""))) is not None


def _is_task(entry: Mapping[str, Any], parents: Mapping[str, str]) -> bool:
    return str(entry["task_id"]) in parents and not _GROUP.fullmatch(str(entry.get("display_name", "")))


def _task(entry: Mapping[str, Any], parent: str, driven: set[str]) -> TaskDetail:
    name, state = str(entry.get("display_name", "")), str(entry.get("state", ""))
    if _is_executor(entry) and parent:
        name = parent
    started_at = instant(entry.get("start_time")) or instant(entry.get("create_time")) or 0
    return TaskDetail(
        id=str(entry["task_id"]),
        name=name,
        state=state,
        started_at=started_at,
        ended_at=instant(entry.get("end_time")),
        error=str((entry.get("error") or {}).get("message", "")),
        cached=state == SKIPPED and name in driven,
    )


def instant(text: str | None) -> int | None:
    """UTC ns of an RFC 3339 timestamp; None for 1970, which KFP writes for events that have not happened yet."""
    if not text:
        return None
    at = datetime.fromisoformat(text)
    seconds = int(at.timestamp()) if at.tzinfo else int(at.replace(tzinfo=UTC).timestamp())
    return seconds * 10**9 + at.microsecond * 1000 if seconds > 0 else None
