"""What a compiled pipeline (KFP IR) requests: per task, and at most at once in one run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from graphlib import TopologicalSorter
from typing import Any

from harness import reading
from harness.analysis.cost.resources import Resources
from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.planning.jobs_per_node import RunRequests
from harness.prepare.settings import RESOURCE_KEYS
from harness.prepare.steps import DRIVER_ONLY
from harness.simulator.workflows.parameters import Given, Source, dependencies, inner_scope, items

_PACKAGE = "the pipeline"
_DRIVER = RunRequests(0.1, 64 * 2**20, 1)  # what KFP requests for a driver pod


def requests_by_task(package: bytes) -> dict[str, Resources]:
    """Requests and limits by task.

    Raises:
        ConfigError: it is not compiled IR, or a quantity in it can't be parsed.
    """
    with reading.structured(_PACKAGE):
        return _by_task(_spec(package))


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
        component = self.components.get(task.get("componentRef", {}).get("name", ""), {})
        if "dag" not in component:
            container = self.executors.get(component.get("executorLabel"), {}).get("container", {})
            if "executorLabel" in component and container.get("image") in DRIVER_ONLY:
                return self.driver
            given = _resources(container)
            return RunRequests(given.cpu_request or 0.0, given.memory_request or 0.0, 1.0)
        types = component.get("inputDefinitions", {}).get("parameters", {})
        inside = inner_scope(task, types, outputs, scope, self.defaults)
        times = self._at_once(task, inside)
        return RunRequests(*(times * each for each in astuple(self.of_tasks(component, inside))))

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


def _spec(package: bytes) -> dict[str, Any]:
    spec = next(iter(reading.parse_yaml(package, _PACKAGE)), None)
    if not isinstance(spec, dict):
        raise ConfigError(f"{_PACKAGE} is not compiled", "give its IR YAML")
    return spec


def _by_task(spec: Mapping[str, Any]) -> dict[str, Resources]:
    executors = spec.get("deploymentSpec", {}).get("executors", {})
    found = {}
    for task, label in _tasks(spec, spec.get("root", {})):
        found[task] = _resources(executors.get(label, {}).get("container", {}))
    return found


def _resources(container: Mapping[str, Any]) -> Resources:
    given = container.get("resources", {})
    return Resources(**{name: _quantity(given, *keys) for name, keys in RESOURCE_KEYS.items()})


def _tasks(spec: Mapping[str, Any], component: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each task that runs a container, with its executor's label; in nested pipelines too."""
    for name, task in component.get("dag", {}).get("tasks", {}).items():
        inner = spec.get("components", {}).get(task.get("componentRef", {}).get("name", ""), {})
        if "executorLabel" in inner:
            yield str(name), str(inner["executorLabel"])
        else:
            yield from _tasks(spec, inner)


def _quantity(given: Mapping[str, Any], text: str, number: str, unit: float) -> float | None:
    if text in given:
        return parse_quantity(str(given[text]))
    return float(given[number]) * unit if number in given else None
