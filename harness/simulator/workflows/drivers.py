"""Driver pods: they evaluate a task's condition and look its step up in the execution cache."""

from random import Random

from harness.simulator.cluster import Pod
from harness.simulator.profile import Controller as Settings
from harness.simulator.workflows.graph import Plan
from harness.simulator.workflows.parameters import Given, Known, Source
from harness.simulator.workflows.steps import Steps
from harness.simulator.workflows.workflow import Workflow


class Drivers:
    """Runs driver pods and knows their results. `times` draws durations, `choices` the values that are unknown."""

    def __init__(self, settings: Settings, steps: Steps, *, times: Random, choices: Random, caching: bool) -> None:
        self.slowdown = 1.0
        self._settings = settings
        self._steps = steps
        self._times = times
        self._choices = choices
        self._caching = caching
        self._computed: set[tuple[str, ...]] = set()

    def run(self, pod: Pod) -> None:
        """Run the main container, which has just started."""
        assert pod.node is not None
        pod.station = pod.node.processor
        takes_s = (
            self._settings.driver.sample(self._times, {}) if pod.measured is None else pod.measured.work
        ) * self.slowdown
        pod.job = pod.station.add(takes_s, pod.usage_cpu, self.end, pod)

    def end(self, pod: Pod) -> None:
        """End a pod whose work is done."""
        self._steps.logs.end(pod)

    def remember(self, workflow: Workflow, plan: Plan) -> None:
        """Put a computed step into the execution cache."""
        if plan.cache_key:
            self._computed.add(_cache_key(workflow, plan))

    def was_computed(self, workflow: Workflow, plan: Plan) -> bool:
        """Whether the cache is on and has an equal component with equal inputs."""
        return self._caching and bool(plan.cache_key) and _cache_key(workflow, plan) in self._computed

    def holds(self, workflow: Workflow, plan: Plan) -> bool:
        """Whether the task's condition holds, if it has one; unknown values are drawn once per run."""
        if plan.condition is None:
            return True

        def read(source: Source) -> object:
            if isinstance(source, Known):
                return source.value
            if isinstance(source, Given):
                return workflow.parameters[source.name]
            results = self._steps.model(workflow.graph.plans[source.step].task).results[source.name]
            return workflow.drawn.setdefault(source, self._choices.choice(results))

        def draw(key: object) -> bool:
            holds = self._choices.random() < self._settings.condition_holds
            return bool(workflow.drawn.setdefault(key, holds))

        return plan.condition.holds(read, draw)


def _cache_key(workflow: Workflow, plan: Plan) -> tuple[str, ...]:
    return (plan.cache_key, *(repr(workflow.parameters.get(name)) for name in plan.varies))
