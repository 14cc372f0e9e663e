"""One run of a pipeline as the workflow controller sees it: due pods, ended pods, and the outcome."""

import json
from collections.abc import Iterator, Mapping

from harness.model.argo.nodes import fnv1a
from harness.simulator.cluster import Pod
from harness.simulator.workflows.graph import EXECUTOR, JOIN, Graph, Plan

UNSEEN = ""  # by the controller
PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
ERROR, OMITTED, SKIPPED = "Error", "Omitted", "Skipped"


_MOST_BYTES = 3 * 2**19  # of an object: etcd's --max-request-bytes, by default


def too_large(specification: object) -> str:
    """Why no Workflow object can hold a specification; "" if one can."""
    size = len(json.dumps(specification, default=str))
    return f"it has {size / 2**20:.1f} MiB, and a Kubernetes object has at most 1.5" if size > _MOST_BYTES else ""


class Step:
    """The state of one node of the graph. Instants are seconds of simulated time."""

    __slots__ = (
        "attempts", "ended", "finished", "message", "output", "pods", "saved_s", "started", "state", "taken", "takes_s",
    )  # fmt: skip

    def __init__(self, started: float) -> None:
        self.state = PENDING
        self.started = started
        self.finished: float | None = None
        self.message = ""
        self.attempts = 0
        self.output = 0.0  # bytes written to the artifact store
        self.pods: list[Pod] = []
        self.ended: dict[str, tuple[str, str]] = {}  # state and message of each ended pod's node, by the pod's name
        self.takes_s: float | None = None  # of a step with checkpoints: the whole computation
        self.saved_s = 0.0  # the part of it that checkpoints hold
        self.taken = True  # of a driver: the result of its task's condition

    @property
    def pod(self) -> Pod | None:
        """The pod of the latest attempt; none before the first."""
        return self.pods[-1] if self.pods else None


class Workflow:
    """A live workflow. The graph is shared between runs; each has its own count of what every node still waits for.

    `run_id` is the run's in KFP; "" of a workflow of Argo's own. `due` holds the nodes whose pods can be created by the
    next reconciliation.
    """

    __slots__ = (
        "_fates", "_waits", "active", "again", "busy", "created", "drawn", "due", "failed", "finished", "graph", "hash",
        "held", "kept", "key", "look_at", "message", "name", "namespace", "news", "number", "parameters", "phase",
        "queued", "run_id", "started", "steps", "stopping", "touched", "unreported", "unsaid",
    )  # fmt: skip

    def __init__(
        self,
        run_id: str,
        name: str,
        namespace: str,
        *,
        graph: Graph,
        parameters: Mapping[str, object],
        created: float,
        number: int = 0,
    ) -> None:
        self.run_id = run_id
        self.name = name
        self.hash = fnv1a(name)  # prefix hash of its nodes' names
        self.namespace = namespace
        self.key = namespace, name
        self.graph = graph
        self.parameters = parameters
        self.created = created
        self.number = number  # of its run, in the order of arrival
        self.started: float | None = None
        self.finished: float | None = None
        self.phase = UNSEEN
        self.message = ""
        self.failed = False
        self.stopping = False  # termination was requested
        self.held = False  # it was postponed before it started
        self.kept = False  # the API server has stored its final state
        self.queued = False  # a reconciliation is scheduled, or waits for a worker
        self.busy = False  # a worker reconciles it
        self.again = False  # its next reconciliation came due while it was busy
        self.touched = False  # pods have started, or were refused, since the last reconciliation
        self.unsaid = 0  # events that the controller has not recorded yet
        self.look_at = 0.0  # when the latest requeue is due; in the past if there is none
        self.unreported = False  # changed since the persistence agent's last report
        self.active = 0  # pods that exist or are about to be created
        self.news: list[Pod] = []  # ended pods, not yet assessed
        self.steps: list[Step | None] = [None] * len(graph.plans)
        self._waits = [plan.waits for plan in graph.plans]
        self._fates: dict[int, str] = {}  # outcomes of nodes whose dependencies did not succeed
        self.drawn: dict[object, object] = {}  # values drawn for unknown outputs
        self.due = [index for index, waits in enumerate(self._waits) if waits == 0]

    @property
    def over(self) -> bool:
        """Whether the workflow has ended."""
        return self.finished is not None

    @property
    def amounts(self) -> Mapping[str, object]:
        """The parameters that durations and sizes may be scaled by."""
        return self.parameters

    @property
    def title(self) -> str:
        """The run's name as the user gave it; "" where the run holds it."""
        return ""

    @property
    def priority(self) -> int:
        """Of its place in queues; higher ones come first."""
        return 0

    def needs(self, index: int) -> bool:  # noqa: ARG002  # a termination ends all nodes of a pipeline
        """Whether the pod of a due node is still to be created."""
        return not self.stopping

    def stream(self, index: int) -> tuple[int, int, int]:
        """What the random numbers of a node's latest attempt are drawn for; see `Draws.of`."""
        step = self.steps[index]
        return self.number, index, step.attempts if step is not None else 0

    def keep_s(self, default_s: float) -> float:
        """How long it is kept after its end; `default_s` is the controller's."""
        limits = self.graph.limits
        return (limits.keep_failure_s if self.phase == FAILED else limits.keep_success_s) or default_s

    def discarded(self) -> Iterator[Pod]:
        """The pods that are deleted at its end (``podGC``)."""
        yield from ()

    def made(self) -> Iterator[tuple[Plan, Step]]:
        """The nodes that exist so far, in the graph's order."""
        for plan, step in zip(self.graph.plans, self.steps, strict=True):
            if step is not None:
                yield plan, step

    def end_step(self, index: int, state: str, now: float, message: str = "", *, taken: bool = True) -> None:
        """End a node of the graph: nodes that waited only for it become due, or end with it.

        `taken` is false for a driver whose task's condition is false.
        """
        step = self.steps[index]
        if step is None:
            step = self.steps[index] = Step(now)
        step.state, step.finished, step.message, step.taken = state, now, message, taken
        if state in {FAILED, ERROR}:
            self.failed = True
        self._cascade(self._count_down(index), now)

    def _cascade(self, ended: list[tuple[int, str]], now: float) -> None:
        """End nodes without pods, and the nodes that end with them."""
        while ended:
            index, state = ended.pop()
            step = self.steps[index] = Step(now)
            step.state, step.finished = state, now
            ended += self._count_down(index)

    def _count_down(self, index: int) -> list[tuple[int, str]]:
        """Count down the nodes that wait for an ended node; returns those that thereby end without a pod."""
        step = self.steps[index]
        assert step is not None
        outcome = step.state if step.taken else SKIPPED
        plans, ended = self.graph.plans, []
        for following in plans[index].then:
            if outcome != SUCCEEDED:
                fate = self._fate_after(following, index, outcome)
                if fate and self._fates.get(following) != FAILED:
                    self._fates[following] = fate
            self._waits[following] -= 1
            if self._waits[following] or self.steps[following] is not None:
                continue
            if following in self._fates:
                ended.append((following, self._fates[following]))
            elif plans[following].role == JOIN:
                ended.append((following, SUCCEEDED))
            else:
                self.due.append(following)
        return ended

    def _fate_after(self, index: int, before: int, outcome: str) -> str:
        """The outcome of a node after a dependency that did not succeed; "" if it can still run.

        As in Argo's DAGs: ``depends: x.Succeeded`` omits the task after any other outcome, a task with a false ``when``
        is skipped, and a DAG fails if a part of it failed, but not if a part was skipped or omitted. A step is a DAG
        of its own, which succeeds if its executor is skipped.
        """
        plan, earlier = self.graph.plans[index], self.graph.plans[before]
        if plan.role == JOIN:
            driver = self.steps[before - 1] if earlier.role == EXECUTOR else None  # an executor's driver precedes it
            if outcome in {FAILED, ERROR} or (driver is not None and driver.state in {FAILED, ERROR}):
                return FAILED
            return outcome if before == plan.parent else ""
        if outcome == SKIPPED and EXECUTOR in {plan.role, earlier.role}:
            return SKIPPED if plan.role == EXECUTOR else ""
        if plan.always and before != plan.parent and outcome != OMITTED:
            return ""
        return OMITTED

    def forget(self) -> None:
        """Drop the steps and their pods, which refer back to this workflow."""
        self.steps = []
        self.news.clear()

    def reopen(self) -> None:
        """Reset failed and omitted nodes, which become due again; the others keep their results."""
        plans = self.graph.plans
        for index, (plan, step) in enumerate(zip(plans, self.steps, strict=True)):
            if step is not None and (step.state not in {SUCCEEDED, SKIPPED} or plan.role == JOIN):
                self.steps[index] = None
        done = [index for index, step in enumerate(self.steps) if step is not None]
        self._waits = [plan.waits for plan in plans]
        self._fates.clear()
        self.due = [k for k, waits in enumerate(self._waits) if waits == 0 and k not in done]
        self.started = self.finished = None
        self.phase, self.message = RUNNING, ""
        self.failed = self.stopping = self.kept = False
        self._cascade([each for index in done for each in self._count_down(index)], self.created)
