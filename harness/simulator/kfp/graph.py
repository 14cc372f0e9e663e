"""A compiled pipeline as the pods it becomes: one flat graph, made once per pipeline and shared by its runs.

A run has 2N+1 pods: the root driver, and for each task a driver and an executor; each nested pipeline, condition, loop
and loop iteration has a driver too. Dependencies are between pods, so running a pipeline is counting down.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_duration, parse_quantity
from harness.simulator.cluster import Requirement, Shape, Toleration

Spec = Mapping[str, Any]
DAG_DRIVER, CONTAINER_DRIVER, EXECUTOR, IMPORTER, JOIN = (
    "dag-driver",
    "container-driver",
    "executor",
    "importer",
    "join",
)
# The Argo templates behind the roles: part of the pods' names.
TEMPLATES = {
    DAG_DRIVER: "system-dag-driver",
    CONTAINER_DRIVER: "system-container-driver",
    EXECUTOR: "system-container-impl",
    IMPORTER: "system-importer",
}


_ANY = Shape()


@dataclass(frozen=True, slots=True)
class Container:
    """What a step's pod runs and asks for. `cpu` in thousandths of a core, `memory` in bytes, 0 is not given."""

    image: str = ""
    shape: Shape = _ANY
    limit_cpu: int = 0
    limit_memory: int = 0
    command: tuple[str, ...] = ()
    retries: int = 0
    backoff_s: float = 0.0
    backoff_factor: float = 2.0
    backoff_max_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """One pod of the graph, or the end of a nested pipeline (a join, which needs no pod).

    Attributes:
        waits: how many others it waits for.
        then: who waits for it.
        reads: whose outputs it reads.
        always: it runs whether or not what it waits for went well (an exit handler's clean-up).
        cache_key: two executors with equal keys compute the same; "" where that can't be known.
    """

    role: str
    task: str
    path: str
    waits: int
    then: tuple[int, ...]
    parent: int = -1  # the driver of the pipeline it belongs to
    container: Container = Container()
    reads: tuple[int, ...] = ()
    always: bool = False
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """All pods of one pipeline, drivers first wherever that is their order."""

    plans: tuple[Plan, ...]

    @property
    def pods(self) -> int:
        """Pods of a run in which everything runs once."""
        return sum(1 for plan in self.plans if plan.role != JOIN)


@dataclass(slots=True)
class _Draft:
    role: str
    task: str
    path: str
    needs: list[int]
    parent: int = -1
    container: Container = Container()
    reads: list[int] = field(default_factory=list)
    always: bool = False
    cached: bool = False


def flatten(spec: Spec, platform: Spec, parameters: Mapping[str, object], loop_iterations: int) -> Graph:
    """The pods of a pipeline.

    Args:
        spec: the compiled PipelineSpec.
        platform: the platform spec's ``platforms.kubernetes.deploymentSpec.executors``.
        parameters: of the run; loops over them are as long as they are.
        loop_iterations: of loops whose length only an earlier step knows.

    Raises:
        ConfigError: the spec refers to what it does not have.
    """
    builder = _Builder(spec, platform, loop_iterations)
    try:
        builder.dag(spec["root"]["dag"], [], _Place("root", -1, parameters), driver="root-driver", task="")
    except KeyError as error:
        raise ConfigError(f"the pipeline spec lacks {error}", "compile it again with kfp 2") from error
    return builder.graph()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something stands: its own path, its enclosing pipeline's driver, and what is known of its parameters."""

    path: str
    parent: int
    scope: Mapping[str, object]


class _Builder:
    """Walks nested pipelines and appends one draft per pod."""

    def __init__(self, spec: Spec, platform: Spec, loop_iterations: int) -> None:
        self._components: Spec = spec.get("components", {})
        self._executors: Spec = spec.get("deploymentSpec", {}).get("executors", {})
        self._platform = platform
        self._loop_iterations = loop_iterations
        self._drafts: list[_Draft] = []

    def graph(self) -> Graph:
        then: list[list[int]] = [[] for _ in self._drafts]
        for index, draft in enumerate(self._drafts):
            for needed in draft.needs:
                then[needed].append(index)
        return Graph(
            tuple(
                Plan(
                    d.role, d.task, d.path, len(d.needs), tuple(then[i]), d.parent, d.container, tuple(d.reads),
                    d.always, d.cached,
                )
                for i, d in enumerate(self._drafts)
            )
        )  # fmt: skip

    def _add(self, draft: _Draft) -> int:
        self._drafts.append(draft)
        return len(self._drafts) - 1

    def dag(self, dag: Spec, needs: list[int], place: _Place, *, driver: str, task: str, always: bool = False) -> int:
        """Driver, tasks and end of one (nested) pipeline; returns the index of its end."""
        outside, _, _ = place.path.rpartition(".")
        path = f"{outside}.{driver}" if outside else driver
        first = self._add(_Draft(DAG_DRIVER, task, path, needs, place.parent, always=always))
        inside = _Place(place.path, first, place.scope)
        ends: dict[str, int] = {}
        tasks: Spec = dag["tasks"]
        for name in _in_order(tasks):
            ends[name] = self._task(name, tasks[name], ends, inside)
        return self._add(_Draft(JOIN, task, place.path, [first, *ends.values()], first))

    def _task(self, name: str, task: Spec, ends: Mapping[str, int], pipeline: _Place) -> int:
        component: Spec = self._components[task["componentRef"]["name"]]
        needs = [pipeline.parent, *(ends[each] for each in task.get("dependentTasks", ()))]
        always = task.get("triggerPolicy", {}).get("strategy") == "ALL_UPSTREAM_TASKS_COMPLETED"
        here = _Place(f"{pipeline.path}.{name}", pipeline.parent, _inner_scope(task, pipeline.scope))
        if "dag" not in component:
            return self._container(name, task, needs, here, always=always)
        if "parameterIterator" in task or "artifactIterator" in task:
            return self._loop(name, task, needs, here, _items(task, here.scope))
        return self.dag(component["dag"], needs, here, driver=f"{name}-driver", task=name, always=always)

    def _loop(self, name: str, task: Spec, needs: list[int], here: _Place, items: list[Any] | None) -> int:
        dag: Spec = self._components[task["componentRef"]["name"]]["dag"]
        count = self._loop_iterations if items is None else len(items)
        most = int(task.get("iteratorPolicy", {}).get("parallelismLimit", 0) or 0)
        driver = self._add(_Draft(DAG_DRIVER, name, f"{here.path}-driver", needs, here.parent))
        ends: list[int] = []
        for k in range(count):
            # With a limit, iteration k begins when iteration k - most is over.
            before = [ends[k - most]] if most and k >= most else []
            item = {str(task["parameterIterator"]["itemInput"]): items[k]} if items is not None else {}
            place = _Place(f"{here.path}.iteration({k}:{k})", driver, {**here.scope, **item})
            ends.append(self.dag(dag, [driver, *before], place, driver=f"iteration-driver({k}:{k})", task=name))
        return self._add(_Draft(JOIN, name, here.path, [driver, *ends], driver))

    def _container(self, name: str, task: Spec, needs: list[int], here: _Place, *, always: bool) -> int:
        label = self._components[task["componentRef"]["name"]]["executorLabel"]
        executor: Spec = self._executors[label]
        if "importer" in executor:
            return self._add(_Draft(IMPORTER, name, here.path, needs, here.parent, always=always))
        cached = bool(task.get("cachingOptions", {}).get("enableCache"))
        retry: Spec = task.get("retryPolicy", {})
        container = _container(executor.get("container", {}), self._platform.get(label, {}), retry)
        driver = self._add(_Draft(CONTAINER_DRIVER, name, f"{here.path}-driver", needs, here.parent, always=always))
        path = f"{here.path}.executor"
        return self._add(_Draft(EXECUTOR, name, path, [driver], here.parent, container, needs[1:], cached=cached))


def _in_order(tasks: Spec) -> list[str]:
    """Task names, each after those it depends on."""
    ordered: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ConfigError(f"the tasks {', '.join(above)} wait for each other", "compile the pipeline again")
        if name not in ordered:
            for needed in tasks[name].get("dependentTasks", ()):
                visit(needed, (*above, name))
            ordered[name] = None

    for name in tasks:
        visit(name, ())
    return list(ordered)


def _inner_scope(task: Spec, scope: Mapping[str, object]) -> dict[str, object]:
    """The values of a task's parameters, as far as they are known before anything runs."""
    inner: dict[str, object] = {}
    for name, given in task.get("inputs", {}).get("parameters", {}).items():
        if "runtimeValue" in given:
            constant = given["runtimeValue"].get("constant")
            if constant is not None:
                inner[name] = constant
        elif given.get("componentInputParameter") in scope:
            inner[name] = scope[given["componentInputParameter"]]
    return inner


def _items(task: Spec, scope: Mapping[str, object]) -> list[Any] | None:
    items: Spec = task.get("parameterIterator", {}).get("items", {})
    given = items.get("raw") if "raw" in items else scope.get(str(items.get("inputParameter")))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return None
    return given if isinstance(given, list) else None


def _container(container: Spec, platform: Spec, retry: Spec) -> Container:
    resources: Spec = container.get("resources", {})
    accelerator: Spec = resources.get("accelerator", {})
    gpus = _number(accelerator.get("resourceCount", accelerator.get("count", 0)))
    shape = Shape(
        round(1000 * _amount(resources, "resourceCpuRequest", "cpuRequest", 1.0)),
        int(_amount(resources, "resourceMemoryRequest", "memoryRequest", 1e9)),
        int(gpus),
        _requirements(platform),
        tuple(
            Toleration(t.get("key", ""), t.get("operator", "Equal"), t.get("value", ""), t.get("effect", ""))
            for t in platform.get("tolerations", ())
        ),
    )
    return Container(
        image=str(container.get("image", "")),
        shape=shape,
        limit_cpu=round(1000 * _amount(resources, "resourceCpuLimit", "cpuLimit", 1.0)),
        limit_memory=int(_amount(resources, "resourceMemoryLimit", "memoryLimit", 1e9)),
        command=tuple(map(str, container.get("command", ()))),
        retries=int(retry.get("maxRetryCount", 0)),
        backoff_s=parse_duration(str(retry.get("backoffDuration", "0s"))),
        backoff_factor=float(retry.get("backoffFactor", 2.0)),
        backoff_max_s=parse_duration(str(retry.get("backoffMaxDuration", "3600s"))),
    )


def _amount(resources: Spec, name: str, older: str, older_unit: float) -> float:
    """A resource as a quantity, or as the plain number of older compilers; 0 where it is a run's parameter."""
    if name in resources:
        return _number(resources[name])
    return _number(resources.get(older, 0)) * older_unit


def _number(given: object) -> float:
    try:
        return parse_quantity(given) if isinstance(given, str | int | float) else 0.0
    except ConfigError:
        return 0.0  # "{{$.inputs.parameters[…]}}": known to the step only


def _requirements(platform: Spec) -> tuple[Requirement, ...]:
    labels: Spec = platform.get("nodeSelector", {}).get("labels", {})
    wanted = [Requirement(key, "In", (str(value),)) for key, value in labels.items()]
    for term in platform.get("nodeAffinity", ()):
        if "weight" in term:
            continue  # a preference, not a requirement
        wanted.extend(
            Requirement(each["key"], each["operator"], tuple(map(str, each.get("values", ()))))
            for each in term.get("matchExpressions", ())
        )
    return tuple(wanted)


_FNV_BASIS = 0x811C9DC5


def fnv1a(text: str, begun: int = _FNV_BASIS) -> int:
    """The 32-bit FNV-1a hash: Argo ends a pod's name with the hash of its node's name.

    `begun` is the hash of what comes before the text.
    """
    value = begun
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
