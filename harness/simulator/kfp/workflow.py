"""One run of a pipeline as the workflow controller sees it: which pods are due, which are over, and how it ends."""

from collections.abc import Iterator, Mapping

from harness.simulator.cluster import Pod
from harness.simulator.kfp.graph import EXECUTOR, JOIN, Graph, Plan, fnv1a

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
ERROR, OMITTED, SKIPPED = "Error", "Omitted", "Skipped"


class Step:
    """What became of one node of the graph. Instants are seconds of simulated time."""

    __slots__ = ("attempts", "finished", "message", "output", "pods", "started", "state", "taken")

    def __init__(self, started: float) -> None:
        self.state = PENDING
        self.started = started
        self.finished: float | None = None
        self.message = ""
        self.attempts = 0
        self.output = 0.0  # bytes it left in the artifact store
        self.pods: list[Pod] = []
        self.taken = True  # of a driver: whether its task's condition holds

    @property
    def pod(self) -> Pod | None:
        """Its latest pod."""
        return self.pods[-1] if self.pods else None


class Workflow:
    """A live workflow. The graph is shared; what is its own is how many each node still waits for.

    `due` holds the nodes whose pods can be made; the controller takes from it when it comes round to this workflow.
    """

    __slots__ = (
        "_fates",
        "_waits",
        "active",
        "created",
        "drawn",
        "due",
        "failed",
        "finished",
        "graph",
        "hash",
        "kept",
        "message",
        "name",
        "namespace",
        "news",
        "parameters",
        "phase",
        "queued",
        "run_id",
        "started",
        "steps",
        "stopping",
        "unreported",
    )  # fmt: skip

    def __init__(
        self, run_id: str, name: str, namespace: str, *, graph: Graph, parameters: Mapping[str, object], created: float
    ) -> None:
        self.run_id = run_id
        self.name = name
        self.hash = fnv1a(f"{name}.")  # how the hashes of its nodes' names begin
        self.namespace = namespace
        self.graph = graph
        self.parameters = parameters
        self.created = created
        self.started: float | None = None
        self.finished: float | None = None
        self.phase = PENDING
        self.message = ""
        self.failed = False
        self.stopping = False  # somebody asked to terminate it
        self.kept = False  # the API server keeps its final state
        self.queued = False  # for a reconciliation
        self.unreported = False  # it changed, and the persistence agent did not look at it since
        self.active = 0  # pods that are made or about to be
        self.news: list[Pod] = []  # pods that are over, not yet looked at
        self.steps: list[Step | None] = [None] * len(graph.plans)
        self._waits = [plan.waits for plan in graph.plans]
        self._fates: dict[int, str] = {}  # how those end that wait for what went wrong
        self.drawn: dict[object, object] = {}  # what was drawn of values that nobody knows
        self.due = [index for index, waits in enumerate(self._waits) if waits == 0]

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.finished is not None

    def made(self) -> Iterator[tuple[Plan, Step]]:
        """The nodes that came into being so far, in the graph's order."""
        for plan, step in zip(self.graph.plans, self.steps, strict=True):
            if step is not None:
                yield plan, step

    def end_step(self, index: int, state: str, now: float, message: str = "", *, taken: bool = True) -> None:
        """A node of the graph is over: whoever waited only for it is due, or ends with it.

        `taken` is false of a driver that found its task's condition not to hold.
        """
        step = self.steps[index]
        if step is None:
            step = self.steps[index] = Step(now)
        step.state, step.finished, step.message, step.taken = state, now, message, taken
        if state in {FAILED, ERROR}:
            self.failed = True
            self.message = self.message or message
        self._cascade(self._tell(index), now)

    def _cascade(self, ended: list[tuple[int, str]], now: float) -> None:
        """Nodes end without a pod, and others with them."""
        while ended:
            index, state = ended.pop()
            step = self.steps[index] = Step(now)
            step.state, step.finished = state, now
            ended += self._tell(index)

    def _tell(self, index: int) -> list[tuple[int, str]]:
        """Whoever waits for a node that is over waits for one fewer; returns who thereby ends without a pod."""
        step = self.steps[index]
        assert step is not None
        said = step.state if step.taken else SKIPPED
        plans, ended = self.graph.plans, []
        for following in plans[index].then:
            if said != SUCCEEDED:
                fate = self._fate_after(following, index, said)
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

    def _fate_after(self, index: int, before: int, said: str) -> str:
        """How a node ends because of one that it waited for and that did not succeed; "" where it may go on.

        As in Argo's DAGs: ``depends: x.Succeeded`` omits what comes after anything else, a task whose ``when`` is false
        is skipped, and a DAG fails when something in it failed, but not when something was skipped or omitted. A
        step is a DAG of its own, which succeeds when its executor is skipped.
        """
        plan, earlier = self.graph.plans[index], self.graph.plans[before]
        if plan.role == JOIN:
            driver = self.steps[before - 1] if earlier.role == EXECUTOR else None  # an executor's driver precedes it
            if said in {FAILED, ERROR} or (driver is not None and driver.state in {FAILED, ERROR}):
                return FAILED
            return said if before == plan.parent else ""
        if said == SKIPPED and EXECUTOR in {plan.role, earlier.role}:
            return SKIPPED if plan.role == EXECUTOR else ""
        if plan.always and before != plan.parent and said != OMITTED:
            return ""
        return OMITTED

    def forget(self) -> None:
        """Let go of the steps and their pods, which know this workflow in their turn."""
        self.steps = []
        self.news.clear()

    def reopen(self) -> None:
        """Forget what failed or was omitted: those nodes are due again, the others keep their results."""
        plans = self.graph.plans
        for index, (plan, step) in enumerate(zip(plans, self.steps, strict=True)):
            if step is not None and (step.state not in {SUCCEEDED, SKIPPED} or plan.role == JOIN):
                self.steps[index] = None
        done = [index for index, step in enumerate(self.steps) if step is not None]
        self._waits = [plan.waits for plan in plans]
        self._fates.clear()
        self.due = [k for k, waits in enumerate(self._waits) if waits == 0 and k not in done]
        self.started = self.finished = None
        self.phase, self.message = PENDING, ""
        self.failed = self.stopping = self.kept = False
        self._cascade([each for index in done for each in self._tell(index)], self.created)
