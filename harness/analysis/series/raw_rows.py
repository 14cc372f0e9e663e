"""RawRows rows for reading: an even sample of runs and nodes, and events by kind."""

from dataclasses import dataclass

from harness.analysis.timeline import Timeline, evenly, floats

MOST_ROWS = 300
_MOST_TEXT = 200


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of `Timeline.runs`; a missing instant is NaN, `message` the platform's error or the submission's."""

    seq: int
    name: str
    run: str
    outcome: str
    state: str
    message: str
    due_s: float
    sent_s: float
    answered_s: float
    created_s: float
    over_s: float


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A row of `Timeline.nodes`; memory in bytes."""

    name: str
    pool: str
    created_s: float
    ready_s: float
    gone_s: float
    cpu: float
    memory: float
    gpu: float
    spot: bool


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events of one kind and reason, with one of their messages."""

    kind: str
    reason: str
    count: int
    first_s: float
    last_s: float
    example: str


@dataclass(frozen=True, slots=True)
class RawRows:
    """At most `MOST_ROWS` runs and nodes each, evenly chosen; `run_count` and `node_count` say how many there are."""

    run_count: int
    runs: tuple[RunRow, ...]
    node_count: int
    nodes: tuple[NodeRow, ...]
    events: tuple[EventGroup, ...]


def raw_rows(timeline: Timeline) -> RawRows:
    """Runs by seq, nodes by creation, events by kind and reason."""
    runs, nodes = timeline.runs, timeline.nodes
    return RawRows(len(runs), _runs(timeline), len(nodes), _nodes(timeline), _events(timeline))


def _runs(timeline: Timeline) -> tuple[RunRow, ...]:
    chosen = timeline.runs.iloc[evenly(len(timeline.runs), MOST_ROWS)]
    messages = [str(text or error) for text, error in zip(chosen["message"], chosen["error"], strict=True)]
    texts = [chosen[name].astype(str).tolist() for name in ("name", "run", "outcome", "state")]
    instants = [floats(chosen, f"{name}_s").tolist() for name in ("due", "sent", "answered", "created", "over")]
    return tuple(RunRow(*row) for row in zip(chosen["seq"].tolist(), *texts, messages, *instants, strict=True))


def _nodes(timeline: Timeline) -> tuple[NodeRow, ...]:
    nodes = timeline.nodes.sort_values(["created_s", "name"], kind="stable")
    chosen = nodes.iloc[evenly(len(nodes), MOST_ROWS)]
    texts = [chosen[name].astype(str).tolist() for name in ("name", "pool")]
    figures = [floats(chosen, name).tolist() for name in ("created_s", "ready_s", "gone_s", "cpu", "memory", "gpu")]
    spot = map(bool, chosen["spot"])
    return tuple(NodeRow(*row) for row in zip(*texts, *figures, spot, strict=True))


def _events(timeline: Timeline) -> tuple[EventGroup, ...]:
    found = []
    for (kind, reason), group in timeline.events.groupby(["kind", "reason"], sort=True):
        at = floats(group, "at_s")
        example = next(iter(group["message"][group["message"] != ""].dropna()[:1]), "")
        count = int(group["count"].sum())
        found.append(EventGroup(str(kind), str(reason), count, float(at.min()), float(at.max()), example[:_MOST_TEXT]))
    return tuple(found)
