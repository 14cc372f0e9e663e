"""A simulated platform in simulated time, observed as with a kubeconfig: everything passes through its real shape.

Kubernetes objects are rendered as its API would show them and told to the collectors change by change; workflows are
watched by their metadata and a few are read; runs are listed as KFP's API answers. No metrics-server, no Prometheus.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from harness.analysis.timeline import Timeline
from harness.collectors.collector import Activity
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.observed import Pods
from harness.collectors.kubernetes.workflow.reader import ARGO, WorkflowReader
from harness.collectors.kubernetes.workflow.watch import Workflows
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.source_health import UnreachableError
from harness.model import Event, Outcome, Plan, Submission
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import NOT_REACHABLE
from harness.simulator.cluster import Change, Node, Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp import view as kfp
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.workflows.workflow import Workflow
from harness.store import RunFolder
from harness.store.tables import load, seal
from harness.targets.kfp import KfpTarget
from tests.support.injection.packages import PACKAGE
from tests.support.platforms import upload
from tests.support.whole_objects import whole

ORIGIN_AT = 1_790_000_000 * 10**9
_EVERY_S = 1.0


class WatchedPlatform(KubernetesView):
    """The platform, its collectors, and the run folder they write.

    Args:
        path: where the run folder is made.
        profile: of the platform.
        reads_workflows: the observer's account may read workflows.
    """

    def __init__(self, path: Path, profile: Profile, *, reads_workflows: bool = True) -> None:
        super().__init__(Calendar(ORIGIN_AT))
        self.folder = RunFolder.create(path, "run")
        self._recorder = self.folder.recorder()
        journal = Journal(self._recorder, now=lambda: self.calendar.ns(self._now))
        self._told = self.store.version
        self._nodes, self._pods, self.activity = Nodes(journal), Pods(journal, 0), Activity()
        self._known = Workflows(journal, 0, clock=lambda: self._now)
        self._events_seen = Events(
            journal, self._pods.see_event, 0, run_of_workflow=self._known.run_of,
            see_other_event=self._pods.see_other_event,
        )  # fmt: skip
        self._reader = WorkflowReader(
            cast("KubeApi", self), self._known, journal, self.activity, lambda: self._pods.working,
            clock=lambda: self._now,
        )  # fmt: skip
        self._reads_workflows = reads_workflows
        if not reads_workflows:  # as the reflector of the workflows notes it
            journal.note(NOT_REACHABLE, "kubernetes workflows", "workflows is forbidden", at=ORIGIN_AT)
        super().follow(platform := Platform(profile, 1, self))
        platform.workflow_watchers.append(self.workflow_changed)
        self._runs: list[Run] = []
        self._answered: dict[int, tuple[float, Run | RpcError]] = {}

    # --- what the collectors are told -------------------------------------------------------------------------------

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        super().pod_changed(pod, change, detail)
        self._tell()

    def node_changed(self, node: Node, reason: str = "", message: str = "") -> None:
        super().node_changed(node, reason, message)
        self._tell()

    def workflow_changed(self, workflow: Workflow) -> None:
        super().workflow_changed(workflow)
        self._tell()

    def _tell(self) -> None:
        """Report the changes that watches would have shown."""
        if self._platform is None:
            return
        kinds = {each.plural: each for each in self.store.resources if each.listing is None}
        seen = {"nodes": self._nodes.see, "pods": self._pods.see, "events": self._events_seen.see}
        if self._reads_workflows:
            seen["workflows"] = self._known.see
        for plural, see in seen.items():
            for change in self.store.changes(plural, self._told, 10_000):
                manifest = change.after.manifest(kinds[plural])
                if plural == "workflows":
                    manifest = {"metadata": manifest["metadata"]}
                see("DELETED" if change.deleted else "MODIFIED", manifest)
                if plural == "nodes":
                    self._pods.see_node(manifest, self._nodes.known.get(change.after.name))
        self._told = self.store.version

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """One workflow, as `KubeApi.get`."""
        del query
        if not self._reads_workflows:
            raise UnreachableError("workflows is forbidden", 403)
        namespace, name = path.removeprefix(f"{ARGO}/namespaces/").split("/workflows/")
        (resource,) = (each for each in self.store.resources if each.plural == "workflows")
        found = self.store.get(resource, namespace, name)
        if found is None:
            raise UnreachableError("not found", 404)
        return whole(found, resource)

    # --- a test ---------------------------------------------------------------------------------------------------

    def load(self, runs: int, every_s: float, until_s: float) -> Timeline:
        """Submit runs from 5 s on, observe until `until_s`, and read the run folder."""
        loop, version = self.platform.loop, upload(self.platform, PACKAGE)

        def submit(number: int) -> None:
            run = self.platform.server.prepare_run(f"run-{number}", "", version, {}, by_reference=True)
            self._runs.append(run)
            self.activity.runs = {each.id for each in self._runs}
            self.platform.server.start_run(
                run, lambda answer: self._answered.update({number: (loop.now, answer)})
            )  # fmt: skip

        for number in range(runs):
            loop.at(5.0 + number * every_s, submit, number)
        while loop.now < until_s:
            loop.run(loop.now + _EVERY_S)
            self._events_seen.release()
            self._reader.look(_EVERY_S)
        self._events_seen.release(every=True)
        return self._recorded(every_s)

    def _recorded(self, every_s: float) -> Timeline:
        for number, run in enumerate(self._runs):
            at = self.calendar.ns(5.0 + number * every_s)
            answered_s, answer = self._answered[number]
            outcome, status, error, id_ = Outcome.ACCEPTED, 200, None, run.id
            if isinstance(answer, RpcError):
                outcome, status, error, id_ = Outcome.REJECTED, answer.code.http, answer.message, None
            answered_at = self.calendar.ns(answered_s)
            self._recorder.write(
                Submission(number, str(number), run.name, at, at, answered_at, outcome, id_, 0, status, error)
            )
        plan = Plan("kfp", "simulated", {"name": "constant"}, len(self._runs), 0, True, started_at=ORIGIN_AT)
        known, listed = KnownRuns(plan), KfpTarget({"experiment": "", "experiment_id": "e"}).list_runs(self._list, "")
        for each in listed.runs:
            for record in known.see(each, self.calendar.ns(self._now)):
                self._recorder.write(record)
        self.folder.write_plan(plan)
        self._recorder.write(Event(ORIGIN_AT, "Test", "run", "Started"))
        self._recorder.close()
        seal(self.folder)
        return Timeline.from_frames(plan, load(self.folder))

    def documents(self) -> list[dict[str, Any]]:
        """The runs as KFP's API answers them."""
        return [kfp.run(run, self.calendar.stamp) for run in self._runs if run.workflow is not None]

    def _list(self, request: HttpRequest) -> HttpAnswer:
        del request
        return HttpAnswer(200, orjson.dumps({"runs": self.documents()}), {})
