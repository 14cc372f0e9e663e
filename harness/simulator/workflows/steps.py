"""What happens inside a step's main container: read the inputs, compute, write the outputs."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from random import Random

from harness.model.errors import ConfigError
from harness.simulator.cluster import Pod, Shape
from harness.simulator.cluster.kubelet import SIGKILLED, Kubelet
from harness.simulator.engine.distributions import Draws
from harness.simulator.profile import Step as StepModel
from harness.simulator.workflows.artifact_store import ArtifactStore, Refusal
from harness.simulator.workflows.graph import STEP, Plan
from harness.simulator.workflows.launcher import FAILED, Launch, LogArchive, download_error, upload_error
from harness.simulator.workflows.workflow import Workflow

_OOM_AT = 0.6  # share of the computation after which memory peaks
_COMMAND_FAILED = "exit status 1"


class Steps:
    """Runs executor pods according to the profile's step models.

    A step's duration is its compute time on an idle node. It grows if the CPU limit is below the step's usage, or if
    the node's pods demand more cores than it has. KFP's launcher reads inputs and writes outputs within ``main``, so
    that only its log distinguishes transfers from the computation.
    """

    def __init__(
        self,
        models: tuple[StepModel, ...],
        draws: Draws,
        store: ArtifactStore,
        kubelet: Kubelet,
        priorities: Mapping[str, int],
    ) -> None:
        for index, each in enumerate(models):
            if each.priority_class and each.priority_class not in priorities:
                raise ConfigError(
                    f"steps[{index}].priority_class: unknown class '{each.priority_class}'",
                    f"define it under priority_classes, which has: {', '.join(priorities) or 'none'}",
                )
        self.models = models
        self._priorities = priorities
        self._draws = draws
        self._store = store
        self._matched: dict[str, StepModel] = {}
        self._kubelet = kubelet
        self.logs = LogArchive(store, kubelet)
        self.cpu_factor = 1.0  # multiplies the CPU usage of steps
        self.memory_factor = 1.0

    def model(self, task: str) -> StepModel:
        """The first model that matches the task's name; the default model if none does."""
        model = self._matched.get(task)
        if model is None:
            steps = (step for step in self.models if fnmatchcase(task, step.match))
            model = self._matched[task] = next(steps, None) or StepModel()
        return model

    def shape(self, plan: Plan) -> Shape:
        """The step's requests, at least the model's."""
        shape, model = plan.container.shape, self.model(plan.task)
        return shape._replace(
            cpu=max(shape.cpu, round(model.requests_cpu * 1000)),
            memory=max(shape.memory, int(model.requests_memory)),
            priority=self._priorities.get(model.priority_class, shape.priority),
        )

    def run(self, pod: Pod) -> None:
        """Run the main container, which has just started: read the inputs first."""
        pod.launch = Launch()
        workflow, size = pod.owner, 0.0
        assert isinstance(workflow, Workflow)
        plan = workflow.graph.plans[pod.index]
        if plan.container.serves:
            return
        for value in plan.reads:
            step = workflow.steps[value]
            if step is not None:
                size += step.output
        if size:
            self._store.read(pod, size, self._compute)
        else:
            self._compute(pod, size, None)

    def _compute(self, pod: Pod, _: float, why: Refusal | None) -> None:
        if pod.finished is not None:  # while it read its inputs
            return
        if why is not None:
            self._fail(pod, download_error(why))
            return
        assert isinstance(pod.owner, Workflow)
        model, parameters = self.model(pod.task), pod.owner.amounts
        random = self._draws.of(*pod.owner.stream(pod.index))
        parts = pod.owner.graph.plans[pod.index].container.parts
        takes = self._longest_s(parts, random, parameters) if parts else model.duration.sample(random, parameters)
        cpu = model.cpu.sample(random, parameters) * self.cpu_factor
        output = model.output.sample(random, parameters)
        if pod.measured is not None:
            takes, output = pod.measured.work, pod.measured.output
        fails = random.random() < model.failing
        pod.usage_memory = model.memory.sample(random, parameters) * self.memory_factor
        limit = pod.limit_cpu / 1000
        if limit and cpu > limit:
            takes, cpu = takes * cpu / limit, limit
            assert isinstance(pod.launch, Launch)
            pod.launch.throttled = True
        if model.checkpoint_s:
            takes = _left(pod, takes, model.checkpoint_s)
        pod.usage_cpu = cpu
        assert pod.node is not None
        pod.station = pod.node.processor
        if pod.limit_memory and pod.usage_memory > pod.limit_memory:
            pod.usage_memory = float(pod.limit_memory)
            pod.job = pod.station.add(takes * _OOM_AT, cpu, self.logs.end, pod, SIGKILLED, "OOMKilled")
        elif fails:
            pod.job = pod.station.add(takes, cpu, self._fail, pod, _COMMAND_FAILED)
        else:
            pod.job = pod.station.add(takes, cpu, self._store_output, pod, output)

    def _longest_s(
        self, parts: tuple[tuple[str, tuple[str, ...]], ...], random: Random, parameters: Mapping[str, object]
    ) -> float:
        """How long several containers take, each after those that it waits for."""
        ends: dict[str, float] = {}
        for name, before in parts:
            begin = max((ends.get(each, 0.0) for each in before), default=0.0)
            ends[name] = begin + self.model(name).duration.sample(random, parameters)
        return max(ends.values())

    def _store_output(self, pod: Pod, size: float) -> None:
        assert isinstance(pod.launch, Launch)
        assert pod.station is not None
        assert pod.job is not None
        pod.launch.core_s = pod.station.work_of(pod.job)
        pod.station = pod.job = None
        if pod.role == STEP:
            self.logs.end(pod, output=size)
            return
        pod.launch.uploading = self._store.loop.now
        self._store.write(pod, size, self._stored)

    def _stored(self, pod: Pod, size: float, why: Refusal | None) -> None:
        assert isinstance(pod.launch, Launch)
        if why is not None:
            self._fail(pod, upload_error(why))
            return
        pod.launch.uploaded = self._store.loop.now
        assert isinstance(pod.owner, Workflow)
        step = pod.owner.steps[pod.index]
        assert step is not None
        step.output = size
        self.logs.end(pod)

    def _fail(self, pod: Pod, error: str) -> None:
        """End the launcher with an error that only its log holds."""
        assert isinstance(pod.launch, Launch)
        pod.launch.error = error
        self.logs.end(pod, FAILED, "Error")


def _left(pod: Pod, takes_s: float, checkpoint_s: float) -> float:
    """What an attempt has to compute, given how long the whole takes: what no checkpoint holds yet."""
    assert isinstance(pod.owner, Workflow)
    step = pod.owner.steps[pod.index]
    assert step is not None
    if step.takes_s is None:
        step.takes_s = takes_s
    elif len(step.pods) > 1:
        step.saved_s += step.pods[-2].worked_s // checkpoint_s * checkpoint_s
    return step.takes_s - step.saved_s
