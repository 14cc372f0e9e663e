"""Runs as Argo knows them: when a workflow ended, and when the platform had persisted its end.

The phase is read from the labels that Argo sets, so that metadata suffices: a workflow's status holds all of its steps
and is sent again with every change. KFP's API server labels a workflow once it has persisted the final state: from then
on its listing shows the run's end.
"""

import threading
from collections.abc import Iterable, Mapping

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.events import BEFORE_NS
from harness.collectors.kubernetes.pods import RUN_ID
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import stamp
from harness.model.records import Event

KIND = "Workflow"
_PHASE = "workflows.argoproj.io/phase"
_PERSISTED = "pipeline/persistedFinalState"
_GOOD, _BAD = "Succeeded", frozenset({"Failed", "Error"})


class Workflows:
    """The workflows of the test.

    Args:
        journal: takes an event for each phase that a workflow enters.
        since: the test's start, UTC ns; earlier workflows belong to other tests.
        recorded: (name, phase) of what an earlier observer has recorded.
    """

    def __init__(self, journal: Journal, since: int, recorded: Iterable[tuple[str, str]] = ()) -> None:
        self._journal = journal
        self._since = since - BEFORE_NS
        self._recorded = set(recorded)
        self._persisted: dict[str, bool] = {}
        self._lock = threading.Lock()

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a workflow, complete or only its metadata."""
        metadata, status = manifest["metadata"], manifest.get("status") or {}
        created = stamp(metadata.get("creationTimestamp"))
        if change == "DELETED" or (created and created.at < self._since):
            return
        labels = metadata.get("labels") or {}
        name = str(metadata["name"])
        run, phase = str(labels.get(RUN_ID) or name), str(status.get("phase") or labels.get(_PHASE) or "")
        with self._lock:
            if labels.get(_PERSISTED) == "true":
                self._persisted[run] = phase == _GOOD
            if not phase or (name, phase) in self._recorded:
                return
            self._recorded.add((name, phase))
        dated = stamp(status.get("finishedAt")) or stamp(status.get("startedAt"))
        at, severity = dated.at if dated else self._journal.now(), "Warning" if phase in _BAD else "Normal"
        message = str(status.get("message") or "")
        self._journal.write(Event(at, KIND, name, phase, message, "kubernetes", run, type=severity))

    @property
    def persisted(self) -> Mapping[str, bool]:
        """The runs whose end the platform has persisted, and whether they succeeded."""
        return self._persisted
