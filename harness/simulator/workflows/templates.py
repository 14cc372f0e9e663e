"""The pods of the Argo templates that KFP's compiler writes: names, images, requests and limits."""

from functools import cache

from harness.simulator.cluster import Pod, Shape
from harness.simulator.profile import Controller as Settings
from harness.simulator.workflows.graph import EXECUTOR, STEP, Plan, fnv1a_on
from harness.simulator.workflows.steps import Steps
from harness.simulator.workflows.workflow import Workflow

AGENT = "-agent"  # ends the name of the pod that makes a workflow's requests
DRIVER_IMAGE = "ghcr.io/kubeflow/kfp-driver:2.17.0"
LAUNCHER_IMAGE = "ghcr.io/kubeflow/kfp-launcher:2.17.0"
EXEC_IMAGE = "quay.io/argoproj/argoexec:v4.0.8"
_DRIVER_IMAGES = (DRIVER_IMAGE, EXEC_IMAGE)
_DRIVER_LIMITS = 500, 512 * 2**20  # thousandths of a core, bytes
_DRIVER_CPU, _DRIVER_MEMORY = 0.05, 40.0 * 2**20  # in use


class Templates:
    """Makes the pods of one installation's pipelines; `Steps` and `Drivers` run them."""

    def __init__(self, settings: Settings, steps: Steps) -> None:
        self._driver_shape = Shape(round(settings.driver_cpu * 1000), int(settings.driver_memory))
        self._steps = steps
        self._wrapped = settings.error_retries > 0

    def pod(self, workflow: Workflow, index: int, attempt: int) -> Pod:
        """The pod of a node of the workflow's graph; attempts count from 1."""
        plan = workflow.graph.plans[index]
        if plan.role == STEP:
            return self._step(workflow, index, plan)
        container, role = plan.container, plan.role
        path = node_path(plan, attempt, wrapped=self._wrapped)
        number = fnv1a_on(workflow.hash, path)
        executes = role == EXECUTOR
        pod = Pod(
            f"{workflow.name}-{plan.template}-{number}",
            workflow.namespace,
            self._steps.shape(plan) if executes else self._driver_shape,
            _step_images(container.image) if executes else _DRIVER_IMAGES,
            owner=workflow, index=index, role=role, task=plan.task, path=path,
        )  # fmt: skip
        if executes:
            pod.limit_cpu, pod.limit_memory = container.limit_cpu, container.limit_memory
            pod.labels, pod.deadline_s = dict(container.labels), container.deadline_s
        else:
            pod.limit_cpu, pod.limit_memory = _DRIVER_LIMITS
            pod.usage_cpu, pod.usage_memory = _DRIVER_CPU, _DRIVER_MEMORY
        return pod

    def _step(self, workflow: Workflow, index: int, plan: Plan) -> Pod:
        """The pod of a template that is no pipeline's; that of a workflow with a single one has the workflow's name."""
        container, number = plan.container, fnv1a_on(workflow.hash, plan.path)
        name = f"{plan.template}-{number}" if plan.path != AGENT else f"{number}{AGENT}"
        pod = Pod(
            f"{workflow.name}-{name}" if plan.path else workflow.name, workflow.namespace,
            self._steps.shape(plan), (container.image, *container.more_images, EXEC_IMAGE),
            owner=workflow, index=index, role=STEP, task=plan.task, path=plan.path,
        )  # fmt: skip
        pod.limit_cpu, pod.limit_memory = container.limit_cpu, container.limit_memory
        pod.labels, pod.deadline_s = dict(container.labels), container.deadline_s
        return pod


def node_path(plan: Plan, attempt: int, *, wrapped: bool) -> str:
    """A pod's node after the workflow's name; attempts count from 1.

    `wrapped` is whether KFP's ConfigMap makes every node, the workflow's own too, one that may be retried: Argo then
    names its attempts ``(0)``, ``(1)`` ….
    """
    if wrapped:
        return f"(0).{plan.path}({attempt - 1})"
    path = plan.path.replace("(0)", "")
    return f".{path}({attempt - 1})" if plan.container.retries else f".{path}"


@cache
def _step_images(image: str) -> tuple[str, ...]:
    return (image, LAUNCHER_IMAGE, EXEC_IMAGE)
