"""The Argo workflow controller: workers reconcile workflows and create pods at the rate of its client."""

from collections import deque
from collections.abc import Callable

from harness.simulator.cluster import Change, Cluster, Pod
from harness.simulator.cluster.quota import Quota
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import TokenBucket
from harness.simulator.kfp.drivers import Drivers
from harness.simulator.kfp.graph import EXECUTOR
from harness.simulator.kfp.launcher import WAIT_FAILED
from harness.simulator.kfp.steps import Steps
from harness.simulator.kfp.templates import Templates
from harness.simulator.kfp.workflow import ERROR, FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED, Step, Workflow
from harness.simulator.profile import Controller as Settings
from harness.simulator.profile import Quota as Limits

_QUOTA_RETRY_S = 1.0  # minimum delay before a pod that a quota refused is requested again
POSTPONED = "Workflow processing has been postponed because too many workflows are already running"
Changed = Callable[[Workflow], None]


class Controller:
    """Creates the pods of workflows in the order of their graphs.

    A workflow is reconciled when it is new, and `requeue_s` after a change of any of its pods. A reconciliation
    occupies a worker for `operation_s` plus the wait for tokens: one for each pod, one for the workflow's status.
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
        quota: Limits,
    ) -> None:
        self._loop = loop
        self.settings = settings
        self.bucket = TokenBucket(settings.qps, settings.burst)
        self.parallelism = settings.parallelism  # maximum of running workflows, set by `limit_to`
        self.limited: Callable[[int], None] | None = None  # called after `limit_to`
        self.requeue_s = settings.requeue_s
        self.workflows: dict[str, Workflow] = {}
        self.running = 0
        self.busy = 0
        self._cluster = cluster
        self._drivers = drivers
        self._changed = changed
        self._queue: deque[Workflow] = deque()
        self._postponed: deque[Workflow] = deque()
        self.quota = Quota(quota)
        self._templates = Templates(settings, steps)
        # Bound once: every pod keeps them.
        self._on_over, self._on_driver, self._on_step = self._pod_over, drivers.run, steps.run

    def add(self, workflow: Workflow) -> None:
        """Start to reconcile a new workflow."""
        self.workflows[workflow.name] = workflow
        self._changed(workflow)
        self._enqueue(workflow)

    def terminate(self, workflow: Workflow) -> None:
        """Terminate a workflow: its pods are deleted, and it fails."""
        if not workflow.over and not workflow.stopping:
            workflow.stopping = True
            self._requeue(workflow)

    def retry(self, workflow: Workflow) -> None:
        """Run the failed steps of a finished workflow again."""
        workflow.reopen()
        self.workflows[workflow.name] = workflow
        self._enqueue(workflow)

    def remove(self, workflow: Workflow) -> None:
        """Delete a workflow and its pods; no effect if it was deleted before."""
        if self.workflows.pop(workflow.name, None) is None:
            return
        if workflow.started is not None and not workflow.over:
            self._free_slot()
        workflow.stopping = True
        for _, step in workflow.made():
            for pod in step.pods:
                self._cluster.forget(pod)
        self._changed(workflow)

    def limit_to(self, workflows: int) -> None:
        """Limit the number of running workflows (0 is no limit); postponed ones are reconsidered."""
        self.parallelism = workflows
        postponed, self._postponed = self._postponed, deque()
        for workflow in postponed:
            if workflow.name in self.workflows:
                self._enqueue(workflow)
        if self.limited is not None:
            self.limited(workflows)

    @property
    def queue_depth(self) -> int:
        """Number of workflows that wait for a worker."""
        return len(self._queue)

    @property
    def pending(self) -> int:
        """Number of workflows that have not started."""
        return len(self._postponed) + sum(1 for each in self._queue if each.started is None)

    def _free_slot(self) -> None:
        """A workflow ended: let the first postponed one that still exists start."""
        self.running -= 1
        while self._postponed:
            workflow = self._postponed.popleft()
            if workflow.started is None and workflow.name in self.workflows:
                self._enqueue(workflow)
                return

    # --- the queue ----------------------------------------------------------------------------------------------

    def _requeue(self, workflow: Workflow) -> None:
        if not workflow.queued and workflow.finished is None:
            workflow.queued = True
            self._loop.after(self.requeue_s, self._push, workflow)

    def _enqueue(self, workflow: Workflow) -> None:
        workflow.queued = True
        self._push(workflow)

    def _push(self, workflow: Workflow) -> None:
        self._queue.append(workflow)
        self._work()

    def _work(self) -> None:
        while self._queue and self.busy < self.settings.workers:
            self.busy += 1
            self._loop.after(self.settings.operation_s, self._reconcile, self._queue.popleft())

    def _free_worker(self) -> None:
        self.busy -= 1
        if self._queue:
            self._work()

    # --- one reconciliation -------------------------------------------------------------------------------------

    def _reconcile(self, workflow: Workflow) -> None:
        now = self._loop.now
        workflow.queued = False
        if workflow.finished is not None or workflow.name not in self.workflows:
            self._free_worker()
            return
        if workflow.started is None and not self._begin(workflow):
            self._free_worker()
            return
        for pod in workflow.news:
            self._assess(workflow, pod)
        workflow.news.clear()
        if workflow.stopping:
            self._stop_pods(workflow)
        elif workflow.due:
            self._make_pods(workflow)
        if workflow.active == 0 and not workflow.news and (workflow.stopping or not workflow.due):
            self._end(workflow)
        done_at = self.bucket.take(now)  # after the tokens for its pods
        self._changed(workflow)
        if done_at > now:
            self._loop.at(done_at, self._free_worker)
        else:
            self._free_worker()

    def _begin(self, workflow: Workflow) -> bool:
        """Start a workflow, unless too many are running; returns whether it started."""
        if self.parallelism and self.running >= self.parallelism and not workflow.stopping:
            workflow.message = POSTPONED
            self._postponed.append(workflow)
            self._changed(workflow)
            return False
        workflow.started = self._loop.now
        workflow.phase = RUNNING
        workflow.message = ""
        self.running += 1
        return True

    def _make_pods(self, workflow: Workflow) -> None:
        now = self._loop.now
        while workflow.due:
            due, workflow.due = workflow.due, []
            for index in due:
                step = workflow.steps[index] = workflow.steps[index] or Step(now)
                if self._drivers.was_computed(workflow, workflow.graph.plans[index]):
                    workflow.end_step(index, SKIPPED, now)
                    continue
                step.attempts += 1
                workflow.active += 1
                self._loop.at(self.bucket.take(now), self._make_pod, workflow, index)

    def _make_pod(self, workflow: Workflow, index: int) -> None:
        if workflow.stopping:
            workflow.active -= 1
            self._requeue(workflow)
            return
        step = workflow.steps[index]
        assert step is not None
        pod = self._templates.pod(workflow, index, step.attempts)
        pod.on_over, pod.on_running = self._on_over, self._on_step if pod.role == EXECUTOR else self._on_driver
        refusal = self.quota.refusal(pod)
        if refusal:  # Argo treats it as transient and retries
            if not step.message:
                step.message = refusal
                self._cluster.listener.pod_changed(pod, Change.REFUSED, refusal)
            self._loop.after(max(self.requeue_s, _QUOTA_RETRY_S), self._request_again, workflow, index)
            return
        self.quota.take(pod)
        step.pods.append(pod)
        step.state, step.message = PENDING, ""
        self._cluster.create(pod)

    def _request_again(self, workflow: Workflow, index: int) -> None:
        self._loop.at(self.bucket.take(self._loop.now), self._make_pod, workflow, index)

    def _pod_over(self, pod: Pod) -> None:
        workflow = pod.owner
        assert isinstance(workflow, Workflow)
        workflow.active -= 1
        self.quota.give_back(pod)
        workflow.news.append(pod)
        self._requeue(workflow)

    def _assess(self, workflow: Workflow, pod: Pod) -> None:
        """Decide what a pod's end means for its step: success, retry, or failure."""
        index = pod.index
        plan, step = workflow.graph.plans[index], workflow.steps[index]
        assert step is not None
        if pod.phase == "Succeeded":
            self._drivers.remember(workflow, plan)
            workflow.end_step(index, SUCCEEDED, self._loop.now, taken=self._drivers.holds(workflow, plan))
            return
        state, message = _ending(pod)
        allowed = max(plan.container.retries, self.settings.error_retries if state == ERROR else 0)
        if step.attempts <= allowed and not workflow.stopping:
            # A later reconciliation creates the next pod; until then it counts as active.
            delay = plan.container.backoff_s * plan.container.backoff_factor ** (step.attempts - 1)
            workflow.active += 1
            self._loop.after(min(delay, plan.container.backoff_max_s), self._again, workflow, index)
        else:
            workflow.end_step(index, state, self._loop.now, message)

    def _again(self, workflow: Workflow, index: int) -> None:
        workflow.active -= 1
        workflow.due.append(index)
        self._requeue(workflow)

    def _stop_pods(self, workflow: Workflow) -> None:
        for _, step in workflow.made():
            pod = step.pod
            if pod is not None and not pod.over and pod.deleting is None:
                self._cluster.kubelet.delete(pod)

    def _end(self, workflow: Workflow) -> None:
        workflow.finished = self._loop.now
        failed = workflow.failed or workflow.stopping
        workflow.phase = FAILED if failed else SUCCEEDED
        if workflow.stopping:
            workflow.message = "Stopped with strategy 'Terminate'"
        for _, step in workflow.made():
            if step.pod is not None and step.pod.name in self._cluster.pods:  # not deleted meanwhile
                self._cluster.listener.pod_changed(step.pod, Change.LABELLED)
        self._free_slot()
        self._loop.after(self.settings.ttl_s, self._expire, workflow, workflow.finished)

    def _expire(self, workflow: Workflow, finished: float) -> None:
        """Delete a workflow after its TTL, unless it was retried meanwhile."""
        if workflow.finished == finished:
            self.remove(workflow)


def _ending(pod: Pod) -> tuple[str, str]:
    """Argo's state and message for a pod that did not succeed."""
    if pod.deleting is not None:
        return ERROR, "pod deleted"
    if pod.exit_code:
        return FAILED, _failure(pod)
    return ERROR, f"wait: Error (exit code {WAIT_FAILED}): {pod.wait_error}"


def _failure(pod: Pod) -> str:
    """Argo's message for a failed pod."""
    if pod.reason == "OOMKilled":
        return f"OOMKilled (exit code {pod.exit_code})"
    return f"Error (exit code {pod.exit_code})" + (f": {pod.message}" if pod.message else "")
