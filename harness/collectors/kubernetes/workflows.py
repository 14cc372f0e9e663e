"""Runs as Argo knows them: when a workflow ended, why its nodes failed, and when the platform had persisted its end.

The phase is read from the labels that Argo sets, so that metadata suffices: a workflow's status holds all of its steps
and is sent again with every change. `WorkflowReader` reads the status of a few. KFP's API server labels a workflow once
it has persisted the final state: from then on its listing shows the run's end.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.events import BEFORE_NS
from harness.collectors.kubernetes.node_messages import NodeMessage, node_messages
from harness.collectors.kubernetes.pods import RUN_ID
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.kubernetes.workflow_choice import WorkflowChoice, WorkflowKey
from harness.collectors.kubernetes.workflow_width import limits_of
from harness.model.argo_nodes import is_offloaded
from harness.model.phases import LIMITS, NOT_REACHABLE, OF_TASK
from harness.model.records import Event

KIND = "Workflow"
NODES = "kubernetes workflow nodes"
_PHASE = "workflows.argoproj.io/phase"
_PERSISTED = "pipeline/persistedFinalState"
_GOOD, _BAD = "Succeeded", frozenset({"Failed", "Error"})
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
        self._recorded = set(recorded)
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
        if change == "DELETED" or (created and created.at < self._since):
            self.choice.forget(str(metadata.get("namespace") or ""), name)
            self.unfinished.discard(str(labels.get(RUN_ID) or name))
            return
        run, phase = str(labels.get(RUN_ID) or name), str(status.get("phase") or labels.get(_PHASE) or "")
        key = WorkflowKey(str(metadata.get("namespace") or ""), name, run)
        with self._lock:
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
        for each in messages:
            if (run, each) not in self._said:
                self._said.add((run, each))
                at, state = each.ended_at or self._journal.now(), each.phase.upper()
                event = Event(at, OF_TASK, each.task, state, each.message, "kubernetes", run, type="Warning")
                self._journal.write(event)

    def run_of(self, namespace: str, name: str) -> str | None:
        """The run that a workflow carries out, if the workflow is known."""
        return self._runs.get((namespace, name))

    @property
    def persisted(self) -> Mapping[str, bool]:
        """The runs whose end the platform has persisted, and whether they succeeded."""
        return self._persisted
