"""Runs as Argo knows them: when a workflow ended, and when the platform had taken note of it.

The phase is read from the labels that Argo sets, so that metadata suffice: a workflow's status holds every one of its
steps and is sent anew at every change. KFP's API server labels a workflow once it has kept its final state: from then
on its listing tells of the run's end.
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
_KEPT = "pipeline/persistedFinalState"
_GOOD, _BAD = "Succeeded", frozenset({"Failed", "Error"})


class Workflows:
    """The workflows of the test.

    Args:
        journal: gets an event whenever one enters a phase.
        since: the test's start, UTC ns; workflows made before are of other tests.
        recorded: (name, phase) of what is recorded already.
    """

    def __init__(self, journal: Journal, since: int, recorded: Iterable[tuple[str, str]] = ()) -> None:
        self._journal = journal
        self._since = since - BEFORE_NS
        self._recorded = set(recorded)
        self._kept: dict[str, bool] = {}
        self._lock = threading.Lock()

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a workflow, whole or only its metadata."""
        metadata, status = manifest["metadata"], manifest.get("status") or {}
        created = stamp(metadata.get("creationTimestamp"))
        if change == "DELETED" or (created and created.at < self._since):
            return
        labels = metadata.get("labels") or {}
        name = str(metadata["name"])
        run, phase = str(labels.get(RUN_ID) or name), str(status.get("phase") or labels.get(_PHASE) or "")
        with self._lock:
            if labels.get(_KEPT) == "true":
                self._kept[run] = phase == _GOOD
            if not phase or (name, phase) in self._recorded:
                return
            self._recorded.add((name, phase))
        told = stamp(status.get("finishedAt")) or stamp(status.get("startedAt"))
        at, severity = told.at if told else self._journal.now(), "Warning" if phase in _BAD else "Normal"
        message = str(status.get("message") or "")
        self._journal.write(Event(at, KIND, name, phase, message, "kubernetes", run, type=severity))

    @property
    def kept(self) -> Mapping[str, bool]:
        """The runs whose end the platform has taken note of, and whether they ended well."""
        return self._kept
