"""One run of a pipeline as the workflow controller sees it: which pods are due, which are over, and how it ends."""

from collections.abc import Iterator, Mapping

from harness.simulator.cluster import Pod
from harness.simulator.kfp.graph import JOIN, TEMPLATES, Graph, Plan, fnv1a

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
ERROR, OMITTED, SKIPPED = "Error", "Omitted", "Skipped"


class Step:
    """What became of one node of the graph. Instants are seconds of simulated time."""

    __slots__ = ("attempts", "finished", "message", "output", "pods", "started", "state")

    def __init__(self, started: float) -> None:
        self.state = PENDING
        self.started = started
        self.finished: float | None = None
        self.message = ""
        self.attempts = 0
        self.output = 0.0  # bytes it left in the artifact store
        self.pods: list[Pod] = []

    @property
    def pod(self) -> Pod | None:
        """Its latest pod."""
        return self.pods[-1] if self.pods else None


class Workflow:
    """A live workflow. The graph is shared; what is its own is how many each node still waits for.

    `due` holds the nodes whose pods can be made; the controller takes from it when it comes round to this workflow.
    """

    __slots__ = (
        "_waits",
        "active",
        "created",
        "deadline",
        "due",
        "failed",
        "finished",
        "graph",
        "hash",
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
        self.queued = False  # for a reconciliation
        self.active = 0  # pods that are made or about to be
        self.news: list[tuple[int, Pod]] = []  # pods that are over, not yet looked at
        self.steps: list[Step | None] = [None] * len(graph.plans)
        self._waits = [plan.waits for plan in graph.plans]
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

    def template(self, plan: Plan) -> str:
        """The Argo template a node is made from."""
        return TEMPLATES.get(plan.role, "")

    def end_step(self, index: int, state: str, now: float, message: str = "") -> None:
        """A node of the graph is over: whoever waited only for it is due; after a failure, omitted."""
        pending = [(index, state, message)]
        while pending:
            index, state, message = pending.pop()
            step = self.steps[index]
            if step is None:
                step = self.steps[index] = Step(now)
            step.state, step.finished, step.message = state, now, message
            bad = state in {FAILED, ERROR, OMITTED}
            if state in {FAILED, ERROR}:
                self.failed = True
                self.message = self.message or message
            for following in self.graph.plans[index].then:
                ended = self._one_less(following, bad=bad)
                if ended:
                    pending.append((following, ended, ""))

    def forget(self) -> None:
        """Let go of the steps and their pods, which know this workflow in their turn."""
        self.steps = []
        self.news.clear()

    def reopen(self) -> None:
        """Forget what failed or was omitted: those nodes are due again, the others keep their results."""
        plans = self.graph.plans
        for index, step in enumerate(self.steps):
            if step is not None and step.state not in {SUCCEEDED, SKIPPED}:
                self.steps[index] = None
        done = {index for index, step in enumerate(self.steps) if step is not None}
        self._waits = [plan.waits for plan in plans]
        for index in done:
            for following in plans[index].then:
                self._waits[following] -= 1
        self.due = [k for k, waits in enumerate(self._waits) if waits == 0 and k not in done]
        self.started = self.finished = None
        self.phase, self.message = PENDING, ""
        self.failed = self.stopping = False

    def _one_less(self, index: int, *, bad: bool) -> str:
        """One fewer to wait for; returns the state of a node that thereby ends without a pod, "" otherwise."""
        plan = self.graph.plans[index]
        if bad and not plan.always and self.steps[index] is None:
            doomed = self.steps[index] = Step(0.0)
            doomed.state = OMITTED
        self._waits[index] -= 1
        if self._waits[index]:
            return ""
        step = self.steps[index]
        if step is not None and step.state == OMITTED:
            return OMITTED
        if plan.role == JOIN:
            return SUCCEEDED
        self.due.append(index)
        return ""
