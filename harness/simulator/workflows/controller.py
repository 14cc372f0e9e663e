"""The Argo workflow controller: workers reconcile workflows, and create pods as their client's limits allow."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from harness.simulator.cluster import Change, Cluster
from harness.simulator.cluster.quota import Quotas
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Controller as Settings
from harness.simulator.workflows.client import Client
from harness.simulator.workflows.drivers import Drivers
from harness.simulator.workflows.node_paths import of_skip, of_whole
from harness.simulator.workflows.steps import Steps
from harness.simulator.workflows.work_queue import POSTPONED, Key, Throttler, WorkQueue
from harness.simulator.workflows.workflow import FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED, Step, Workflow
from harness.simulator.workflows.workflow_pods import WorkflowPods

Changed = Callable[[Workflow], None]


class Operator(Protocol):
    """Decides what comes next in workflows of one kind: pipelines, or manifests of Argo's own."""

    def begin(self, workflow: Any) -> str:
        """Why a workflow can't begin yet; "" if it begins, or ends at once because it can't be carried out."""
        ...

    def operate(self, workflow: Any) -> list[int]:
        """Take note of what has happened; returns the nodes whose pods are due, and ends the workflow if it is over."""
        ...

    def release(self, workflow: Any) -> None:
        """A workflow has ended or was deleted: give back what it holds."""
        ...


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
        self.queue = WorkQueue(loop, settings, self._reconcile)
        self.throttler = Throttler(settings.parallelism, settings.namespace_parallelism)
        self.limited: Callable[[], None] | None = None  # called after `limit_to`
        self.workflows: dict[Key, Workflow] = {}
        self._cluster = cluster
        self._changed = changed
        self.pods = WorkflowPods(
            loop, settings, client=self.client, queue=self.queue, cluster=cluster, steps=steps, drivers=drivers,
            quotas=quotas,
        )  # fmt: skip
        self.pipelines = Pipelines(loop, drivers, self.pods)
        self.operators: dict[type[Workflow], Operator] = {Workflow: self.pipelines}

    def add(self, workflow: Workflow) -> None:
        """Start to reconcile a new workflow."""
        self.workflows[workflow.key] = workflow
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
        self.workflows[workflow.key] = workflow
        self.queue.add(workflow)

    def remove(self, workflow: Workflow) -> None:
        """Delete a workflow and its pods; no effect if it was deleted before."""
        if self.workflows.pop(workflow.key, None) is None:
            return
        self._release(workflow)
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
        gone = self.workflows.get(workflow.key) is not workflow
        if workflow.finished is not None or gone or (new and not self._begin(workflow)):
            self.queue.done(workflow)
            return
        changed = new or workflow.touched or workflow.stopping or bool(workflow.news or workflow.due)
        workflow.touched = False
        due = self._operate(workflow)
        if not changed:
            self.queue.done(workflow)
        elif new and self._requests.start:
            self.client.counts["configmaps get"] += self._requests.start
            self._loop.at(self.client.core.take(self._loop.now, self._requests.start), self._create, workflow, due)
        else:
            self._create(workflow, due)

    def _operate(self, workflow: Workflow) -> list[int]:
        """Learn what is due; a workflow that could not be carried out has ended already."""
        due = [] if workflow.over else self.operators[type(workflow)].operate(workflow)
        if workflow.over:
            self._end(workflow)
        return due

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
        """Start a workflow, unless too many are running or it needs a lock; returns whether it started."""
        why = "" if workflow.stopping or self._admits(workflow) else POSTPONED
        why = why or self.operators[type(workflow)].begin(workflow)
        if why:
            if (workflow.phase, workflow.message) != (PENDING, why):
                workflow.phase, workflow.message, workflow.held = PENDING, why, True
                self._changed(workflow)
            return False
        workflow.started = self._loop.now
        if workflow.finished is None:
            workflow.phase, workflow.message = RUNNING, ""
        return True

    def _admits(self, workflow: Workflow) -> bool:
        start = partial(self._admitted, workflow)
        return self.throttler.admit(workflow.key, start, priority=workflow.priority, created=workflow.created)

    def _admitted(self, workflow: Workflow) -> None:
        if self.workflows.get(workflow.key) is workflow:
            self.queue.add(workflow)

    def _end(self, workflow: Workflow) -> None:
        assert workflow.finished is not None
        for _, step in workflow.made():
            pod = step.pod
            if pod is not None and pod.name in self._cluster.pods:  # not deleted meanwhile
                self._cluster.listener.pod_changed(pod, Change.LABELLED)
        self.client.cleanup.add(self._requests.end)
        self._release(workflow)
        for pod in workflow.discarded():
            self._cluster.forget(pod)
        self._loop.after(workflow.keep_s(self.settings.ttl_s), self._expire, workflow, workflow.finished)

    def _release(self, workflow: Workflow) -> None:
        self.operators[type(workflow)].release(workflow)
        self.throttler.remove(workflow.key)

    def _expire(self, workflow: Workflow, finished: float) -> None:
        """Delete a workflow after its TTL, unless it was retried meanwhile."""
        if workflow.finished == finished:
            self.remove(workflow)


class Pipelines:
    """Operates the workflows of KFP's runs; see `harness.simulator.workflows.controller.Operator`."""

    def __init__(self, loop: EventLoop, drivers: Drivers, pods: WorkflowPods) -> None:
        self._loop = loop
        self._drivers = drivers
        self._pods = pods
        self.locks: Callable[[Workflow], str] = lambda _: ""  # takes its locks; why it waits for one
        self.freed: Callable[[Workflow], None] = lambda _: None  # gives them back

    def begin(self, workflow: Workflow) -> str:
        """See `Operator.begin`."""
        if why := self.locks(workflow):
            return why
        workflow.unsaid += of_whole(workflow.graph)
        if workflow.graph.limits.deadline_s:
            self._loop.after(workflow.graph.limits.deadline_s, self._expire, workflow)
        return ""

    def _expire(self, workflow: Workflow) -> None:
        """The workflow's time is over, which ends it as a termination does."""
        if not workflow.over and not workflow.stopping:
            workflow.stopping = True
            self._pods.requeue(workflow)

    def operate(self, workflow: Workflow) -> list[int]:
        """See `Operator.operate`."""
        for pod in workflow.news:
            self._pods.assess(workflow, pod)
        workflow.news.clear()
        due: list[int] = []
        if workflow.stopping:
            self._pods.stop(workflow)
        elif workflow.due:
            due = self._take_due(workflow)
        if workflow.active == 0 and (workflow.stopping or not workflow.due):
            workflow.finished = self._loop.now
            workflow.phase = FAILED if workflow.failed or workflow.stopping else SUCCEEDED
            workflow.unsaid += of_whole(workflow.graph)
        return due

    def release(self, workflow: Workflow) -> None:
        """See `Operator.release`."""
        self.freed(workflow)

    def _take_due(self, workflow: Workflow) -> list[int]:
        """The due nodes that need a pod; those that don't end, which may make more nodes due."""
        needed: list[int] = []
        while workflow.due:
            due, workflow.due = workflow.due, []
            for index in due:
                step = workflow.steps[index] = workflow.steps[index] or Step(self._loop.now)
                if self._drivers.was_computed(workflow, workflow.graph.plans[index]):
                    workflow.unsaid += of_skip(workflow.graph.plans[index])
                    workflow.end_step(index, SKIPPED, self._loop.now)
                    continue
                step.attempts += 1
                workflow.active += 1
                needed.append(index)
        return needed
