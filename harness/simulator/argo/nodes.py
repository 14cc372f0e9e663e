"""The state of a workflow: its nodes, and what the controller's queue needs to know."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from harness.model.argo.manifest import RUN_NAME
from harness.model.argo.nodes import node_id
from harness.simulator.argo.templates import LOCAL, Find, Spec, name_of, parameters_of, scope_of, templates_of
from harness.simulator.cluster import Pod
from harness.simulator.workflows.graph import Graph, Plan
from harness.simulator.workflows.nodes import Node as Shown
from harness.simulator.workflows.nodes import close_groups, of_pod
from harness.simulator.workflows.workflow import (
    ERROR,
    FAILED,
    OMITTED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Step,
    Workflow,
)

__all__ = ["ERROR", "FAILED", "OMITTED", "PENDING", "RUNNING", "SKIPPED", "SUCCEEDED", "Node", "Run"]

POD, STEPS, STEP_GROUP, DAG, TASK_GROUP = "Pod", "Steps", "StepGroup", "DAG", "TaskGroup"
RETRY, SUSPEND, SKIP = "Retry", "Suspend", "Skipped"
HTTP, PLUGIN, CONTAINER = "HTTP", "Plugin", "Container"
DAEMONED = "Daemoned"
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?")
BAD = frozenset({FAILED, ERROR})
_OVER = frozenset({SUCCEEDED, FAILED, ERROR, SKIPPED, OMITTED})
ON_EXIT = ".onExit"


@dataclass(slots=True, eq=False)
class Node:
    """One node. Instants are seconds of simulated time.

    Attributes:
        name: Argo's, which begins with the workflow's.
        type: Argo's.
        template: the key of that which it is made from; "" for groups.
        task: the step's or task's name, by which the profile knows what its pod does.
        boundary: the name of the Steps or DAG node that it is in; "" for none.
        flag: whether it is an attempt, or a hook.
        reference: the ``templateRef`` by which its template was called; none where it was called by its name.
        after: whether it belongs to an exit handler, which a stopped workflow still runs.
        memo: where its outputs are kept, and whether they were found there; none without memoization.
        outputs: the values of its output parameters.
    """

    name: str
    type: str
    template: str
    task: str
    boundary: str
    started: float
    phase: str = RUNNING
    finished: float | None = None
    message: str = ""
    flag: Mapping[str, bool] | None = None
    children: list[str] = field(default_factory=list)
    reference: Spec | None = None
    after: bool = False
    memo: Mapping[str, Any] | None = None
    outputs: dict[str, str] = field(default_factory=dict)
    result: str | None = None  # what its container or request returned, where that is known
    daemoned: bool = False  # its pod serves the steps after it
    step: Step | None = None  # of the graph, once its pod is due
    results: Mapping[str, str] | None = None  # what others read of it, once it has ended

    @property
    def pod(self) -> Pod | None:
        """Its pod; none before it was created."""
        return self.step.pod if self.step is not None else None

    @property
    def host(self) -> str:
        """The cluster's node that its pod is on; "" for none."""
        return self.pod.node.name if self.pod is not None and self.pod.node is not None else ""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.phase in _OVER

    @property
    def done(self) -> bool:
        """Whether what depends on it may begin: it has ended, or serves."""
        return self.daemoned or self.over

    @property
    def outcome(self) -> str:
        """Its phase, as ``depends`` names it."""
        return DAEMONED if self.daemoned and not self.over else self.phase

    def end(self, phase: str, now: float, message: str = "") -> None:
        """End it."""
        self.phase, self.finished, self.message = phase, now, message


class Run(Workflow):
    """A workflow of Argo's own. Its templates unfold into nodes, and those with pods into its graph, as they come due.

    Args:
        manifest: the Workflow object as it was created.
        spec: its specification, with that of the template that it refers to.
        created: seconds of simulated time.
        find: finds the templates in the cluster that its steps call.
        configured: the value of a ``valueFrom`` that names a ConfigMap; none if there is none.
        number: of the workflow, in the order of arrival.
    """

    def __init__(
        self, manifest: Spec, spec: Spec, created: float, find: Find, configured: Callable[[Spec], str | None],
        number: int = 0,
    ) -> None:  # fmt: skip
        name, namespace = str(manifest["metadata"]["name"]), str(manifest["metadata"]["namespace"])
        self.plans: list[Plan] = []
        super().__init__(
            "", name, namespace, graph=Graph(self.plans), parameters=parameters_of(spec, configured), created=created,
            number=number,
        )  # fmt: skip
        self.manifest = manifest
        self.spec = spec
        self.templates: dict[str, Spec] = {}  # by key, as they are in the cluster when it starts
        self.has_daemons = False
        self._find = find
        self.in_order: dict[str, list[Spec]] = {}  # the tasks of DAGs, by template, each after those that it needs
        self.shutdown = str(spec.get("shutdown") or "")
        self.stopping = bool(self.shutdown)
        self.parameters: dict[str, str]
        self.configured = configured
        self.nodes: dict[str, Node] = {}
        self.agent: Step | None = None  # whose pod makes the requests of its HTTP and plugin templates
        self.known: dict[str, str] = {}  # what all tags can name
        self.touched = True

    def find_templates(self) -> None:
        """Find all templates that it calls; what they leave open are the ``templateDefaults``."""
        self.templates = templates_of(self.spec, self._find)
        if defaults := self.spec.get("templateDefaults"):
            self.templates = {key: {**defaults, **each} for key, each in self.templates.items()}
        self.has_daemons = any(template.get("daemon") for template in self.templates.values())

    def ask(self, step: Step, plan: Plan) -> int:
        """Add a pod that is due to the graph, as a node's `step` or one without a node; returns its index."""
        step.attempts = 1
        self.plans.append(plan)
        self.steps.append(step)
        return len(self.plans) - 1

    @property
    def deadline(self) -> float | None:
        """When its time is over (``activeDeadlineSeconds``); none without a limit."""
        limit = self.spec.get("activeDeadlineSeconds")
        return self.started + float(limit) if limit and self.started is not None else None

    def goes_on(self, *, after: bool) -> bool:
        """Whether nodes run: after a stop those of exit handlers (`after`) do."""
        return not self.shutdown or (after and self.shutdown != "Terminate")

    @property
    def amounts(self) -> Mapping[str, object]:
        """See `Workflow.amounts`: Argo passes all parameters as texts."""
        return {name: float(value) for name, value in self.parameters.items() if _NUMBER.fullmatch(value)}

    @property
    def title(self) -> str:
        """See `Workflow.title`."""
        return str((self.manifest["metadata"].get("annotations") or {}).get(RUN_NAME, ""))

    @property
    def priority(self) -> int:
        """See `Workflow.priority`."""
        return int(self.spec.get("priority") or 0)

    def needs(self, index: int) -> bool:
        """See `Workflow.needs`."""
        node = self.nodes.get(f"{self.name}{self.plans[index].path}")
        wanted = not self.shutdown if node is None else not node.over and self.goes_on(after=node.after)
        return wanted and not self.over and not (self.stopping and not self.shutdown)

    def stream(self, index: int) -> tuple[int, int, int]:
        """See `Workflow.stream`: the names of attempts distinguish them."""
        return self.number, crc32(self.plans[index].path.encode()), 0

    def keep_s(self, default_s: float) -> float:
        """See `Workflow.keep_s`: its ``ttlStrategy``, or else the controller's."""
        strategy = self.spec.get("ttlStrategy") or {}
        own = "secondsAfterFailure" if self.phase in BAD else "secondsAfterSuccess"
        return float(strategy.get(own, strategy.get("secondsAfterCompletion", default_s)))

    def discarded(self) -> Iterator[Pod]:
        """See `Workflow.discarded`: on completion of each pod it acts at the end, too, as nothing reads it before."""
        well = self.phase not in BAD
        match str((self.spec.get("podGC") or {}).get("strategy") or ""):
            case "OnPodCompletion" | "OnWorkflowCompletion":
                yield from self.pods
            case "OnPodSuccess":
                yield from (pod for pod in self.pods if pod.phase == SUCCEEDED)
            case "OnWorkflowSuccess" if well:
                yield from self.pods

    @property
    def pods(self) -> list[Pod]:
        """The pods that were made for it."""
        return [step.pod for step in self.steps if step is not None and step.pod is not None]

    @property
    def serving(self) -> Iterator[Pod]:
        """Pods that only end with what they serve."""
        for plan, step in self.made():
            if plan.container.serves and step.pod is not None and not step.pod.over:
                yield step.pod

    def attempts(self, node: Node) -> list[Node]:
        """The attempts at a node that may be retried; its hooks are its children, too."""
        names = node.children if node.type == RETRY else ()
        return [self.nodes[name] for name in names if name.startswith(f"{node.name}(")]

    def id_of(self, node: str) -> str:
        """The id of a node by its name."""
        return node_id(node, self.name)

    def holder(self, node: str = "") -> str:
        """Who holds a lock: the workflow, or one of its nodes."""
        return f"{self.namespace}/{self.name}" + (f"/{self.id_of(node)}" if node else "")


def shown(run: Run, waits: Mapping[str, str]) -> list[Shown]:
    """The nodes as the status has them; `waits` as for `nodes_of`."""
    return close_groups([_shown(run, node, waits) for node in run.nodes.values()])


def _shown(run: Run, node: Node, waits: Mapping[str, str]) -> Shown:
    begin, attempts = len(run.name), run.attempts(node)
    pod = attempts[-1].pod if attempts else node.pod
    of_its_pod = of_pod(pod, ended=node.over) if pod is not None else {}
    message = node.message or (node.step.message if node.step is not None else "")
    scope = scope_of(run.nodes[node.boundary].template) if node.boundary else LOCAL
    more = {"templateScope": scope, "templateRef": node.reference, "memoizationStatus": node.memo}
    return Shown(
        node.name[begin:], node.type, name_of(node.template) if node.reference is None else "", node.phase,
        node.started, node.finished, message or (waits.get(pod.name, "") if pod is not None else ""),
        within=node.boundary[begin:] if node.boundary else None, flag=node.flag, outputs=dict(node.outputs),
        children=[child[begin:] for child in node.children], more={key: each for key, each in more.items() if each},
        **({"exit_code": of_its_pod.get("exit_code")} if attempts else of_its_pod),
    )  # fmt: skip
