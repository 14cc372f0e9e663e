"""What comes next in a pipeline's workflow: its graph counts down."""

from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.argo_events import of_end, of_skip, of_start
from harness.simulator.kfp.drivers import Drivers
from harness.simulator.kfp.workflow import FAILED, SKIPPED, SUCCEEDED, Step, Workflow
from harness.simulator.kfp.workflow_pods import WorkflowPods


class Pipelines:
    """Operates the workflows of KFP's runs; see `harness.simulator.kfp.controller.Operator`."""

    def __init__(self, loop: EventLoop, drivers: Drivers, pods: WorkflowPods) -> None:
        self._loop = loop
        self._drivers = drivers
        self._pods = pods

    def begin(self, workflow: Workflow) -> str:
        """See `Operator.begin`."""
        workflow.unsaid += of_start(workflow.graph)
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
            workflow.unsaid += of_end(workflow.graph)
        return due

    def release(self, workflow: Workflow) -> None:
        """See `Operator.release`: it holds nothing."""

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
