"""What comes next in a workflow of Argo's own: its templates unfold into the graph that the controller carries out."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from harness.model.errors import ConfigError
from harness.simulator.argo.engine import Reconciliation
from harness.simulator.argo.fields import dependencies
from harness.simulator.argo.guesses import Guesses
from harness.simulator.argo.locks import Locks, NoLimitError
from harness.simulator.argo.memos import Memos
from harness.simulator.argo.nodes import ERROR, FAILED, Run
from harness.simulator.argo.plans import Priorities
from harness.simulator.argo.templates import LOCAL, Spec, calls_of, hooks_of, key_of, missing, name_of, plain
from harness.simulator.engine.events import EventLoop
from harness.simulator.workflows.controller import Controller
from harness.simulator.workflows.graph import SEMAPHORES, in_order
from harness.simulator.workflows.retry import RetryStrategy
from harness.simulator.workflows.workflow import Workflow

_CAN_NOT = "the simulated platform can't read the workflow"
Labelled = tuple[Mapping[str, str], Mapping[str, str]]  # labels and data of a ConfigMap


class Objects(Protocol):
    """What workflows read and write in their cluster."""

    def template(self, namespace: str, scope: str, name: str) -> Spec | None:
        """The specification of a WorkflowTemplate, or of a ClusterWorkflowTemplate; see `templates.Find`."""
        ...

    def read_map(self, namespace: str, name: str) -> Labelled | None:
        """A ConfigMap; none if there is none."""
        ...

    def write_map(self, namespace: str, name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> None:
        """Store a ConfigMap."""
        ...


class ObjectsInMemory:
    """The objects of a cluster without an API: in simulated time."""

    def __init__(self) -> None:
        self.templates: dict[tuple[str, str], Spec] = {}  # by scope and name
        self.maps: dict[str, Labelled] = {}

    def template(self, namespace: str, scope: str, name: str) -> Spec | None:  # noqa: ARG002  # they are in all
        """See `Objects.template`."""
        return self.templates.get((scope, name))

    def read_map(self, namespace: str, name: str) -> Labelled | None:  # noqa: ARG002  # they are in all
        """See `Objects.read_map`."""
        return self.maps.get(name)

    def write_map(self, namespace: str, name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> None:  # noqa: ARG002  # they are in all
        """See `Objects.write_map`."""
        self.maps[name] = labels, data


class Unfolding:
    """Operates workflows of Argo's own; see `harness.simulator.workflows.controller.Operator`.

    Attributes:
        objects: of the cluster.
        locks: semaphores and mutexes.
    """

    def __init__(self, loop: EventLoop, controller: Controller, priorities: Priorities, guesses: Guesses) -> None:
        self._loop = loop
        self._guesses = guesses
        self._controller = controller
        self._priorities = priorities
        self.locks = Locks(self._limit)
        self.use(ObjectsInMemory(), lambda: datetime.fromtimestamp(loop.now, UTC))
        self._count = 0
        retries = controller.settings.error_retries
        self._retry = RetryStrategy(retries, "OnError") if retries else None
        controller.operators[Run] = self
        controller.pipelines.locks, controller.pipelines.freed = self._lock, self._unlock

    def use(self, objects: Objects, clock: Callable[[], datetime]) -> None:
        """Read and write these objects from now on; `clock` is the simulated time of day."""
        self.objects = objects
        self._memos = Memos(objects.read_map, objects.write_map, clock)

    def add(self, manifest: Spec, spec: Spec) -> Run:
        """Begin a new workflow; `spec` is its specification with that of the template that it refers to."""
        run = self.made(manifest, spec)
        self._count += 1
        self._controller.add(run)
        return run

    def shut_down(self, run: Run, how: str) -> None:
        """End a workflow; `how` is Terminate or Stop."""
        run.shutdown, run.stopping, run.touched = how, True, True
        self._controller.queue.requeue(run)

    def problem_of(self, run: Run) -> str:
        """Find the templates of a workflow that is about to begin; what Argo's validation says, "" for nothing."""
        try:
            run.find_templates()
            return problem_of(run)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            return f"{_CAN_NOT}: {error!r}"

    def made(self, manifest: Spec, spec: Spec) -> Run:
        """A new workflow, which has not begun."""
        namespace = str(manifest["metadata"]["namespace"])
        find, configured = partial(self.objects.template, namespace), partial(self._configured, namespace)
        return Run(manifest, spec, self._loop.now, find, configured, self._count)

    def begin(self, workflow: Run) -> str:
        """See `Operator.begin`."""
        run, now = workflow, self._loop.now
        if problem := self.problem_of(run):
            run.finished, run.phase, run.message = now, FAILED, f"invalid spec: {problem}"
            return ""
        wanted = run.spec.get("synchronization")
        try:
            why = self.locks.acquire(wanted, run.namespace, run.holder(), run.priority) if wanted else ""
        except NoLimitError as error:
            run.finished, run.phase, run.message = now, ERROR, str(error)
            return ""
        if not why or run.shutdown:
            run.unsaid += 1
            return ""
        return why

    def operate(self, workflow: Run) -> list[int]:
        """See `Operator.operate`."""
        run = workflow
        run.news.clear()
        for node in run.nodes.values() if run.shutdown else ():
            pod = node.pod
            if pod is not None and not run.goes_on(after=node.after):
                self._controller.pods.delete(pod)
        work = Reconciliation(
            run, self._loop.now, locks=self.locks, memos=self._memos, retry=self._retry, priorities=self._priorities,
            guesses=self._guesses,
        )  # fmt: skip
        try:
            work.operate()
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            # Whatever its author wrote ends this workflow, and not the platform.
            run.finished, run.phase, run.message = self._loop.now, ERROR, f"{_CAN_NOT}: {error!r}"
            work.served += run.serving
        for pod in work.served:
            self._controller.pods.end(pod)
        self._controller.client.cleanup.add(self._controller.settings.requests_of_version.cleanup * work.assessed)
        self._wake(work.freed)
        if work.look_at is not None:
            self._loop.at(work.look_at, self._look_again, run)
        if run.over:
            run.unsaid += 1
        return work.due

    def _lock(self, workflow: Workflow) -> str:
        """Take the locks of a pipeline's workflow; why it waits for one."""
        wanted = {} if workflow.stopping else workflow.graph.limits.locks
        return self.locks.acquire(wanted, workflow.namespace, "/".join(workflow.key), 0)

    def _unlock(self, workflow: Workflow) -> None:
        if self.locks:
            self._wake(self.locks.release("/".join(workflow.key)))

    def release(self, workflow: Run) -> None:
        """See `Operator.release`: its locks, for which others may wait."""
        if self.locks:
            holders = workflow.holder(), *map(workflow.holder, workflow.nodes)
            self._wake([each for holder in holders for each in self.locks.release(holder)])

    def _wake(self, holders: list[str]) -> None:
        for holder in holders:
            namespace, name, *_ = holder.split("/")
            if run := self._controller.workflows.get((namespace, name)):
                run.touched = True
                self._controller.queue.add(run)

    def _look_again(self, run: Run) -> None:
        if not run.over and self._controller.workflows.get(run.key) is run:
            run.touched = True
            self._controller.queue.add(run)

    def _configured(self, namespace: str, source: Spec) -> str | None:
        """The value in the ConfigMap that a ``valueFrom`` names, or its default."""
        reference = source.get("configMapKeyRef") or {}
        _, data = self.objects.read_map(namespace, str(reference.get("name"))) or ({}, {})
        default = source.get("default")
        return data.get(str(reference.get("key")), None if default is None else plain(default))

    def _limit(self, namespace: str, name: str, key: str) -> int | None:
        """The limit of a semaphore; KFP's API server gives a new one a limit of 1."""
        _, data = self.objects.read_map(namespace, name) or ({}, {})
        return int(data[key]) if key in data and data[key].isdigit() else 1 if name == SEMAPHORES else None


def problem_of(run: Run) -> str:
    """What Argo's validation finds in a workflow that its API accepts, most of it in its words; "" for nothing."""
    entrypoint = run.spec.get("entrypoint")
    if not entrypoint:
        return "entrypoint is required"
    if twice := _repeated(str(each["name"]) for each in run.spec.get("templates") or ()):
        return f"template name '{twice}' not unique"
    called: dict[str, Any] = {str(entrypoint): {"template": entrypoint}}
    called |= {key_of(each, LOCAL): each for each in hooks_of(run.spec).values()}
    for key, template in run.templates.items():
        if problem := _problem_in(template):
            return f"templates.{name_of(key)}{problem}"
        called |= {key_of(each, key): each for each in calls_of(template)}
    return next((missing(each) for key, each in called.items() if key not in run.templates), "")


def _problem_in(template: Spec) -> str:
    """What is wrong with the tasks or steps of a template; "" for nothing."""
    tasks = list((template.get("dag") or {}).get("tasks") or ())
    if any("depends" in task for task in tasks) and any("dependencies" in task for task in tasks):
        return " cannot use both 'depends' and 'dependencies' in the same DAG template"
    named = [*tasks, *(step for group in template.get("steps") or () for step in group)]
    if twice := _repeated(str(each["name"]) for each in named):
        return f".{'tasks' if tasks else 'steps'} name '{twice}' is not unique"
    needs = {str(task["name"]): dependencies(task)[1] for task in tasks}
    for name, needed in needs.items():
        if unknown := sorted({*needed} - needs.keys()):
            return f".tasks.{name} dependency '{unknown[0]}' not defined"
    try:
        in_order(needs, needs.__getitem__)
    except ConfigError as error:
        return f".tasks: {error.message}"
    return ""


def _repeated(names: Iterable[str]) -> str:
    """A name that occurs twice; "" for none."""
    return next((name for name, count in Counter(names).items() if count > 1), "")
