"""Why runs failed: what the platform, the workflow's nodes and the pods say, grouped by what they have in common.

KFP's API gives no reason for a failed run. Reasons are the messages of the workflow's nodes (read of some runs), of
Argo's events about failed nodes, and the ends of pods. A container's end has a reason, such as OOMKilled, and often no
message.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.timeline import Bools, Timeline, floats, remembered, within
from harness.model.phases import FAILED, LAUNCHER_ERROR, OF_TASK

# Reasons of pod events that report a failed container or pod.
BAD_ENDS = frozenset(
    {"Failed", "Error", "OOMKilled", "Evicted", "ContainerCannotRun", "DeadlineExceeded", "StartError", LAUNCHER_ERROR}
)

_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?"), "<time>"),
    (re.compile(r"\b(?=[a-z0-9]*[a-z])(?=[a-z0-9]*\d)[a-z0-9]{5,}\b"), "<id>"),
    (re.compile(r"\b\d+(?:\.\d+)*"), "<n>"),
)
_LONGEST = 400
_BAD_NODES = frozenset({"WorkflowNodeFailed", "WorkflowNodeError"})  # reasons of Argo's events
_BAD_TASKS = frozenset({FAILED, "ERROR"})
# Before the message of an event that stands for several: "Failed node wf.root.train: what the node says".
_COMBINED = "(combined from similar events): "
# Reasons of a container's end that are no cause.
_PLAIN = frozenset({"Failed", "Error", LAUNCHER_ERROR})
_COMMAND_FAILED = re.compile(r"exit status \d+")  # all that the launcher says of a command that failed


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed: its row in `Timeline.runs`, its end, messages, and its failed pods' nodes and tasks."""

    row: int
    at_s: float
    texts: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that differ only in names and numbers; `example` is one of them verbatim."""

    message: str
    count: int
    first_s: float
    last_s: float
    example: str


@dataclass(frozen=True, slots=True)
class Said:
    """What one source says about a run's failure, with the pod's node and the task where it knows them."""

    text: str
    node: str = ""
    task: str = ""


@remembered
def failures(timeline: Timeline) -> tuple[Failure, ...]:
    """The failed runs, ordered by end time; canceled runs are not failures."""
    runs = timeline.runs
    bad = (runs["state"] == FAILED).to_numpy(dtype=bool)
    if not bad.any():
        return ()
    over, messages = floats(runs, "over_s"), runs["message"].to_numpy(dtype=object)
    said = reasons(timeline)
    found = []
    for row in np.flatnonzero(bad).tolist():
        known = [Said(messages[row]), *said.get(str(runs["run"].iat[row]), ())]
        texts, nodes, tasks = ({getattr(each, name): None for each in known} for name in ("text", "node", "task"))
        for each in (texts, nodes, tasks):
            each.pop("", None)
        found.append(Failure(row, float(over[row]), tuple(texts), tuple(sorted(nodes)), tuple(sorted(tasks))))
    return tuple(sorted(found, key=lambda failure: (failure.at_s, failure.row)))


@remembered
def own_events(timeline: Timeline) -> pd.DataFrame:
    """The events of the test's runs: those of others' runs say nothing about it."""
    own = _is_own(timeline)
    return timeline.events if own.all() else timeline.events[own]  # of a large test a copy is large


@remembered
def _is_own(timeline: Timeline) -> Bools:
    run = timeline.events["run"]
    return np.asarray((run != "").to_numpy(dtype=bool) & within(run, timeline.runs["run"]), dtype=np.bool_)


@remembered
def reasons(timeline: Timeline) -> dict[str, list[Said]]:
    """By run, failed or not: what its workflow's nodes and its pods say about failures, the most precise first."""
    found: dict[str, list[Said]] = defaultdict(list)
    ends = _bad_ends(timeline.events)
    logged = (ends["reason"] == LAUNCHER_ERROR) & ~ends["message"].str.fullmatch(_COMMAND_FAILED)
    # The launcher names the cause of what its node and its pod only know as an exit code.
    first, last = (ends[chosen.to_numpy(dtype=bool)] for chosen in (logged, ~logged))
    for run, said in (*_of_pods(timeline, first), *_of_nodes(timeline), *_of_pods(timeline, last)):
        found[run].append(said)
    return found


def _of_nodes(timeline: Timeline) -> Iterator[tuple[str, Said]]:
    of_tasks = timeline.events_of(OF_TASK, *_BAD_TASKS)
    for run, task, message in of_tasks[["run", "object", "message"]].itertuples(index=False):
        yield run, Said(message, task=task)
    argos = timeline.events_of("Workflow", *_BAD_NODES)
    for run, message in argos[["run", "message"]].itertuples(index=False):
        yield run, Said(message.removeprefix(_COMBINED).partition(": ")[2].strip())


def _bad_ends(events: pd.DataFrame) -> pd.DataFrame:
    return events[(events["kind"] == "Pod") & events["reason"].isin(BAD_ENDS)]


def _of_pods(timeline: Timeline, ends: pd.DataFrame) -> Iterator[tuple[str, Said]]:
    pods = timeline.pods_called(set(ends["object"]))
    place = {step: (node, task) for step, node, task in zip(pods["step"], pods["node"], pods["task"], strict=True)}
    run_of = {
        step: str(timeline.runs["run"].iat[row])
        for step, row in zip(pods["step"], pods["row"], strict=True)
        if row >= 0
    }
    for pod, run, reason, message in ends[["object", "run", "reason", "message"]].itertuples(index=False):
        named = reason in _PLAIN or reason in message
        text = message if named else f"{reason}: {message}" if message else reason
        yield run or run_of.get(pod, ""), Said(text, *place.get(pod, ()))


def canonical(message: str) -> str:
    """A message with ids, times and numbers replaced by placeholders."""
    text = " ".join(message.split())
    for pattern, sign in _VARYING:
        text = pattern.sub(sign, text)
    return text[:_LONGEST]


def group(messages: Iterable[tuple[float, str]]) -> list[Group]:
    """Group messages, given with their seconds after t0; the most frequent group comes first."""
    groups: dict[str, list[tuple[float, str]]] = {}
    for at_s, message in messages:
        groups.setdefault(canonical(message), []).append((at_s, message))
    found = [
        Group(name, len(members), min(s for s, _ in members), max(s for s, _ in members), min(members)[1])
        for name, members in groups.items()
    ]
    return sorted(found, key=lambda g: (-g.count, g.first_s, g.message))


def failure_groups(timeline: Timeline) -> list[Group]:
    """Why runs failed (their own message, else a pod's) and why submissions were rejected, grouped."""
    messages = [(f.at_s, f.texts[0] if f.texts else "no message was given") for f in failures(timeline)]
    runs = timeline.runs
    refused = ((runs["outcome"] == "rejected") & (runs["error"] != "")).to_numpy(dtype=bool)
    due, error = floats(runs, "due_s"), runs["error"].to_numpy(dtype=object)
    messages += [(float(due[row]), f"submission rejected: {error[row]}") for row in np.flatnonzero(refused).tolist()]
    return group(messages)
