"""The pods of workflows: created, watched and assessed by the workflow controller."""

from collections.abc import Callable
from math import inf

from harness.simulator.cluster import Change, Cluster, Pod
from harness.simulator.cluster.kubelet import SIGTERMED
from harness.simulator.cluster.quota import Quotas
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Controller as Settings
from harness.simulator.workflows.client import Client
from harness.simulator.workflows.drivers import Drivers
from harness.simulator.workflows.graph import RUNS_USER_CODE, STEP
from harness.simulator.workflows.node_paths import of_pod_end, of_pod_start
from harness.simulator.workflows.retry import ending, strategy_of
from harness.simulator.workflows.steps import Steps
from harness.simulator.workflows.templates import Templates
from harness.simulator.workflows.work_queue import WorkQueue
from harness.simulator.workflows.workflow import PENDING, SUCCEEDED, Workflow

_QUOTA_RETRY_S = 1.0  # minimum delay before a pod that a quota refused is requested again


class WorkflowPods:
    """Creates the pods of one controller. Their changes requeue their workflow; its reconciliation assesses them."""

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        *,
        client: Client,
        queue: WorkQueue,
        cluster: Cluster,
        steps: Steps,
        drivers: Drivers,
        quotas: Quotas,
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._requests = settings.requests_of_version
        self._client = client
        self._queue = queue
        self._cluster = cluster
        self._steps = steps
        self._drivers = drivers
        self.quotas = quotas
        # Why the API server refuses a pod, and whether that is the end of its step.
        self.refuse: Callable[[Pod], tuple[str, bool]] = lambda _: ("", False)
        self._templates = Templates(settings, steps)
        # Bound once: every pod keeps them.
        self._on_over, self._on_running = self._pod_over, self._pod_running

    def create(self, workflow: Workflow, index: int) -> None:
        """Create the pod of a due node, which a quota can delay."""
        if not workflow.needs(index):
            workflow.active -= 1
            self.requeue(workflow)
            return
        step = workflow.steps[index]
        assert step is not None
        pod = self._templates.pod(workflow, index, step.attempts)
        pod.on_over, pod.on_running = self._on_over, self._on_running
        quota = self.quotas.of(pod.namespace)
        refusal, final = self.refuse(pod)
        refusal = refusal or quota.refusal(pod)
        self._client.counts["pods create refused" if refusal else "pods create"] += self._requests.pod
        if refusal and final:
            pod.created = pod.finished = self._loop.now
            pod.phase, pod.message = "Failed", refusal
            step.pods.append(pod)
            workflow.active -= 1
            workflow.news.append(pod)
            self.requeue(workflow)
            return
        if refusal:  # Argo treats it as transient and retries
            if not step.message:
                step.message = refusal
                self._cluster.listener.pod_changed(pod, Change.REFUSED, refusal)
            self._loop.after(max(self._queue.requeue_s, _QUOTA_RETRY_S), self._request_again, workflow, index)
            return
        quota.take(pod)
        step.pods.append(pod)
        step.state, step.message = PENDING, ""
        if pod.role != STEP:  # whose operator counts them
            workflow.unsaid += of_pod_start(workflow.graph.plans[index], self._settings.error_retries)
        self._cluster.create(pod)
        if step.attempts > 1:
            ends = step.pods[0].created + strategy_of(workflow.graph.plans[index], self._settings).max_s
            if ends < inf:
                self._loop.at(max(ends, self._loop.now), self._end_late, pod)

    def _end_late(self, pod: Pod) -> None:
        """The retry strategy's time is over: the executor ends the command of a later attempt."""
        if pod.started is not None and pod.main_ended is None and pod.deleting is None:
            self._cluster.kubelet.stop_work(pod)
            self._cluster.kubelet.finish(pod, SIGTERMED, "Error")

    def requeue(self, workflow: Workflow) -> None:
        """Have a workflow looked at that has changed."""
        if workflow.finished is None:
            self._queue.requeue(workflow)

    def _request_again(self, workflow: Workflow, index: int) -> None:
        """Argo looks at the whole workflow again, so that its next look is due as after any other."""
        if workflow.finished is None:
            self._queue.expect(workflow)
        self._loop.at(self._client.core.take(self._loop.now, self._requests.pod), self.create, workflow, index)

    def _pod_running(self, pod: Pod) -> None:
        workflow = pod.owner
        assert isinstance(workflow, Workflow)
        workflow.touched = True
        self.requeue(workflow)
        run = self._steps.run if pod.role in RUNS_USER_CODE else self._drivers.run
        run(pod)

    def _pod_over(self, pod: Pod) -> None:
        workflow = pod.owner
        assert isinstance(workflow, Workflow)
        workflow.active -= 1
        self.quotas.of(pod.namespace).give_back(pod)
        workflow.news.append(pod)
        self.requeue(workflow)

    def assess(self, workflow: Workflow, pod: Pod) -> None:
        """Decide what a pod's end means for its step: success, retry, or failure."""
        index = pod.index
        plan, step = workflow.graph.plans[index], workflow.steps[index]
        assert step is not None
        self._client.cleanup.add(self._requests.cleanup)
        workflow.unsaid += of_pod_end(plan, self._settings.error_retries)
        if pod.phase == "Succeeded":
            step.ended[pod.name] = SUCCEEDED, ""
            self._drivers.remember(workflow, plan)
            workflow.end_step(index, SUCCEEDED, self._loop.now, taken=self._drivers.holds(workflow, plan))
            return
        state, message = step.ended[pod.name] = ending(pod, stopping=workflow.stopping)
        strategy = strategy_of(plan, self._settings)
        since_first_s = (pod.finished or self._loop.now) - step.pods[0].created
        wait_s = None if workflow.stopping else strategy.wait_s(state, step.attempts, since_first_s)
        if wait_s is None:
            workflow.end_step(index, state, self._loop.now, message)
        else:
            # A later reconciliation creates the next pod; until then it counts as active.
            workflow.active += 1
            self._loop.after(wait_s, self._again, workflow, index)

    def _again(self, workflow: Workflow, index: int) -> None:
        workflow.active -= 1
        workflow.due.append(index)
        self.requeue(workflow)

    def stop(self, workflow: Workflow) -> None:
        """Delete the live pods of a workflow."""
        for _, step in workflow.made():
            if step.pod is not None:
                self.delete(step.pod)

    def end(self, pod: Pod) -> None:
        """End a pod that served, which has done well."""
        if pod.started is not None and not pod.over and pod.deleting is None:
            self._cluster.kubelet.finish(pod)
        else:
            self.delete(pod)

    def delete(self, pod: Pod) -> None:
        """Delete a pod, unless it has ended."""
        if not pod.over and pod.deleting is None:
            self._cluster.kubelet.delete(pod)
