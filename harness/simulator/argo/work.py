"""What one reconciliation works on: the workflow, its nodes, and what follows from their beginnings and ends."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harness.simulator.argo.guesses import Guesses
from harness.simulator.argo.locks import Locks
from harness.simulator.argo.nodes import DAG, RUNNING, SKIP, STEP_GROUP, STEPS, SUCCEEDED, TASK_GROUP, Node, Run
from harness.simulator.argo.plans import Priorities
from harness.simulator.argo.templates import Spec, key_of, plain
from harness.simulator.cluster import Pod


class Call(NamedTuple):
    """A template to execute as the node `name`, with the values of its parameters; see `Node`."""

    name: str
    template: str
    task: str
    boundary: str
    values: Mapping[str, str]
    flag: Mapping[str, bool] | None = None
    reference: Spec | None = None
    after: bool = False


class Work(ABC):
    """Makes, begins and ends the nodes of a workflow.

    Args:
        run: the workflow.
        now: seconds of simulated time.
        locks: of the controller.
        priorities: the values of the PriorityClasses, by name.
        guesses: draws what only a real platform knows.

    Attributes:
        due: nodes of its graph whose pods are to be created.
        assessed: how many pods were seen to have ended.
        freed: those who waited for locks that were given back.
        served: pods that have served and end now.
        look_at: when something happens by itself; none if nothing does.
    """

    def __init__(self, run: Run, now: float, *, locks: Locks, priorities: Priorities, guesses: Guesses) -> None:
        self.run = run
        self.now = now
        self.guesses = guesses
        self.locks = locks
        self.priorities = priorities
        self.due: list[int] = []
        self.served: list[Pod] = []
        self.assessed = 0
        self.freed: list[str] = []
        self.look_at: float | None = None

    @abstractmethod
    def call(self, step: Spec, name: str, boundary: str, scope: Mapping[str, str]) -> Node | None:
        """One step or task, for one item; skipped if its condition does not hold."""

    @abstractmethod
    def hooks_over(self, kind: str, step: Spec, node: Node, scope: Mapping[str, str]) -> bool:
        """Run the hooks of a step or task (`kind` is steps or tasks) that are due; whether none is left to wait for."""

    def new(self, call: Call, kind: str, phase: str = RUNNING) -> Node:
        """A new node of a template."""
        made = Node(
            call.name, kind, call.template, call.task, call.boundary, self.now, phase,
            flag=call.flag, reference=call.reference, after=call.after,
        )  # fmt: skip
        self.run.nodes[call.name] = made
        self.run.unsaid += kind != SKIP
        return made

    def group(self, name: str, kind: str, around: Node, task: Spec | None = None) -> Node:
        """A new group of nodes inside a Steps or DAG node; `task` is the one whose items they are."""
        template = key_of(task, around.template) if task is not None else ""
        reference = task.get("templateRef") if task is not None else None
        return self.new(Call(name, template, "", around.name, {}, {}, reference, around.after), kind)

    def skipped(self, name: str, step: Spec, boundary: str, phase: str, why: str) -> Node:
        """A new node of a step or task that does not run."""
        around = self.run.nodes[boundary]
        key = key_of(step, around.template)
        call = Call(name, key, str(step["name"]), boundary, {}, {}, step.get("templateRef"), around.after)
        node = self.new(call, SKIP, phase)
        for parameter in (self.run.templates[key].get("outputs") or {}).get("parameters") or ():
            if "default" in (parameter.get("valueFrom") or {}):
                node.outputs[str(parameter["name"])] = plain(parameter["valueFrom"]["default"])
        self.end(node, phase, why)
        return node

    def end(self, node: Node, phase: str, message: str = "") -> None:
        """End a node, which gives back its locks."""
        if node.step is not None:
            node.step.state, node.step.finished, node.step.message = phase, self.now, message
            if node.pod is not None:
                node.step.ended[node.pod.name] = phase, message
        node.end(phase, self.now, message)
        if self.run.has_daemons and node.type in {STEPS, DAG}:
            self._end_daemons(node)
        self.run.unsaid += node.type != SKIP
        if self.locks:
            self.freed += self.locks.release(self.run.holder(node.name))

    def _end_daemons(self, group: Node) -> None:
        """Daemons end with the steps around them."""
        for node in self.run.nodes.values():
            if node.daemoned and not node.over and node.boundary == group.name:
                if node.pod is not None and not node.pod.over:
                    self.served.append(node.pod)
                self.end(node, SUCCEEDED)

    def link(self, parents: Iterable[Node], child: Node | None) -> None:
        """Make a node the child of others, unless it is."""
        for parent in parents:
            if child is not None and child.name not in parent.children:
                parent.children.append(child.name)

    def last_of(self, node: Node) -> list[Node]:
        """What follows a node is the child of these: of its last attempt, or of those in its group."""
        if node.type in {STEP_GROUP, TASK_GROUP} and node.children:
            return [last for child in node.children for last in self.last_of(self.run.nodes[child])]
        return self.run.attempts(node)[-1:] or [node]

    def reached(self, at: float) -> bool:
        """Whether an instant is past; otherwise it is one to look again at."""
        if at <= self.now:
            return True
        self.look_at = at if self.look_at is None else min(self.look_at, at)
        return False
