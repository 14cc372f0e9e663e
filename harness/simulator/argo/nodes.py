"""The state of a workflow: its nodes, and what the controller's queue needs to know."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.model.argo_nodes import node_id
from harness.simulator.argo.templates import Find, Spec, templates_of
from harness.simulator.cluster import Pod

PENDING, RUNNING, SUCCEEDED, FAILED, ERROR = "Pending", "Running", "Succeeded", "Failed", "Error"
SKIPPED, OMITTED = "Skipped", "Omitted"
POD, STEPS, STEP_GROUP, DAG, TASK_GROUP = "Pod", "Steps", "StepGroup", "DAG", "TaskGroup"
RETRY, SUSPEND, SKIP = "Retry", "Suspend", "Skipped"
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
    pod: Pod | None = None
    asked: bool = False  # for a pod

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.phase in _OVER

    def end(self, phase: str, now: float, message: str = "") -> None:
        """End it."""
        self.phase, self.finished, self.message = phase, now, message


class Run:
    """A workflow that the controller carries out.

    Args:
        manifest: the Workflow object as it was created.
        spec: its specification, with that of the template that it refers to.
        created: seconds of simulated time.
        find: finds the templates in the cluster that its steps call.
    """

    def __init__(self, manifest: Spec, spec: Spec, created: float, find: Find = lambda _kind, _name: None) -> None:
        metadata = manifest["metadata"]
        self.manifest = manifest
        self.name = str(metadata["name"])
        self.namespace = str(metadata["namespace"])
        self.spec = spec
        self.templates: dict[str, Spec] = {}  # by key, as they are in the cluster when it starts
        self._find = find
        self.created = created
        self.number = 0  # in the order of arrival
        self.started: float | None = None
        self.finished: float | None = None
        self.phase = ""
        self.message = ""
        self.shutdown = str(spec.get("shutdown") or "")
        self.held = False  # it was pending before it started
        self.nodes: dict[str, Node] = {}
        # of the queue, as of every workflow
        self.queued = self.busy = self.again = False
        self.look_at = 0.0
        self.touched = True  # something has happened since the last reconciliation

    def find_templates(self) -> None:
        """Find all templates that it calls."""
        self.templates = templates_of(self.spec, self._find)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.finished is not None

    @property
    def priority(self) -> int:
        """Of its place in queues; higher ones come first."""
        return int(self.spec.get("priority") or 0)

    @property
    def pods(self) -> list[Pod]:
        """The pods that were made for it."""
        return [node.pod for node in self.nodes.values() if node.pod is not None]

    def id_of(self, node: str) -> str:
        """The id of a node by its name."""
        return node_id(node, self.name)

    def holder(self, node: str = "") -> str:
        """Who holds a lock: the workflow, or one of its nodes."""
        return f"{self.namespace}/{self.name}" + (f"/{self.id_of(node)}" if node else "")
