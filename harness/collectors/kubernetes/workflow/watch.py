"""Runs as Argo knows them: when a workflow ended, why its nodes failed, and when the platform had persisted its end.

The phase is read from the labels that Argo sets, so that metadata suffices: a workflow's status holds all of its steps
and is sent again with every change. `WorkflowReader` reads the status of a few. KFP's API server labels a workflow once
it has persisted the final state: from then on its listing shows the run's end.
"""

import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.events import BEFORE_NS
from harness.collectors.kubernetes.pod.life import RUN_ID
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.kubernetes.workflow.width import limits_of
from harness.model.argo.nodes import is_offloaded, nodes_of_status, task_of_node
from harness.model.forgetting import Leaving
from harness.model.phases import LIMITS, NOT_REACHABLE, OF_TASK
from harness.model.records import Event

_ALL_FAILED = 20  # of the failed ones; of later ones each whose number is a power of two
_MOST_WAITING = 200  # failed ones in the queue
_EVERY_S, _LONGEST_S, _DOUBLED_AFTER = 5.0, 300.0, 6  # between two readings of running ones
_IDLE_S = 10.0  # a workflow that has just begun has no pod yet


@dataclass(frozen=True, slots=True)
class WorkflowKey:
    """One workflow and the run that it carries out."""

    namespace: str
    name: str
    run: str


@dataclass(slots=True)
class _Running:
    since_s: float
    read_s: float = float("-inf")


class WorkflowChoice:
    """Chooses the next workflow to read. Times are monotonic seconds.

    Args:
        now_s: the begin of the observation.
    """

    def __init__(self, now_s: float) -> None:
        self._failed: list[WorkflowKey] = []
        self._running: dict[WorkflowKey, _Running] = {}
        self._failures = 0
        self._sampled = 0
        self._sampled_s = now_s

    def see(self, key: WorkflowKey, now_s: float, *, over: bool, failed: bool) -> None:
        """Take in a workflow's state."""
        if not over:
            self._running.setdefault(key, _Running(now_s))
            return
        self._running.pop(key, None)
        if failed and key not in self._failed and len(self._failed) < _MOST_WAITING:
            self._failed.append(key)

    def forget(self, namespace: str, name: str) -> None:
        """A workflow was deleted."""
        for key in [key for key in self._running if (key.namespace, key.name) == (namespace, name)]:
            del self._running[key]

    def take(
        self, now_s: float, own: Container[str] | None, working: AbstractSet[str], worked: Container[str] = frozenset()
    ) -> WorkflowKey | None:
        """The workflow to read now; none if there is none.

        Args:
            now_s: the present.
            own: the test's runs; none where they are not known, then every run is taken for one.
            working: runs that have a living pod.
            worked: runs that have or had one.
        """
        for key in self._failed:
            if own is None or key.run in own:
                self._failed.remove(key)
                self._failures += 1
                return key if _is_chosen(self._failures) else self.take(now_s, own, working, worked)
        if now_s - self._sampled_s < min(_LONGEST_S, _EVERY_S * 2 ** (self._sampled // _DOUBLED_AFTER)):
            return None
        return self._sample(now_s, own, working, worked)

    def _sample(
        self, now_s: float, own: Container[str] | None, working: AbstractSet[str], worked: Container[str]
    ) -> WorkflowKey | None:
        waiting = [
            (key.run in working, key.run in worked, seen.read_s, seen.since_s, key.name, key)
            for key, seen in self._running.items()
            if (own is None or key.run in own) and now_s - seen.since_s >= _IDLE_S
        ]
        if not waiting:
            return None
        chosen = min(waiting)[-1]
        self._running[chosen].read_s = now_s
        self._sampled += 1
        self._sampled_s = now_s
        return chosen


def _is_chosen(number: int) -> bool:
    return number <= _ALL_FAILED or number & (number - 1) == 0


_POD = "Pod"
# Phases of nodes that can have a reason; those of skipped nodes say why there was nothing to do.
_TELLING = frozenset({"Failed", "Error", "Pending", "Running"})


@dataclass(frozen=True, slots=True)
class NodeMessage:
    """What one node of a workflow says.

    Attributes:
        task: the step's name in the pipeline; "" for the workflow as a whole.
        phase: Argo's: Failed, Error, Pending or Running.
        message: as Argo writes it.
        ended_at: UTC ns; none while the node has not ended.
    """

    task: str
    phase: str
    message: str
    ended_at: int | None


def node_messages(workflow: Manifest) -> list[NodeMessage]:
    """The messages of the nodes that are pods, else those of other nodes, else that of the workflow; each once.

    Groups and retries repeat the messages of their pods.

    Raises:
        ValueError: the compressed nodes can't be read.
    """
    status = workflow.get("status") or {}
    nodes = [node for node in nodes_of_status(status).values() if node.get("message") and node.get("phase") in _TELLING]
    name = str(workflow["metadata"]["name"])
    of_pods = [node for node in nodes if node.get("type") == _POD]
    messages = [_message(name, node) for node in of_pods or nodes]
    if not messages and status.get("message"):
        messages = [NodeMessage("", str(status.get("phase") or ""), str(status["message"]), _at(status))]
    return list(dict.fromkeys(messages))


def _message(workflow: str, node: Mapping[str, Any]) -> NodeMessage:
    task = task_of_node(str(node.get("name") or ""), workflow)
    return NodeMessage(task, str(node["phase"]), str(node["message"]).strip(), _at(node))


def _at(dated: Mapping[str, Any]) -> int | None:
    ended = stamp(dated.get("finishedAt"))
    return ended.at if ended else None


KIND = "Workflow"
_KEPT_S = 300.0  # of a deleted workflow: its events come later, and the listing shows its end later
NODES = "kubernetes workflow nodes"
_PHASE = "workflows.argoproj.io/phase"
_PERSISTED = "pipeline/persistedFinalState"
_GOOD, _BAD = "Succeeded", frozenset({"Failed", "Error"})
_PHASES = frozenset({"Pending", "Running", _GOOD, *_BAD})
_OFFLOADED = "Argo keeps the nodes of large workflows in its database (nodeStatusOffLoad): their reasons are not shown"


class Workflows:
    """The workflows of the test.

    Args:
        journal: takes an event for each phase that a workflow enters.
        since: the test's start, UTC ns; earlier workflows belong to other tests.
        recorded: (name, phase) of what an earlier observer has recorded.
        clock: monotonic seconds.

    Attributes:
        choice: which workflows to read completely.
        unfinished: the runs whose workflow is there and is not over.
    """

    def __init__(
        self,
        journal: Journal,
        since: int,
        recorded: Iterable[tuple[str, str]] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._since = since - BEFORE_NS
        self._recorded = set(recorded)  # (name, phase)
        self._deleted: Leaving[WorkflowKey] = Leaving(_KEPT_S)
        self._persisted: dict[str, bool] = {}
        self._runs: dict[tuple[str, str], str] = {}  # by namespace and name of the workflow
        self._said: set[tuple[str, NodeMessage]] = set()
        self._offloaded = False
        self._clock = clock
        self._lock = threading.Lock()
        self.choice = WorkflowChoice(clock())
        self.unfinished: set[str] = set()

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a workflow, complete or only its metadata."""
        metadata, status = manifest["metadata"], manifest.get("status") or {}
        created = stamp(metadata.get("creationTimestamp"))
        labels = metadata.get("labels") or {}
        name = str(metadata["name"])
        run, phase = str(labels.get(RUN_ID) or name), str(status.get("phase") or labels.get(_PHASE) or "")
        key = WorkflowKey(str(metadata.get("namespace") or ""), name, run)
        if change == "DELETED" or (created and created.at < self._since):
            self.choice.forget(key.namespace, name)
            self.unfinished.discard(run)
            with self._lock:
                self._deleted.add(key, self._journal.now())
            return
        with self._lock:
            self._forget()
            self._runs[key.namespace, name] = run
            if labels.get(_PERSISTED) == "true":
                self._persisted[run] = phase == _GOOD
            if status:
                self._record_reasons(manifest, run)
            else:  # what was read completely may be older than what the watch has shown
                over = phase in {_GOOD, *_BAD}
                (self.unfinished.discard if over else self.unfinished.add)(run)
                self.choice.see(key, self._clock(), over=over, failed=phase in _BAD)
            if not phase or (name, phase) in self._recorded:
                return
            self._recorded.add((name, phase))
        dated = stamp(status.get("finishedAt")) or stamp(status.get("startedAt"))
        at, severity = dated.at if dated else self._journal.now(), "Warning" if phase in _BAD else "Normal"
        message = str(status.get("message") or "")
        self._journal.write(Event(at, KIND, name, phase, message, "kubernetes", run, type=severity))

    def _forget(self) -> None:
        for key in self._deleted.due(self._journal.now()):
            self._runs.pop((key.namespace, key.name), None)
            self._persisted.pop(key.run, None)
            self._recorded.difference_update([(key.name, phase) for phase in _PHASES])

    def _record_reasons(self, manifest: Manifest, run: str) -> None:
        if is_offloaded(manifest.get("status") or {}) and not self._offloaded:
            self._offloaded = True
            self._journal.note(NOT_REACHABLE, NODES, _OFFLOADED)
        name, limits = str(manifest["metadata"]["name"]), limits_of(manifest)
        if limits and (name, LIMITS) not in self._recorded:
            self._recorded.add((name, LIMITS))
            self._journal.write(Event(self._journal.now(), KIND, name, LIMITS, limits, "kubernetes", run))
        try:
            messages = node_messages(manifest)
        except ValueError as error:
            self._journal.note(NOT_REACHABLE, NODES, f"workflow {manifest['metadata']['name']}: {error}")
            return
        for message in messages:
            if (run, message) not in self._said:
                self._said.add((run, message))
                at, state = message.ended_at or self._journal.now(), message.phase.upper()
                event = Event(at, OF_TASK, message.task, state, message.message, "kubernetes", run, type="Warning")
                self._journal.write(event)

    def run_of(self, namespace: str, name: str) -> str | None:
        """The run that a workflow carries out, if the workflow is known."""
        return self._runs.get((namespace, name))

    @property
    def persisted(self) -> Mapping[str, bool]:
        """The runs whose end the platform has persisted, and whether they succeeded."""
        return self._persisted
