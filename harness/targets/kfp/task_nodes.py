"""Which node of the Argo workflow each entry of a run's task details describes.

An entry shows its node's display name (``executor(0)``) and the ids of the nodes that follow it, but neither its own
node's id nor its place. An id is the hash of a node's full name, so that names can be found from the workflow's own
entry downwards: of the names that can follow a known node, those with the given ids do. Which of several entries with
the same display name stands at a place shows in the ids that follow it. Entries that nothing follows are told apart by
their times; those with equal times are interchangeable.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model.argo.nodes import DRIVER_SUFFIX, node_id, parent_of_node, task_of_node
from harness.model.phases import SKIPPED
from harness.targets.answers import instant
from harness.targets.target import TaskDetail

Entry = Mapping[str, Any]
Candidates = Mapping[str, tuple[str, str]]  # full name and display name of a node, by its id


def task_nodes(entries: Sequence[Entry]) -> tuple[str, dict[int, str]]:
    """The workflow's name, and full node names by position in `entries`; "" and none where ids are not Argo's."""
    workflow = _workflow(entries)
    found = _Search(entries, workflow).names() if workflow else {}
    return (workflow, found) if len(found) > 1 else ("", {})


def _children(entry: Entry) -> list[str]:
    """The ids of what follows an entry."""
    return [str(child_task.get("pod_name") or "") for child_task in entry.get("child_tasks") or ()]


def _display_name(entry: Entry) -> str:
    """The last part of the node's name."""
    return str(entry.get("display_name") or "")


def _workflow(entries: Sequence[Entry]) -> str:
    """The workflow's name: the display name of its own node, with which all ids begin."""
    prefixes = {child.rpartition("-")[0] for entry in entries for child in _children(entry)}
    return next((name for name in map(_display_name, entries) if name in prefixes), "")


@dataclass(frozen=True, slots=True)
class _Place:
    """A node's full name, its display name, and the entry (by position) that named it as a follower."""

    name: str
    display: str
    before: int


class _Search:
    """Goes from the workflow's own entry to all others."""

    def __init__(self, entries: Sequence[Entry], workflow: str) -> None:
        self._entries = entries
        self._workflow = workflow
        self._by_display: dict[str, list[int]] = {}
        self._preceding: dict[str, list[int]] = {}  # entries by the id of a follower
        for k, entry in enumerate(entries):
            self._by_display.setdefault(_display_name(entry), []).append(k)
            for child in _children(entry):
                self._preceding.setdefault(child, []).append(k)
        self._suffixes: dict[str, list[str]] = {}  # of attempts and items, by the display name that they extend
        for display in self._by_display:
            if display.endswith(")"):
                self._suffixes.setdefault(parent_of_node(display), []).append(display)
        self._parts = [display for display in self._by_display if not display.endswith(")")]
        self._inside: dict[str, Candidates] = {}

    def names(self) -> dict[int, str]:
        """The full name of every entry that was found, by position."""
        found = {self._by_display[self._workflow][0]: self._workflow}
        unclear: dict[str, list[_Place]] = {}
        seen, queue = {self._workflow}, deque(found)
        while queue:
            k = queue.popleft()
            for place in self._following(k, found[k]):
                if place.name in seen:
                    continue
                seen.add(place.name)
                entry = self._entry_at(place, found)
                if entry is None:
                    unclear.setdefault(place.display, []).append(place)
                else:
                    found[entry] = place.name
                    queue.append(entry)
        for display, places in unclear.items():
            found |= self._by_time(places, [k for k in self._by_display[display] if k not in found])
        return found

    def _following(self, k: int, name: str) -> Iterator[_Place]:
        for child in _children(self._entries[k]):
            for candidates in self._candidates(name, _display_name(self._entries[k])):
                if child in candidates:
                    yield _Place(*candidates[child], before=k)
                    break

    def _candidates(self, name: str, display: str) -> Iterator[Candidates]:
        """What can follow a node: its own attempts, then what stands in the same DAGs, then its parts."""
        attempts = self._suffixes.get(display, ())
        yield self._by_id((name + attempt.removeprefix(display), attempt) for attempt in attempts)
        container = parent_of_node(name)
        while container:
            yield self._inside_of(container)
            container = parent_of_node(container)
        yield self._inside_of(name)

    def _inside_of(self, container: str) -> Candidates:
        if container not in self._inside:
            self._inside[container] = self._by_id((f"{container}.{part}", part) for part in self._parts)
        return self._inside[container]

    def _by_id(self, named: Iterable[tuple[str, str]]) -> Candidates:
        return {node_id(name, self._workflow): (name, display) for name, display in named}

    def _entry_at(self, place: _Place, found: Mapping[int, str]) -> int | None:
        """The entry at a place: the only one with its display name, or one whose followers can follow only there."""
        same = self._by_display[place.display]
        if len(same) == 1:
            return same[0]
        for candidates in self._candidates(place.name, place.display):
            for child in candidates:
                for k in self._preceding.get(child, ()):
                    if k not in found and _display_name(self._entries[k]) == place.display:
                        return k
        return None

    def _by_time(self, places: Sequence[_Place], left: Sequence[int]) -> dict[int, str]:
        """Assign the entries `left` to places in order of time: a node starts and ends with what it is part of."""
        in_order = sorted(places, key=lambda place: self._time(place.before))
        return {k: place.name for k, place in zip(sorted(left, key=self._time), in_order, strict=False)}

    def _time(self, k: int) -> tuple[str, str, str]:
        """RFC 3339 timestamps of one server: their order as texts is that in time."""
        entry = self._entries[k]
        return str(entry.get("start_time")), str(entry.get("end_time")), str(entry.get("state"))


# --- tasks of a KFP run, from ``run_details.task_details``: one entry per node of the Argo workflow, in no order -----
# A task is two nodes: its driver (``train-driver``), and the node that runs the user's container, which Argo calls
# ``executor`` inside the node ``train``. Where nodes may be retried, each is an entry of its own besides one for each
# attempt: ``executor``, ``executor(0)``, ``executor(1)``. When the driver finds the outputs in the cache, the executor
# is SKIPPED and the run still ends as SUCCEEDED. A condition that does not hold is skipped as a group, under a name
# that the compiler generated. What never began because something before it failed has no state.


_GROUP = re.compile(r"(condition|condition-branches|for-loop|exit-handler)-\d+")
_PIPELINE = "root"


def tasks_of(run: Mapping[str, Any]) -> tuple[TaskDetail, ...]:
    """The tasks in the API's answer for a run, by start: each attempt once, without the groups that contain tasks."""
    entries = [detail for detail in (run.get("run_details") or {}).get("task_details") or () if detail.get("task_id")]
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
