"""Why runs failed: messages of the platform and of pods, grouped by what they have in common."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.memory import remembered
from harness.model.phases import CANCELED, FAILED, LAUNCHER_ERROR

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


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed: its row in `Timeline.runs`, its end, messages, and its failed pods' nodes and tasks."""

    row: int
    at_s: float
    texts: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def says(self, *patterns: re.Pattern[str]) -> bool:
        """Whether any of its texts matches any of the patterns."""
        return any(pattern.search(text) for text in self.texts for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that differ only in names and numbers; `example` is one of them verbatim."""

    message: str
    count: int
    first_s: float
    last_s: float
    example: str


@remembered
def failures(timeline: Timeline) -> tuple[Failure, ...]:
    """The runs that failed or were cancelled, by end."""
    runs = timeline.runs
    bad = runs["state"].isin([FAILED, CANCELED]).to_numpy(dtype=bool)
    if not bad.any():
        return ()
    over, messages = floats(runs, "over_s"), runs["message"].to_numpy(dtype=object)
    ends = _bad_pods(timeline)
    found = []
    for row in np.flatnonzero(bad).tolist():
        pods = ends.get(str(runs["run"].iat[row]), [])
        texts = [messages[row]] if messages[row] else []
        texts += [text for text, _, _ in pods if text]
        nodes = {node for _, node, _ in pods if node}
        tasks = {task for _, _, task in pods if task}
        found.append(
            Failure(row, float(over[row]), tuple(dict.fromkeys(texts)), tuple(sorted(nodes)), tuple(sorted(tasks)))
        )
    return tuple(sorted(found, key=lambda failure: (failure.at_s, failure.row)))


def _bad_pods(timeline: Timeline) -> dict[str, list[tuple[str, str, str]]]:
    """By run: (message, node, task) of its failed pods."""
    events = timeline.events
    events = events[(events["kind"] == "Pod").to_numpy(dtype=bool) & events["reason"].isin(BAD_ENDS).to_numpy()]
    names = set(events["object"])
    pods = timeline.pods_called(names)
    place = {step: (node, task) for step, node, task in zip(pods["step"], pods["node"], pods["task"], strict=True)}
    run_of = {
        step: str(timeline.runs["run"].iat[row])
        for step, row in zip(pods["step"], pods["row"], strict=True)
        if row >= 0
    }
    found: dict[str, list[tuple[str, str, str]]] = {}
    for pod, run, message in zip(events["object"], events["run"].fillna(""), events["message"].fillna(""), strict=True):
        owner = run or run_of.get(pod, "")
        found.setdefault(owner, []).append((message, *place.get(pod, ("", ""))))
    return found


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
