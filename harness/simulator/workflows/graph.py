"""A compiled pipeline as a flat graph of pods, built once per pipeline and shared by its runs.

A run has 2N+1 pods: the root driver, and for each task a driver and an executor; each nested pipeline, condition, loop
and loop iteration has a driver too. Dependencies are between pods, so running a pipeline is counting down. The pods and
their dependencies are those of KFP's compiler (backend/src/v2/compiler/argocompiler/dag.go).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import md5
from typing import Any, NamedTuple

from harness.model.argo.nodes import FNV_PRIME, fnv1a
from harness.model.errors import ConfigError
from harness.prepare.steps import DRIVER_ONLY
from harness.simulator.workflows.containers import Container, read_container
from harness.simulator.workflows.parameters import (
    Computed,
    Condition,
    Given,
    Known,
    Source,
    dependencies,
    inner_scope,
    items,
    placed,
)

Spec = Mapping[str, Any]
DAG_DRIVER, CONTAINER_DRIVER, EXECUTOR, IMPORTER, JOIN = (
    "dag-driver",
    "container-driver",
    "executor",
    "importer",
    "join",
)
STEP = "step"  # of a workflow that no pipeline was compiled to: the pod of a template
RUNS_USER_CODE = frozenset({EXECUTOR, STEP})
# Argo's templates that the pods of pipelines are made from.
TEMPLATES = {
    DAG_DRIVER: "system-dag-driver",
    CONTAINER_DRIVER: "system-container-driver",
    EXECUTOR: "system-container-impl",
    IMPORTER: "system-importer",
}
# Argo's names of the nodes of a loop: the group of all iterations, and what each consists of.
ITERATIONS, ITERATION = "iteration-iterations", "iteration-item"
SEMAPHORES = "semaphore-config"  # KFP's ConfigMap with their limits
_MOST_PODS = 50_000  # of one pipeline, far beyond what a Workflow object can hold
ON_EXIT = ".onExit"  # ends the name of the group of an exit handler's clean-up


@dataclass(frozen=True, slots=True)
class Plan:
    """One pod of the graph, or the end of a nested pipeline (a join, which needs no pod).

    Attributes:
        path: Argo's name of its node within the workflow, without its own attempt: ``root(0).train(0).executor`` is in
            the first attempts of the groups ``root`` and ``train``.
        waits: number of plans that it waits for.
        then: indices of the plans that wait for it.
        reads: indices of the plans whose outputs it reads.
        always: it runs even if a dependency failed (an exit handler's clean-up).
        cache_key: executors with equal keys compute the same if the run's parameters in `varies` are equal too; "" if
            the pipeline does not enable the cache.
        condition: evaluated by the driver; if false, the task has no pod but the driver.
        template: Argo's template that its pod is made from.
    """

    role: str
    task: str
    path: str
    waits: int = 0
    then: tuple[int, ...] = ()
    parent: int = -1  # index of the driver of its pipeline
    container: Container = Container()
    reads: tuple[int, ...] = ()
    always: bool = False
    cache_key: str = ""
    varies: tuple[str, ...] = ()
    condition: Condition | None = None
    template: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a whole workflow, in seconds; 0 is none: how long it may run, and is kept after its success or failure.

    `locks` is its ``synchronization``, as of Argo's workflows.
    """

    deadline_s: float = 0.0
    keep_success_s: float = 0.0
    keep_failure_s: float = 0.0
    locks: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, config: Spec) -> "Limits":
        """As a ``PipelineConfig`` says.

        Source: kubeflow/pipelines, api/v2alpha1/pipeline_spec.proto of August 2026.
        """
        either = config.get("resourceTtlOnCompletion") or 0
        success, failure = (config.get(f"resourceTtlOn{end}") or either for end in ("Success", "Failure"))
        locks: dict[str, Any] = {}
        if name := config.get("mutexName"):
            locks["mutex"] = {"name": str(name)}
        if key := config.get("semaphoreKey"):
            locks["semaphore"] = {"configMapKeyRef": {"name": SEMAPHORES, "key": str(key)}}
        return cls(float(config.get("activeDeadlineSeconds") or 0), float(success), float(failure), locks)


class Group(NamedTuple):
    """A nested pipeline, a task with an executor, or a loop: Argo's template of it, and the plan that ends it."""

    template: str
    end: int


@dataclass(frozen=True, slots=True)
class Graph:
    """All pods of one pipeline, each after those it waits for; of a workflow of Argo's own, those that came due.

    `groups` are those that the pods of a pipeline are in, by their paths.
    """

    plans: Sequence[Plan]
    limits: Limits = Limits()
    groups: Mapping[str, Group] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """Number of pods of a run without retries, skips and cache hits."""
        return sum(1 for plan in self.plans if plan.role != JOIN)

    @property
    def nodes(self) -> int:
        """Number of the nodes of such a run: each pod, and each group but that of all iterations, has a Retry node."""
        return 2 + 2 * self.pods + sum(1 if path.endswith(ITERATIONS) else 2 for path in self.groups)


def flatten(spec: Spec, platform: Spec, parameters: Mapping[str, object], loop_iterations: int) -> Graph:
    """The pods of a pipeline.

    Args:
        spec: the compiled PipelineSpec.
        platform: the platform spec's ``platforms.kubernetes.deploymentSpec.executors``.
        parameters: the run's parameters, which determine the length of loops over them.
        loop_iterations: iterations of loops over the output of a step.

    Raises:
        ConfigError: the spec refers to something that it does not contain, or has too many pods or levels.
    """
    builder = _Builder(spec, platform, parameters, loop_iterations)
    inputs: Spec = spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {})
    place = _Place("root", -1, {name: Given(name) for name in inputs})
    try:
        builder.dag(spec["root"]["dag"], [], place, driver="root-driver", task="")
    except KeyError as error:
        raise ConfigError(f"the pipeline spec lacks {error}", "recompile it with kfp 2") from error
    except RecursionError as error:
        why = "a component contains itself, or too many tasks are inside or behind each other"
        raise ConfigError(why, "correct it or split it: the simulated platform runs some hundreds") from error
    return builder.graph()


@dataclass(frozen=True, slots=True)
class _Place:
    """A position in the pipeline: the path, the driver of the enclosing pipeline, and the sources of parameters."""

    path: str
    parent: int
    scope: Mapping[str, Source]


class _Builder:
    """Walks nested pipelines and appends one plan per pod."""

    def __init__(self, spec: Spec, platform: Spec, parameters: Mapping[str, object], loop_iterations: int) -> None:
        self._pipeline = str(spec.get("pipelineInfo", {}).get("name", ""))
        self._components: Spec = spec.get("components", {})
        self._executors: Spec = spec.get("deploymentSpec", {}).get("executors", {})
        self._platform = platform
        self._parameters = parameters
        self._loop_iterations = loop_iterations
        self._plans: list[Plan] = []
        self._needs: list[list[int]] = []  # of each plan: the plans that it waits for
        self._groups: dict[str, Group] = {}

    def graph(self) -> Graph:
        then: list[list[int]] = [[] for _ in self._plans]
        for index, needs in enumerate(self._needs):
            for needed in needs:
                then[needed].append(index)
        whole = zip(self._plans, self._needs, then, strict=True)
        plans = tuple(replace(plan, waits=len(needs), then=tuple(after)) for plan, needs, after in whole)
        return Graph(plans, groups=self._groups)

    def _add(self, plan: Plan, needs: list[int]) -> int:
        if len(self._plans) >= _MOST_PODS:
            why = f"the pipeline has more than {_MOST_PODS:,} pods, more than the simulated platform runs"
            raise ConfigError(why, "shorten its loops or split it")
        self._plans.append(plan if plan.template else replace(plan, template=TEMPLATES.get(plan.role, "")))
        self._needs.append(needs)
        return len(self._plans) - 1

    def dag(
        self, dag: Spec, needs: list[int], place: _Place, *, driver: str, task: str, always: bool = False,
        condition: Condition | None = None,
    ) -> int:  # fmt: skip
        """Driver, tasks and end of one (nested) pipeline; returns the index of its end."""
        outside, _, _ = place.path.rpartition(".")
        path = f"{outside}.{driver}" if outside else driver
        first = self._add(Plan(DAG_DRIVER, task, path, parent=place.parent, always=always, condition=condition), needs)
        inside = _Place(place.path, first, place.scope)
        ends: dict[str, int] = {}
        tasks: Spec = dag["tasks"]
        for name in in_order(tasks, lambda name: dependencies(tasks[name])):
            ends[name] = self._task(name, tasks[name], ends, inside)
        return self._end(Plan(JOIN, task, place.path, parent=first), [first, *ends.values()], _of(task))

    def _end(self, plan: Plan, needs: list[int], template: str) -> int:
        """Add the end of a group; returns its index."""
        self._groups[plan.path] = Group(template, end := self._add(plan, needs))
        return end

    def _task(self, name: str, task: Spec, ends: Mapping[str, int], pipeline: _Place) -> int:
        component: Spec = self._components[task["componentRef"]["name"]]
        needs = [pipeline.parent, *(ends[dependency] for dependency in dependencies(task))]
        policy: Spec = task.get("triggerPolicy", {})
        always = policy.get("strategy") == "ALL_UPSTREAM_TASKS_COMPLETED"
        types: Spec = component.get("inputDefinitions", {}).get("parameters", {})
        outputs = {each: self._producer(end) for each, end in ends.items()}
        scope = inner_scope(task, types, outputs, pipeline.scope, self._parameters)
        condition = Condition(policy["condition"], scope) if policy.get("condition") else None
        here = _Place(_inside(_group_of(task, pipeline.path, always=always), name), pipeline.parent, scope)
        if "dag" not in component:
            end = self._container(name, task, needs, here, pipeline.scope, always=always, condition=condition)
        elif "parameterIterator" in task or "artifactIterator" in task:
            end = self._loop(name, task, needs, here, condition)
        else:
            end = self.dag(
                component["dag"], needs, here, driver=f"{name}-driver", task=name, always=always, condition=condition
            )
        if (around := here.path.rpartition("(0).")[0]).endswith(ON_EXIT):
            self._groups[around] = Group(f"exit-hook-root-{name}", end)
        return end

    def _loop(self, name: str, task: Spec, needs: list[int], here: _Place, condition: Condition | None) -> int:
        component: Spec = self._components[task["componentRef"]["name"]]
        over = items(task, here.scope, self._parameters)
        count = self._loop_iterations if over is None else len(over)
        most = int(task.get("iteratorPolicy", {}).get("parallelismLimit", 0) or 0)
        plan = Plan(DAG_DRIVER, name, _inside(here.path, "iteration-driver"), parent=here.parent, condition=condition)
        driver = self._add(plan, needs)
        ends: list[int] = []
        for k in range(count):
            # With a limit, iteration k begins when iteration k - most has ended.
            before = [ends[k - most]] if most and k >= most else []
            item = {}
            if "parameterIterator" in task:
                source = Computed(driver, f"iteration {k}") if over is None else Known(over[k])
                item = {str(task["parameterIterator"]["itemInput"]): source}
            iteration = _inside(here.path, f"{ITERATIONS}({k}:{k})")
            place = _Place(_inside(iteration, ITERATION), driver, {**here.scope, **item})
            needed, its_driver = [driver, *before], f"{ITERATION}-driver"
            ends.append(self.dag(component["dag"], needed, place, driver=its_driver, task=name))
            self._groups[iteration] = Group(f"{_of(name)}-iteration", ends[-1])
        end = self._end(Plan(JOIN, name, here.path, parent=driver), [driver, *ends], f"{_of(name)}-{name}-iterator")
        self._groups[_inside(here.path, ITERATIONS)] = Group(f"{_of(name)}-iteration", end)
        return end

    def _container(
        self, name: str, task: Spec, needs: list[int], here: _Place, outer: Mapping[str, Source], *,
        always: bool, condition: Condition | None,
    ) -> int:  # fmt: skip
        label = self._components[task["componentRef"]["name"]]["executorLabel"]
        executor: Spec = self._executors[label]
        if "importer" in executor:
            return self._add(Plan(IMPORTER, name, here.path, parent=here.parent, always=always), needs)
        retry: Spec = task.get("retryPolicy", {})
        platform = placed(self._platform.get(label, {}), outer, self._parameters)
        container = read_container(executor.get("container", {}), platform, retry)
        path = here.path if container.image in DRIVER_ONLY else f"{here.path}-driver"
        plan = Plan(CONTAINER_DRIVER, name, path, parent=here.parent, always=always, condition=condition)
        driver = self._add(plan, needs)
        if container.image in DRIVER_ONLY:
            return driver
        cached = task.get("cachingOptions", {}).get("enableCache")
        key, varies = self._cache_key(executor, here.scope, needs[1:]) if cached else ("", ())
        step = Plan(
            EXECUTOR, name, _inside(here.path, "executor"), parent=here.parent, container=container,
            reads=tuple(needs[1:]), cache_key=key, varies=varies,
            template=f"{'retry-' if container.retries else ''}{TEMPLATES[EXECUTOR]}",
        )  # fmt: skip
        self._groups[here.path] = Group(step.template.replace("-impl", "-executor"), end := self._add(step, [driver]))
        return end

    def _cache_key(self, executor: Spec, scope: Mapping[str, Source], needs: list[int]) -> tuple[str, tuple[str, ...]]:
        """A hash of a step's component and inputs, and the run's parameters on which these depend."""
        ordered = sorted(scope.items())
        varies = [source.name for _, source in ordered if isinstance(source, Given)]
        inputs = [(name, each.value if isinstance(each, Known) else type(each).__name__) for name, each in ordered]
        upstream: list[str] = []
        for plan in (self._plans[value] for index in needs for value in (self._within(index) or (index,))):
            upstream.append(plan.cache_key or plan.path)
            varies += plan.varies
        text = json.dumps([self._pipeline, executor, inputs, upstream], sort_keys=True, default=str)
        return md5(text.encode(), usedforsecurity=False).hexdigest(), tuple(varies)

    def _within(self, end: int) -> list[int]:
        """The executors in the nested pipeline that ends at this index."""
        if self._plans[end].role != JOIN:
            return []
        return [k for k in range(self._plans[end].parent, end) if self._plans[k].role == EXECUTOR]

    def _producer(self, end: int) -> int:
        """The step that produces the outputs at this index: in a nested pipeline with one step, that step."""
        within = self._within(end)
        return within[0] if len(within) == 1 else end


def _group_of(task: Spec, path: str, *, always: bool) -> str:
    """The path of the group that a task is in; Argo runs an exit handler's clean-up as a hook of that handler."""
    before = dependencies(task)
    of_exit = always and len(before) == 1 and before[0].startswith("exit-handler-")
    return _inside(path, f"{before[0]}{ON_EXIT}") if of_exit else path


def _of(task: str) -> str:
    """The template of a task that is a pipeline of its own; "" is the whole one."""
    return f"comp-{task}" if task else "root"


def _inside(group: str, name: str) -> str:
    """The path of a node in a group's first attempt."""
    return f"{group}(0).{name}"


def in_order(names: Iterable[str], needs: Callable[[str], Iterable[str]]) -> list[str]:
    """Names, each after those that it needs.

    Raises:
        ConfigError: some need each other.
        LookupError: of `needs`, for a name that it does not know.
    """
    ordered: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ConfigError(f"{', '.join(sorted(above))} wait for each other", "correct what they depend on")
        if name not in ordered:
            for needed in needs(name):
                visit(needed, (*above, name))
            ordered[name] = None

    for name in names:
        visit(name, ())
    return list(ordered)


def fnv1a_on(begun: int, text: str) -> int:
    """``fnv1a(text, begun)`` for a few recurring texts.

    The exclusive or changes the lowest byte only, so the effect on the other bytes is a single multiplication.
    """
    lowest = begun & 0xFF
    hashed, factor = _fnv1a_after(lowest, text)
    return (hashed + (begun - lowest) * factor) & 0xFFFFFFFF


@lru_cache(2**16)
def _fnv1a_after(lowest: int, text: str) -> tuple[int, int]:
    return fnv1a(text, lowest), pow(FNV_PRIME, len(text.encode()), 2**32)
