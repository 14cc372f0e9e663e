"""The nodes of a workflow as Argo keeps them in its status: pods, the groups they are in, and retry wrappers.

KFP's ConfigMap makes every node one that may be retried, so that each is two: the wrapper (``train``, type Retry) and
its attempt (``train(0)``). A skipped node has neither. Names, ids, types and messages are as recorded from Argo 4.0.8.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from harness.simulator.cluster import Pod
from harness.simulator.workflows.graph import DAG_DRIVER, EXECUTOR, JOIN, ON_EXIT, Plan
from harness.simulator.workflows.node_paths import IN, group_of, parting, task_group
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

POD, DAG, RETRY, SKIP, TASK_GROUP = "Pod", "DAG", "Retry", "Skipped", "TaskGroup"
_BECAUSE = {
    OMITTED: "omitted: depends condition not met",
    SKIPPED: "when 'true != true' evaluated false",  # the driver found the outputs in the cache
}
_CORES, _UNIT = 0.1, 100 * 2**20
_NOTHING: Mapping[str, str] = MappingProxyType({})
_UNTRUE = "when 'false != false' evaluated false"  # the driver found the condition false


@dataclass(frozen=True, slots=True)
class Node:
    """One node. Instants are seconds of simulated time.

    Attributes:
        path: its name after the workflow's.
        type: Argo's: Pod, DAG, Steps, Retry, Skipped, TaskGroup ….
        within: the path of the node of the group that it is in ("boundary"); none of the workflow's own.
        flag: whether it is an attempt, or a hook; none where Argo says neither.
        ran: when the container of its pod started.
        host: of a pod: the cluster's node that it is on.
        exit_code: of a pod that has ended.
        used: of a pod that has ended: seconds × cores, and seconds × 100 MiB, as requested.
        outputs: the values of its output parameters.
        children: paths of the nodes that follow it.
        outbound: of a group that has ended: paths of the nodes in it that nothing in it follows.
        more: further fields as the status has them.
    """

    path: str
    type: str
    template: str
    phase: str
    started: float
    finished: float | None = None
    message: str = ""
    within: str | None = None
    flag: Mapping[str, bool] | None = None
    ran: float | None = None
    host: str = ""
    exit_code: int | None = None
    used: tuple[int, int] = (0, 0)
    outputs: Mapping[str, str] = field(default_factory=dict)
    children: list[str] = field(default_factory=list)
    outbound: list[str] = field(default_factory=list)
    more: Mapping[str, Any] = field(default_factory=dict)

    def display(self, workflow: str) -> str:
        """The last part of its name: a step's, a task's, or ``[0]`` of a group of steps."""
        if self.within is None:
            return workflow + self.path
        rest = self.path.removeprefix(self.within)
        return rest.partition("].")[2] or rest.removeprefix(".") or workflow

    @property
    def attempts(self) -> list[str]:
        """The paths of the attempts at it, if it may be retried; hooks are its children, too."""
        return [child for child in self.children if child.startswith(f"{self.path}(")] if self.type == RETRY else []


def of_pod(pod: Pod, *, ended: bool) -> dict[str, Any]:
    """The fields of a node that come from its pod; `ended` is whether the controller knows its end."""
    fields: dict[str, Any] = {"ran": pod.started, "host": pod.node.name if pod.node is not None else ""}
    return {**fields, "exit_code": pod.exit_code, "used": _used(pod)} if ended else fields


def close_groups(nodes: list[Node]) -> list[Node]:
    """The same nodes; those of groups that have ended note the last ones in them."""
    by_path = {node.path: node for node in nodes}
    tries = {attempt for node in nodes for attempt in node.attempts}
    for node in nodes:
        group = by_path.get(node.within) if node.within is not None else None
        if group is None or group.finished is None or node.path in tries:
            continue
        attempts = node.attempts
        last = by_path[attempts[-1]] if attempts else node
        following = (*last.children, *node.children[len(attempts) :])
        if not any(by_path[each].within == node.within for each in following):
            group.outbound.append(node.path if node.path.endswith(ON_EXIT) else last.path)
    return nodes


def nodes_of(
    workflow: Workflow, *, wrapped: bool = True, deadline: str = "", waits: Mapping[str, str] = _NOTHING
) -> list[Node]:
    """The nodes of a pipeline's run that exist so far; none before the controller has taken up the workflow.

    Args:
        workflow: the workflow.
        wrapped: every node may be retried, see `Controller.error_retries`.
        deadline: the message of wrappers that a termination ended.
        waits: by pod: why it waits.
    """
    if workflow.started is None:
        return []
    found = _Tree(workflow, deadline, waits, wrapped=wrapped).nodes()
    return close_groups(found if wrapped else _unwrapped(found))


class _Tree:
    """Builds the nodes of one workflow."""

    def __init__(self, workflow: Workflow, deadline: str, waits: Mapping[str, str], *, wrapped: bool) -> None:
        self._workflow = workflow
        self._wrapped = wrapped
        self._deadline = deadline
        self._waits = waits
        self._steps = workflow.steps
        self._nodes: dict[str, Node] = {}
        self._groups = workflow.graph.groups

    def nodes(self) -> list[Node]:
        """All nodes, with what follows them."""
        whole = self._workflow
        assert whole.started is not None
        self._wrap("", DAG, "entrypoint", whole.started, whole.phase if whole.over else RUNNING, whole.finished)
        for plan, step in whole.made():
            if plan.role != JOIN and self._is_shown(plan):
                self._add(plan, step)
        self._link()
        return list(self._nodes.values())

    def _is_shown(self, plan: Plan) -> bool:
        """Not inside a group that was omitted or skipped: such a group has no inner nodes."""
        at = plan.parent
        while at >= 0:
            step = self._steps[at]
            if step is None or step.state != SUCCEEDED or not step.taken:
                return False
            at = self._workflow.graph.plans[at].parent
        return True

    def _add(self, plan: Plan, step: Step) -> None:
        path = f"{IN}{plan.path}"
        if step.state == OMITTED:
            group = group_of(path) if plan.role == EXECUTOR else path
            self._skip(group, plan.template.replace("-impl", "-executor"), step, _BECAUSE[OMITTED])
            return
        self._add_groups(path, step)
        if step.state == SKIPPED:
            self._skip(path, plan.template, step, _BECAUSE[SKIPPED])
            return
        self._add_attempts(plan, path, step)
        if plan.role == DAG_DRIVER and not step.taken:
            self._skip(path.removesuffix("-driver"), f"comp-{plan.task}", step, _UNTRUE)

    def _skip(self, path: str, template: str, step: Step, why: str) -> None:
        self._add_groups(path, step)
        phase = OMITTED if step.state == OMITTED else SKIPPED
        at = step.started if step.finished is None else step.finished
        self._put(path, SKIP, template, phase, at, at, why)

    def _put(
        self, path: str, kind: str, template: str, phase: str, started: float, finished: float | None = None,
        message: str = "", **more: Any,
    ) -> Node:  # fmt: skip
        """Add a node. A Retry node has no flags unless it is a hook's."""
        hooked = {"hooked": True} if ON_EXIT in path.rpartition(IN)[2] else {}
        tried = {"retried": True} if self._wrapped and kind not in {SKIP, TASK_GROUP} else {}
        flag = None if kind == RETRY and not hooked else hooked | tried
        within = group_of(path) + "(0)" if IN in path else None
        node = Node(path, kind, template, phase, started, finished, message, within, flag, **more)
        self._nodes[path] = node
        return node

    def _add_attempts(self, plan: Plan, path: str, step: Step) -> None:
        """A wrapper and its pods. The node of a pod that a quota refuses exists before the pod."""
        count = max(step.attempts, len(step.pods))
        pods = [*step.pods, *[None] * (count - len(step.pods))]
        phase = RUNNING if step.finished is None else step.state
        message = "" if phase in {RUNNING, SUCCEEDED} else self._deadline or step.message
        code = pods[-1].exit_code if step.finished is not None and pods and pods[-1] is not None else None
        its = phase, step.started, step.finished, message
        wrapper = self._put(path, RETRY, plan.template, *its, exit_code=code)
        wrapper.children.extend(self._attempt(plan, f"{path}({k})", step, pod).path for k, pod in enumerate(pods))

    def _attempt(self, plan: Plan, path: str, step: Step, pod: Pod | None) -> Node:
        its = path, POD, plan.template
        if pod is None:
            return self._put(*its, PENDING, step.started, message=step.message)
        if pod.name in step.ended:
            state, message = step.ended[pod.name]
            return self._put(*its, state, pod.created, pod.finished, message, **of_pod(pod, ended=True))
        phase, why = RUNNING if pod.started is not None else PENDING, self._waits.get(pod.name, "")
        return self._put(*its, phase, pod.created, message=why, **of_pod(pod, ended=False))

    def _add_groups(self, path: str, step: Step) -> None:
        """The groups around a node, the outermost first."""
        inside = ""
        for name in path.split(IN)[1:-1]:
            group = f"{inside}{IN}{name}"
            for each, kind in ((task_group(group), TASK_GROUP), (group, DAG)):
                if each and each not in self._nodes:
                    template, end = self._groups[each.removeprefix(IN)]
                    self._wrap(each, kind, template, step.started, *_ending(self._steps[end]))
            inside = group

    def _wrap(self, path: str, kind: str, template: str, started: float, phase: str, finished: float | None) -> None:
        """A group, with its wrapper."""
        if kind == TASK_GROUP:
            self._put(path, kind, template, phase, started, finished)
            return
        message = self._deadline if phase in {FAILED, ERROR} else ""
        self._put(path, RETRY, template, phase, started, finished, message, children=[f"{path}(0)"])
        self._put(f"{path}(0)", kind, template, phase, started, finished)

    # --- what follows what ----------------------------------------------------------------------------------------

    def _link(self) -> None:
        """The children of a node are those that wait for it; those of a group are the first ones in it."""
        following: set[str] = set()
        plans = self._workflow.graph.plans
        for plan in plans:
            for index in plan.then:
                self._follow(f"{IN}{plan.path}", f"{IN}{plans[index].path}", following)
        for path, node in list(self._nodes.items()):
            group = self._nodes.get(task_group(path) or node.within or "")
            if group is not None and path and node.type in {RETRY, SKIP} and path not in following:
                group.children.append(path)

    def _follow(self, before: str, after: str, following: set[str]) -> None:
        """Link the outermost groups that contain only one of the two nodes."""
        first, then = parting(before, after)
        if then not in self._nodes or first not in self._nodes:
            return
        following.add(then)
        attempts = self._nodes[first].attempts
        # What runs on exit is a hook of the handler, whichever attempt that made.
        last = self._nodes[attempts[-1] if attempts and not then.endswith(ON_EXIT) else first]
        if then not in last.children:
            last.children.append(then)


def _ending(step: Step | None) -> tuple[str, float | None]:
    """The phase of a group that a step ends, and when it ended."""
    if step is None or step.finished is None:
        return RUNNING, None
    return (step.state if step.state in {FAILED, ERROR} else SUCCEEDED), step.finished


def _used(pod: Pod) -> tuple[int, int]:
    """What Argo estimates from the containers' requests; 100 MiB and a tenth of a core where there are none.

    Source: https://argo-workflows.readthedocs.io/en/latest/resource-duration/
    """
    main_s = (pod.main_ended or pod.started or 0.0) - (pod.started or 0.0)
    wait_s = (pod.finished or pod.started or 0.0) - (pod.started or 0.0)
    cores, memory = pod.shape.cpu / 1000 or _CORES, pod.shape.memory / _UNIT or 1.0
    return int(main_s * cores + wait_s * _CORES), int(main_s * memory + wait_s)


def _unwrapped(nodes: list[Node]) -> list[Node]:
    """The nodes as they are without retry strategies: one instead of a wrapper and its attempt."""
    found = []
    for node in nodes:
        if node.type != RETRY:
            children = dict.fromkeys(child.replace("(0)", "") for child in node.children)
            within = node.within and node.within.replace("(0)", "")
            path = node.path.replace("(0)", "")
            found.append(replace(node, path=path, within=within, children=list(children)))
    return found
