"""The Argo workflow controller: workers reconcile workflows, and create pods as their client's limits allow."""

from collections.abc import Callable
from functools import partial

from harness.simulator.cluster import Change, Cluster
from harness.simulator.cluster.quota import Quotas
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.argo_events import of_end, of_skip, of_start
from harness.simulator.kfp.client import Client
from harness.simulator.kfp.drivers import Drivers
from harness.simulator.kfp.graph import runs_in_executor
from harness.simulator.kfp.steps import Steps
from harness.simulator.kfp.throttler import POSTPONED, Throttler
from harness.simulator.kfp.work_queue import WorkQueue
from harness.simulator.kfp.workflow import FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED, Step, Workflow
from harness.simulator.kfp.workflow_pods import WorkflowPods
from harness.simulator.profile import Controller as Settings

Changed = Callable[[Workflow], None]


class Controller:
    """Creates the pods of workflows in the order of their graphs.

    A reconciliation holds a worker while its requests wait for the client's tokens: one after the other, a read when
    the workflow is new, the creation of each due pod, and the update of the workflow if anything has changed. After an
    update the worker sleeps for `settle_s`. Events and the labels of ended pods are sent in the background.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        *,
        cluster: Cluster,
        steps: Steps,
        drivers: Drivers,
        changed: Changed,
        quotas: Quotas,
    ) -> None:
        self._loop = loop
        self.settings = settings
        self._requests, self._settle_s = settings.requests_of_version, settings.settle_of_version_s
        self.client = Client(loop, settings)
        self.queue = WorkQueue(loop, settings)
        self.queue.serve(Workflow, self._reconcile)
        self.throttler = Throttler(settings.parallelism, settings.namespace_parallelism)
        self.limited: Callable[[], None] | None = None  # called after `limit_to`
        self.workflows: dict[str, Workflow] = {}
        self.running = 0
        self._cluster = cluster
        self._drivers = drivers
        self._changed = changed
        self.pods = WorkflowPods(
            loop, settings, client=self.client, queue=self.queue, cluster=cluster, steps=steps, drivers=drivers,
            quotas=quotas,
        )  # fmt: skip

    def add(self, workflow: Workflow) -> None:
        """Start to reconcile a new workflow."""
        self.workflows[workflow.name] = workflow
        self._changed(workflow)
        self.queue.add(workflow)

    def terminate(self, workflow: Workflow) -> None:
        """Terminate a workflow: its pods are deleted, and it fails."""
        if not workflow.over and not workflow.stopping:
            workflow.stopping = True
            self._changed(workflow)
            self._requeue(workflow)

    def retry(self, workflow: Workflow) -> None:
        """Run the failed steps of a finished workflow again."""
        workflow.reopen()
        self.workflows[workflow.name] = workflow
        self.queue.add(workflow)

    def remove(self, workflow: Workflow) -> None:
        """Delete a workflow and its pods; no effect if it was deleted before."""
        if self.workflows.pop(workflow.name, None) is None:
            return
        if workflow.started is not None and not workflow.over:
            self.running -= 1
        self.throttler.remove(_key(workflow))
        workflow.stopping = True
        for _, step in workflow.made():
            for pod in step.pods:
                self._cluster.forget(pod)
        self._changed(workflow)

    def limit_to(self, workflows: int, of_each_namespace: int = 0) -> None:
        """Limit the number of running workflows, in all and in each namespace; 0 is no limit."""
        self.throttler.limit_to(workflows, of_each_namespace)
        if self.limited is not None:
            self.limited()

    @property
    def quotas(self) -> Quotas:
        """The quotas on the pods."""
        return self.pods.quotas

    def _requeue(self, workflow: Workflow) -> None:
        if workflow.finished is None:
            self.queue.requeue(workflow)

    # --- one reconciliation -------------------------------------------------------------------------------------

    def _reconcile(self, workflow: Workflow) -> None:
        new = workflow.started is None
        if workflow.finished is not None or workflow.name not in self.workflows or (new and not self._begin(workflow)):
            self.queue.done(workflow)
            return
        changed = new or workflow.touched or workflow.stopping or bool(workflow.news or workflow.due)
        workflow.touched = False
        for pod in workflow.news:
            self.pods.assess(workflow, pod)
        workflow.news.clear()
        due: list[int] = []
        if workflow.stopping:
            self.pods.stop(workflow)
        elif workflow.due:
            due = self._take_due(workflow)
        if workflow.active == 0 and (workflow.stopping or not workflow.due):
            self._end(workflow)
        if not changed:
            self.queue.done(workflow)
        elif new and self._requests.start:
            self.client.counts["configmaps get"] += self._requests.start
            self._loop.at(self.client.core.take(self._loop.now, self._requests.start), self._create, workflow, due)
        else:
            self._create(workflow, due)

    def _create(self, workflow: Workflow, due: list[int]) -> None:
        """Create the pods one after the other, then update the workflow."""
        now, core, cost = self._loop.now, self.client.core, self._requests.pod
        for position, index in enumerate(due):
            at = core.take(now, cost)
            if at > now:
                self._loop.at(at, self._create_and_go_on, workflow, due[position:])
                return
            self.pods.create(workflow, index)
        requests = 1 if workflow.finished is None else 1 + self._requests.results
        at = self.client.workflows.take(now, requests)
        if at > now:
            self._loop.at(at, self._updated, workflow)
        else:
            self._updated(workflow)

    def _create_and_go_on(self, workflow: Workflow, due: list[int]) -> None:
        self.pods.create(workflow, due[0])
        self._create(workflow, due[1:])

    def _updated(self, workflow: Workflow) -> None:
        counts = self.client.counts
        counts["workflows update"] += 1
        if workflow.finished is None:
            self.queue.expect(workflow)
        else:
            counts["workflowtaskresults deletecollection"] += self._requests.results
        self.client.events.add(workflow.unsaid)
        workflow.unsaid = 0
        self._changed(workflow)
        if self._settle_s:
            self._loop.after(self._settle_s, self.queue.done, workflow)
        else:
            self.queue.done(workflow)

    def _begin(self, workflow: Workflow) -> bool:
        """Start a workflow, unless too many are running; returns whether it started."""
        if not (workflow.stopping or self._admits(workflow)):
            workflow.phase, workflow.message, workflow.held = PENDING, POSTPONED, True
            self._changed(workflow)
            return False
        workflow.started = self._loop.now
        workflow.phase = RUNNING
        workflow.message = ""
        workflow.unsaid += of_start(workflow.graph)
        self.running += 1
        return True

    def _admits(self, workflow: Workflow) -> bool:
        return self.throttler.admit(_key(workflow), partial(self._admitted, workflow), created=workflow.created)

    def _admitted(self, workflow: Workflow) -> None:
        if workflow.name in self.workflows:
            self.queue.add(workflow)

    def _take_due(self, workflow: Workflow) -> list[int]:
        """The due nodes that need a pod; those that don't end, which may make more nodes due."""
        needed: list[int] = []
        while workflow.due:
            due, workflow.due = workflow.due, []
            for index in due:
                step = workflow.steps[index] = workflow.steps[index] or Step(self._loop.now)
                if self._drivers.inside and runs_in_executor(workflow.graph, index):
                    workflow.end_step(index, SUCCEEDED, self._loop.now)
                    continue
                if not self._drivers.inside and self._drivers.was_computed(workflow, workflow.graph.plans[index]):
                    workflow.unsaid += of_skip(workflow.graph.plans[index])
                    workflow.end_step(index, SKIPPED, self._loop.now)
                    continue
                step.attempts += 1
                workflow.active += 1
                needed.append(index)
        return needed

    def _end(self, workflow: Workflow) -> None:
        workflow.finished = self._loop.now
        failed = workflow.failed or workflow.stopping
        workflow.phase = FAILED if failed else SUCCEEDED
        for _, step in workflow.made():
            pod = step.pod
            if pod is not None and pod.name in self._cluster.pods:  # not deleted meanwhile
                self._cluster.listener.pod_changed(pod, Change.LABELLED)
        workflow.unsaid += of_end(workflow.graph)
        self.client.cleanup.add(self._requests.end)
        self.running -= 1
        self.throttler.remove(_key(workflow))
        self._loop.after(self.settings.ttl_s, self._expire, workflow, workflow.finished)

    def _expire(self, workflow: Workflow, finished: float) -> None:
        """Delete a workflow after its TTL, unless it was retried meanwhile."""
        if workflow.finished == finished:
            self.remove(workflow)


def _key(workflow: Workflow) -> tuple[str, str]:
    return workflow.namespace, workflow.name
