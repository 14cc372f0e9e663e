"""Reads the status of a few workflows, one request each: why runs failed, and what keeps others waiting."""

import threading
import time
from collections.abc import Callable, Container
from collections.abc import Set as AbstractSet
from urllib.parse import quote

from harness.collectors.collector import Activity
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.workflow.watch import NODES, WorkflowKey, Workflows
from harness.collectors.source_health import UnreachableError
from harness.model.phases import NOT_REACHABLE

ARGO = "/apis/argoproj.io/v1alpha1"
_LOOK_S = 1.0
_LAST_S = 5.0  # for what is queued when the observation ends
_FORBIDDEN, _NOT_FOUND = 403, 404


class WorkflowReader:
    """Reads what `Workflows.choice` chooses.

    Args:
        api: of the cluster.
        workflows: takes the complete workflows.
        journal: takes notes.
        activity: the test's runs.
        working: the runs that have a living pod.
        worked: the runs that have or had one.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        api: KubeApi,
        workflows: Workflows,
        journal: Journal,
        activity: Activity,
        working: Callable[[], AbstractSet[str]],
        worked: Container[str] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._workflows = workflows
        self._journal = journal
        self._activity = activity
        self._working = working
        self._worked = worked
        self._clock = clock
        self._refused = False

    def follow(self, stop: threading.Event) -> None:
        """Read until `stop` is set, and then what is still queued."""
        while not stop.wait(_LOOK_S):
            self.look(_LOOK_S)
        self.look(_LAST_S)

    def look(self, most_s: float) -> None:
        """Read what is due, for at most so long."""
        until_s = self._clock() + most_s
        while not self._refused and (now_s := self._clock()) < until_s:
            key = self._workflows.choice.take(now_s, self._activity.runs, self._working(), self._worked)
            if key is None:
                return
            self._read(key)

    def _read(self, key: WorkflowKey) -> None:
        path = f"{ARGO}/namespaces/{quote(key.namespace)}/workflows/{quote(key.name)}"
        try:
            self._workflows.see("MODIFIED", self._api.get(path))
        except UnreachableError as error:
            if error.status != _NOT_FOUND:  # it may have been deleted meanwhile
                self._refused = error.status == _FORBIDDEN
                self._journal.note(NOT_REACHABLE, NODES, str(error))
