"""A compiled pipeline as the pods it becomes: one flat graph, made once per pipeline and shared by its runs.

A run has 2N+1 pods: the root driver, and for each task a driver and an executor; each nested pipeline, condition, loop
and loop iteration has a driver too. Dependencies are between pods, so running a pipeline is counting down. What each
becomes, and what waits for what, is as KFP's compiler writes it (backend/src/v2/compiler/argocompiler/dag.go).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import md5
from typing import Any

from harness.model.errors import ConfigError
from harness.model.units import parse_duration, parse_quantity
from harness.simulator.cluster import Requirement, Shape, Toleration
from harness.simulator.kfp.conditions import Computed, Condition, Given, Known, Source

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
# Images of tasks that the driver itself does (kfp-kubernetes' CreatePVC and DeletePVC): they have no executor.
_DRIVER_ONLY = {"argostub/createpvc", "argostub/deletepvc"}

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
        cache_key: executors with equal keys compute the same, as far as the run's parameters in `varies` are equal too;
            "" where the pipeline does not want the cache.
        condition: what the driver evaluates; where it does not hold, nothing of the task is made but the driver.
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
    cache_key: str = ""
    varies: tuple[str, ...] = ()
    condition: Condition | None = None


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
    cache_key: str = ""
    varies: tuple[str, ...] = ()
    condition: Condition | None = None


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
    builder = _Builder(spec, platform, parameters, loop_iterations)
    inputs: Spec = spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {})
    place = _Place("root", -1, {name: Given(name) for name in inputs})
    try:
        builder.dag(spec["root"]["dag"], [], place, driver="root-driver", task="")
    except KeyError as error:
        raise ConfigError(f"the pipeline spec lacks {error}", "compile it again with kfp 2") from error
    return builder.graph()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where something stands: its own path, its enclosing pipeline's driver, and where its parameters come from."""

    path: str
    parent: int
    scope: Mapping[str, Source]


class _Builder:
    """Walks nested pipelines and appends one draft per pod."""

    def __init__(self, spec: Spec, platform: Spec, parameters: Mapping[str, object], loop_iterations: int) -> None:
        self._pipeline = str(spec.get("pipelineInfo", {}).get("name", ""))
        self._components: Spec = spec.get("components", {})
        self._executors: Spec = spec.get("deploymentSpec", {}).get("executors", {})
        self._platform = platform
        self._parameters = parameters
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
                    d.always, d.cache_key, d.varies, d.condition,
                )
                for i, d in enumerate(self._drafts)
            )
        )  # fmt: skip

    def _add(self, draft: _Draft) -> int:
        self._drafts.append(draft)
        return len(self._drafts) - 1

    def dag(
        self, dag: Spec, needs: list[int], place: _Place, *, driver: str, task: str, always: bool = False,
        condition: Condition | None = None,
    ) -> int:  # fmt: skip
        """Driver, tasks and end of one (nested) pipeline; returns the index of its end."""
        outside, _, _ = place.path.rpartition(".")
        path = f"{outside}.{driver}" if outside else driver
        first = self._add(_Draft(DAG_DRIVER, task, path, needs, place.parent, always=always, condition=condition))
        inside = _Place(place.path, first, place.scope)
        ends: dict[str, int] = {}
        tasks: Spec = dag["tasks"]
        for name in _in_order(tasks):
            ends[name] = self._task(name, tasks[name], ends, inside)
        return self._add(_Draft(JOIN, task, place.path, [first, *ends.values()], first))

    def _task(self, name: str, task: Spec, ends: Mapping[str, int], pipeline: _Place) -> int:
        component: Spec = self._components[task["componentRef"]["name"]]
        needs = [pipeline.parent, *(ends[each] for each in _dependencies(task))]
        policy: Spec = task.get("triggerPolicy", {})
        always = policy.get("strategy") == "ALL_UPSTREAM_TASKS_COMPLETED"
        scope = self._inner_scope(task, component, ends, pipeline.scope)
        condition = Condition(policy["condition"], scope) if policy.get("condition") else None
        here = _Place(f"{pipeline.path}.{name}", pipeline.parent, scope)
        if "dag" not in component:
            return self._container(name, task, needs, here, always=always, condition=condition)
        if "parameterIterator" in task or "artifactIterator" in task:
            return self._loop(name, task, needs, here, condition)
        return self.dag(
            component["dag"], needs, here, driver=f"{name}-driver", task=name, always=always, condition=condition
        )

    def _loop(self, name: str, task: Spec, needs: list[int], here: _Place, condition: Condition | None) -> int:
        component: Spec = self._components[task["componentRef"]["name"]]
        items = self._items(task, here.scope)
        count = self._loop_iterations if items is None else len(items)
        most = int(task.get("iteratorPolicy", {}).get("parallelismLimit", 0) or 0)
        driver = self._add(_Draft(DAG_DRIVER, name, f"{here.path}-driver", needs, here.parent, condition=condition))
        ends: list[int] = []
        for k in range(count):
            # With a limit, iteration k begins when iteration k - most is over.
            before = [ends[k - most]] if most and k >= most else []
            item = {}
            if "parameterIterator" in task:
                source = Computed(driver, f"iteration {k}") if items is None else Known(items[k])
                item = {str(task["parameterIterator"]["itemInput"]): source}
            place = _Place(f"{here.path}.iteration({k}:{k})", driver, {**here.scope, **item})
            iteration = f"iteration-driver({k}:{k})"
            ends.append(self.dag(component["dag"], [driver, *before], place, driver=iteration, task=name))
        return self._add(_Draft(JOIN, name, here.path, [driver, *ends], driver))

    def _container(
        self, name: str, task: Spec, needs: list[int], here: _Place, *, always: bool, condition: Condition | None
    ) -> int:
        label = self._components[task["componentRef"]["name"]]["executorLabel"]
        executor: Spec = self._executors[label]
        if "importer" in executor:
            return self._add(_Draft(IMPORTER, name, here.path, needs, here.parent, always=always))
        retry: Spec = task.get("retryPolicy", {})
        container = _container(executor.get("container", {}), self._platform.get(label, {}), retry)
        path = here.path if container.image in _DRIVER_ONLY else f"{here.path}-driver"
        driver = self._add(_Draft(CONTAINER_DRIVER, name, path, needs, here.parent, always=always, condition=condition))
        if container.image in _DRIVER_ONLY:
            return driver
        draft = _Draft(EXECUTOR, name, f"{here.path}.executor", [driver], here.parent, container, needs[1:])
        if task.get("cachingOptions", {}).get("enableCache"):
            draft.cache_key, draft.varies = self._cache_key(executor, here.scope, needs[1:])
        return self._add(draft)

    def _cache_key(self, executor: Spec, scope: Mapping[str, Source], needs: list[int]) -> tuple[str, tuple[str, ...]]:
        """What a step computes from what, and the run's parameters on which that depends."""
        ordered = sorted(scope.items())
        varies = [source.name for _, source in ordered if isinstance(source, Given)]
        inputs = [(name, each.value if isinstance(each, Known) else type(each).__name__) for name, each in ordered]
        upstream: list[str] = []
        for draft in (self._drafts[each] for index in needs for each in (self._within(index) or (index,))):
            upstream.append(draft.cache_key or draft.path)
            varies += draft.varies
        text = json.dumps([self._pipeline, executor, inputs, upstream], sort_keys=True, default=str)
        return md5(text.encode(), usedforsecurity=False).hexdigest(), tuple(varies)

    def _within(self, end: int) -> list[int]:
        """The executors in the nested pipeline that ends there."""
        if self._drafts[end].role != JOIN:
            return []
        return [k for k in range(self._drafts[end].parent, end) if self._drafts[k].role == EXECUTOR]

    # --- parameters ---------------------------------------------------------------------------------------------

    def _inner_scope(
        self, task: Spec, component: Spec, ends: Mapping[str, int], scope: Mapping[str, Source]
    ) -> dict[str, Source]:
        """Where a task's parameters come from."""
        inner: dict[str, Source] = {}
        types: Spec = component.get("inputDefinitions", {}).get("parameters", {})
        for name, given in task.get("inputs", {}).get("parameters", {}).items():
            produced: Spec = given.get("taskOutputParameter", {})
            if "runtimeValue" in given:
                inner[name] = Known(given["runtimeValue"].get("constant"))
            elif produced:
                inner[name] = self._output(ends[produced["producerTask"]], str(produced.get("outputParameterKey")))
            elif given.get("componentInputParameter") in scope:
                inner[name] = scope[given["componentInputParameter"]]
            if "parameterExpressionSelector" in given and name in inner:
                inner[name] = self._selected(inner[name], str(given["parameterExpressionSelector"]))
            source = inner.get(name)
            if isinstance(source, Known) and types.get(name, {}).get("parameterType") == "STRING":
                inner[name] = Known(_text(source.value))
        return inner

    def _output(self, end: int, name: str) -> Source:
        """An output of what ends there: of a nested pipeline with one step, that step's."""
        within = self._within(end)
        return Computed(within[0] if len(within) == 1 else end, name)

    def _selected(self, source: Source, selector: str) -> Source:
        """A part of a loop's item: ``parseJson(string_value)["a"]``."""
        keys = re.findall(r'\["([^"]*)"\]', selector)
        try:
            value = self._now(source)
            for key in keys:
                value = (json.loads(value) if isinstance(value, str) else value)[key]  # type: ignore[index]  # KeyError, TypeError
        except (LookupError, TypeError, ValueError):
            return Computed(source.step, f"{source.name}.{selector}") if isinstance(source, Computed) else source
        return Known(value)

    def _now(self, source: Source | None) -> object:
        """A value, where it is known before anything runs; a LookupError where it is not."""
        if isinstance(source, Known):
            return source.value
        if isinstance(source, Given):
            return self._parameters[source.name]
        raise LookupError

    def _items(self, task: Spec, scope: Mapping[str, Source]) -> list[Any] | None:
        items: Spec = task.get("parameterIterator", {}).get("items", {})
        try:
            given = items["raw"] if "raw" in items else self._now(scope.get(str(items.get("inputParameter"))))
            if isinstance(given, str):
                given = json.loads(given)
        except (LookupError, ValueError):
            return None
        return given if isinstance(given, list) else None


def _dependencies(task: Spec) -> list[str]:
    """The tasks that come before: those it names, and those whose outputs it reads."""
    inputs: Spec = task.get("inputs", {})
    given = [*inputs.get("parameters", {}).values(), *inputs.get("artifacts", {}).values()]
    read = (each.get("taskOutputParameter") or each.get("taskOutputArtifact") for each in given)
    return list(dict.fromkeys((*task.get("dependentTasks", ()), *(each["producerTask"] for each in read if each))))


def _text(value: object) -> object:
    """A value as a parameter of the type STRING: numbers without a point where they are whole."""
    if isinstance(value, str):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value, default=str)  # type: ignore[call-overload]  # a float, see above


def _in_order(tasks: Spec) -> list[str]:
    """Task names, each after those it depends on."""
    ordered: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ConfigError(f"the tasks {', '.join(above)} wait for each other", "compile the pipeline again")
        if name not in ordered:
            for needed in _dependencies(tasks[name]):
                visit(needed, (*above, name))
            ordered[name] = None

    for name in tasks:
        visit(name, ())
    return list(ordered)


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


_FNV_BASIS, _FNV_PRIME = 0x811C9DC5, 0x01000193


def fnv1a(text: str, begun: int = _FNV_BASIS) -> int:
    """The 32-bit FNV-1a hash: Argo ends a pod's name with the hash of its node's name.

    `begun` is the hash of what comes before the text.
    """
    value = begun
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


def fnv1a_on(begun: int, text: str) -> int:
    """``fnv1a(text, begun)`` where the same few texts come again and again.

    The exclusive or changes the lowest byte only, so the text does to the rest what one multiplication does.
    """
    lowest = begun & 0xFF
    hashed, factor = _fnv1a_after(lowest, text)
    return (hashed + (begun - lowest) * factor) & 0xFFFFFFFF


@lru_cache(2**16)
def _fnv1a_after(lowest: int, text: str) -> tuple[int, int]:
    return fnv1a(text, lowest), pow(_FNV_PRIME, len(text.encode()), 2**32)
