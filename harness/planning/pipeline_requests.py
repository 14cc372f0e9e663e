"""What a compiled pipeline (KFP IR) requests: per task, and at most at once in one run."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from graphlib import TopologicalSorter
from typing import Any

from harness import reading
from harness.analysis.cost.resources import Resources
from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.planning.jobs_per_node import RunRequests
from harness.prepare.settings import RESOURCE_KEYS
from harness.prepare.steps import DRIVER_ONLY, tasks_of
from harness.simulator.workflows.parameters import Given, Source, dependencies, inner_scope, items

_PACKAGE = "the pipeline"
_DRIVER = RunRequests(0.1, 64 * 2**20, 1)  # what KFP requests for a driver pod


def requests_by_task(package: bytes, source: object = _PACKAGE) -> dict[str, Resources]:
    """Requests and limits by task; `source` names the pipeline in errors.

    Raises:
        ConfigError: it is not compiled IR, or a quantity in it can't be parsed.
    """
    with reading.structured(source):
        spec = _spec(package, source)
        executors = spec.get("deploymentSpec", {}).get("executors", {})
        labels = {task.name: task.label for task in tasks_of(spec) if task.label}
        return {name: _resources(executors.get(label, {}).get("container", {})) for name, label in labels.items()}


def run_requests(package: bytes, *, with_drivers: bool = True) -> RunRequests:
    """The most that one run requests at once: tasks of which none waits for another, in nested pipelines and loops too.

    A loop over the output of a step counts as long as its parallelism allows, or with one iteration without a limit.

    Args:
        package: the compiled pipeline.
        with_drivers: drivers run on the same nodes as the steps.

    Raises:
        ConfigError: it is not compiled IR, or a quantity in it can't be parsed.
    """
    with reading.structured(_PACKAGE):
        spec = _spec(package)
        inputs = spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {})
        pipeline = _Pipeline(
            spec.get("components", {}),
            spec.get("deploymentSpec", {}).get("executors", {}),
            {name: each["defaultValue"] for name, each in inputs.items() if "defaultValue" in each},
            _DRIVER if with_drivers else RunRequests(0.0, 0.0, 0.0),
        )
        return pipeline.of_tasks(spec.get("root", {}), {name: Given(name) for name in inputs})


@dataclass(frozen=True, slots=True)
class _Pipeline:
    """A pipeline's components and executors, the defaults of its parameters, and what each driver requests."""

    components: Mapping[str, Any]
    executors: Mapping[str, Any]
    defaults: Mapping[str, object]
    driver: RunRequests
    known: dict[tuple[str, str], RunRequests] = field(default_factory=dict)  # by component and scope

    def of_tasks(self, component: Mapping[str, Any], scope: Mapping[str, Source]) -> RunRequests:
        """The most that a pipeline's tasks request at once, each in place of its driver, which has ended by then."""
        tasks: Mapping[str, Any] = component.get("dag", {}).get("tasks", {})
        needs = {name: dependencies(task) for name, task in tasks.items()}
        order = list(TopologicalSorter(needs).static_order())
        outputs = dict.fromkeys(tasks, -1)
        requested = [_larger(self.driver, self._of_task(tasks[name], outputs, scope)) for name in order]
        place = {name: k for k, name in enumerate(order)}
        waits = [(place[before], place[name]) for name in order for before in needs[name]]
        at_once = [most_at_once(each, waits) for each in zip(*map(astuple, requested), strict=True)]
        return _larger(self.driver, RunRequests(*at_once)) if order else self.driver

    def _of_task(self, task: Mapping[str, Any], outputs: Mapping[str, int], scope: Mapping[str, Source]) -> RunRequests:
        name = task.get("componentRef", {}).get("name", "")
        component = self.components.get(name, {})
        if "dag" not in component:
            container = self.executors.get(component.get("executorLabel"), {}).get("container", {})
            if "executorLabel" in component and container.get("image") in DRIVER_ONLY:
                return self.driver
            resources = _resources(container)
            return RunRequests(resources.cpu_request or 0.0, resources.memory_request or 0.0, 1.0)
        types = component.get("inputDefinitions", {}).get("parameters", {})
        inside = inner_scope(task, types, outputs, scope, self.defaults)
        times = self._at_once(task, inside)
        key = name, repr(inside)
        if key not in self.known:
            self.known[key] = self.of_tasks(component, inside)
        return RunRequests(*(times * each for each in astuple(self.known[key])))

    def _at_once(self, task: Mapping[str, Any], scope: Mapping[str, Source]) -> int:
        """Iterations of a task at the same time: 1 of one that is no loop."""
        if "parameterIterator" not in task and "artifactIterator" not in task:
            return 1
        limit = int(task.get("iteratorPolicy", {}).get("parallelismLimit", 0) or 0)
        over = items(task, scope, self.defaults)
        if over is None:
            return limit or 1
        return min(len(over), limit or len(over))


def most_at_once(amounts: Sequence[float], waits: Sequence[tuple[int, int]]) -> float:
    """The largest sum of amounts of tasks of which none waits for another, directly or indirectly.

    Tasks before it have ended and tasks after it have not begun: the largest cut of the order (Dilworth 1950; as a
    linear program, whose corners are whole numbers: Fulkerson 1956).

    Args:
        amounts: of each task.
        waits: pairs of tasks (before, after).
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    count = len(amounts)
    # begun[k] <= 1, ended[k] <= begun[k], and begun[after] <= ended[before]; a task runs where begun - ended is 1.
    before, after = np.array(waits, dtype=np.int64).reshape(-1, 2).T
    rows = np.arange(count + before.size)
    lower = np.concatenate((np.arange(count) + count, after))
    upper = np.concatenate((np.arange(count), before + count))
    values = np.concatenate((np.ones(rows.size), -np.ones(rows.size)))
    limits = coo_array((values, (np.tile(rows, 2), np.concatenate((lower, upper)))), shape=(rows.size, 2 * count))
    gain = np.concatenate((np.negative(amounts), amounts))
    return -float(linprog(gain, A_ub=limits, b_ub=np.zeros(rows.size), bounds=(0, 1)).fun)


def _larger(first: RunRequests, second: RunRequests) -> RunRequests:
    return RunRequests(*map(max, astuple(first), astuple(second)))


def _spec(package: bytes, source: object = _PACKAGE) -> dict[str, Any]:
    spec = next(iter(reading.parse_yaml(package, source)), None)
    if not isinstance(spec, dict):
        raise ConfigError(f"{source} is not a compiled pipeline", "give its IR YAML")
    return spec


def _resources(container: Mapping[str, Any]) -> Resources:
    given = container.get("resources", {})
    return Resources(**{name: _quantity(given, *keys) for name, keys in RESOURCE_KEYS.items()})


def _quantity(given: Mapping[str, Any], text: str, number: str, unit: float) -> float | None:
    if text in given:
        return parse_quantity(str(given[text]))
    return float(given[number]) * unit if number in given else None
