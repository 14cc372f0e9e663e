"""Records of pods, nodes and runs, made from the changes in the cluster."""

from collections.abc import Callable, Iterator, Mapping

from harness.model import Event, Node, PodSpans, Sample, Span
from harness.model.argo.nodes import task_of_node
from harness.model.phases import (
    CPU_LIMIT_CORES,
    FAILED,
    LAUNCHER_ERROR,
    OF_TASK,
    POD_CFS_PERIODS,
    POD_CFS_THROTTLED,
    POD_CPU_CORES,
    POD_MEMORY_BYTES,
    POD_PRIORITY,
    PULLING,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUN,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORING,
    UNSCHEDULABLE,
    UPLOAD_SECONDS,
)  # fmt: skip
from harness.model.sampling import of_failures, of_uploads, of_uses
from harness.reasons import stated
from harness.reasons.catalogue import SCHEDULER
from harness.simulator import cluster
from harness.simulator.cluster import Change, Pod, Shape
from harness.simulator.cluster.objects import DISRUPTED_BY_GC, DISRUPTED_BY_SCHEDULER
from harness.simulator.engine.calendar import Calendar
from harness.simulator.fast.records import SOURCE, Compact, Record
from harness.simulator.kfp.records import OVER, Run
from harness.simulator.platform import Platform
from harness.simulator.workflows.graph import EXECUTOR, RUNS_USER_CODE, STEP
from harness.simulator.workflows.launcher import CFS_PERIODS_PER_S, Launch
from harness.simulator.workflows.workflow import SUCCEEDED, Workflow

_EXPLANATION_S = 1.0  # how long equal pods share the scheduler's explanation
_PHASES: tuple[str, ...] = (SCHEDULING, PULLING, STARTING, RUNNING, STORING)
_BLOCKED_PHASES = (SCHEDULING, UNSCHEDULABLE, *_PHASES[1:])
_ALWAYS_SHOWN = {SCHEDULING, UNSCHEDULABLE, RUNNING}  # even with a length of 0
# Reason and type of the events recorded for changes of pods.
_REASONS: Mapping[Change, tuple[str, str]] = {
    Change.UNSCHEDULABLE: ("FailedScheduling", "Warning"),
    Change.SCALE_UP: ("TriggeredScaleUp", "Normal"),
    Change.NO_SCALE_UP: ("NotTriggerScaleUp", "Normal"),
    Change.STATED: ("", "Warning"),
    Change.PREEMPTED: ("Preempted", "Normal"),
}
_CREATED, _ENDS = Change.CREATED, {Change.OVER, Change.GONE}
_READ = 20  # failed workflows whose nodes are read, as an observer reads a bounded number
_NOTED = {_CREATED, *_ENDS, *_REASONS, Change.REFUSED}  # most changes are others, which only show in the spans


class Recorder:
    """A listener that turns changes into records, to be fetched with `take`."""

    platform: Platform  # whose changes it records; set by `follow`
    when_over: Callable[[], None]  # called when the platform shows that a run is over

    def __init__(self, origin_at: int) -> None:
        self._calendar = Calendar(origin_at)
        self._nodes: dict[str, cluster.Node] = {}
        self._events: list[Event] = []
        self._going: dict[str, Pod] = {}
        self._stated: dict[str, dict[str, str]] = {}  # by pod and phase
        self._over: list[Pod] = []
        self._ended: list[tuple[list[Record], Workflow | None]] = []  # of runs; with the workflow of one that failed
        self._explained: dict[Shape, tuple[float, str]] = {}
        self._read = 0
        self._usual: dict[str, Shape] = {}  # the requests of each task's first pod
        self._failures, self._uploads = of_failures(), of_uploads()  # whose logs are read
        self._uses = of_uses()

    def follow(self, platform: Platform) -> None:
        """Record this platform, whose clock stamps the records."""
        self.platform = platform
        self._calendar.skew = platform.skew
        platform.run_watchers.append(self._run_over)
        platform.workflow_watchers.append(self._workflow_changed)

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        """Record why a pod waits, and its end."""
        if change not in _NOTED:
            return
        if change is _CREATED:
            self._going[pod.name] = pod
        elif change in _ENDS:
            if self._going.pop(pod.name, None) is not None:  # a pod that had ended may be deleted later
                self._over.append(pod)
        elif change is Change.REFUSED:  # no pod was created: only the workflow's node says so
            self._events.append(_of_task(pod, "PENDING", detail, self._now_at))
        else:
            reason, kind = _REASONS[change]
            if change is Change.UNSCHEDULABLE:
                detail = pod.explanation or self._why(pod.shape)
                self._stated.setdefault(pod.name, {}).setdefault(UNSCHEDULABLE, stated(SCHEDULER, reason, detail))
            elif change is Change.STATED and pod.words is not None:
                source, reason, detail, *_ = pod.words
                phase = UNSCHEDULABLE if pod.scheduled is None else PULLING if pod.pulled is None else RUNNING
                self._stated.setdefault(pod.name, {})[phase] = stated(source, reason, detail)
            run = _run_id(pod.owner) if isinstance(pod.owner, Workflow) else None
            self._events.append(Event(self._now_at, "Pod", pod.name, reason, detail, SOURCE, run, type=kind))

    def node_changed(self, node: cluster.Node, reason: str = "", message: str = "") -> None:
        """Record the node and its events."""
        self._nodes[node.name] = node
        if reason and reason != "NodeReady":
            kind = "Warning" if reason == "PreemptScheduled" else "Normal"
            self._events.append(Event(self._now_at, "Node", node.name, reason, message, SOURCE, type=kind))

    def _run_over(self, run: Run) -> None:
        """The API server knows a run to be over."""
        self._ended.append((_run(run, self._calendar), run.workflow if run.state == FAILED else None))
        self.when_over()

    def _workflow_changed(self, workflow: Workflow) -> None:
        """The object of a workflow of Argo's own shows its end."""
        if workflow.over and not workflow.run_id and not workflow.kept:
            workflow.kept = True
            records = _run_of_workflow(workflow, self.platform.loop.now, self._calendar)
            self._ended.append((records, workflow if workflow.phase != SUCCEEDED else None))
            self.when_over()

    @property
    def _now_at(self) -> int:
        return self._calendar.ns(self.platform.loop.now)

    def _why(self, shape: Shape) -> str:
        """The scheduler's explanation, shared by equal pods for a while because it scans every node."""
        now, known = self.platform.loop.now, self._explained.get(shape)
        if known is None or now - known[0] > _EXPLANATION_S:
            known = self._explained[shape] = (now, self.platform.cluster.scheduler.ranks.explain(shape))
        return known[1]

    # --- records ------------------------------------------------------------------------------------------------

    def take(self) -> Iterator[Compact]:
        """The records since the last call."""
        calendar = self._calendar
        events, self._events = self._events, []
        yield from events
        pods, self._over = self._over, []
        for pod in pods:
            yield from self._pod(pod, calendar)
        for records, failed in self._ended:
            yield from records
            if failed is not None:
                yield from self._reasons(failed)
        self._ended.clear()

    def rest(self) -> Iterator[Compact]:
        """All nodes, and the runs and pods that have not ended."""
        calendar = self._calendar
        for node in self._nodes.values():
            yield _node(node, self.platform.cluster.spot.price(node), calendar)
        for run in self.platform.server.runs.values():
            if run.state not in OVER:
                yield from _run(run, calendar)
        for workflow in self.platform.controller.workflows.values():
            if not workflow.run_id and not workflow.over:
                yield from _run_of_workflow(workflow, None, calendar)
        for pod in self._going.values():
            yield from self._pod(pod, calendar)

    def _pod(self, pod: Pod, calendar: Calendar) -> list[Compact]:
        """A pod's spans, and its requests: once per task, and again for each pod whose requests differ."""
        assert isinstance(pod.owner, Workflow)
        task = _task(pod)
        launch = self._logged(pod, task)
        found = _life(pod, task, _run_id(pod.owner), calendar, launch.uploading if launch else None)
        if reasons := self._stated.pop(pod.name, None):
            spans = found[0]
            assert isinstance(spans, PodSpans)
            spans.reasons = {k: reasons[phase] for k, phase in enumerate(spans.phases) if phase in reasons}
        if launch is not None:
            found.extend(_launched(pod, launch, task, calendar))
        shape, usual = pod.shape, self._usual.get(task)
        if usual is None or (*shape[:3], shape.priority) != (*usual[:3], usual.priority):
            self._usual.setdefault(task, shape)
            labels = {"task": task} if usual is None else {"pod": pod.name}
            requested = (
                (REQUESTED_CPU_CORES, shape.cpu / 1000),
                (REQUESTED_MEMORY_BYTES, float(shape.memory)),
                (REQUESTED_GPUS, float(shape.gpu)),
                (CPU_LIMIT_CORES, pod.limit_cpu / 1000),
                (POD_PRIORITY, float(shape.priority)),
            )
            found.extend(Sample(metric, calendar.ns(pod.created), value, labels) for metric, value in requested)
        if pod.role in RUNS_USER_CODE and pod.main_ended is not None and self._uses.chooses(task):
            found.extend(_used(pod, calendar.ns(pod.main_ended)))
        return found

    def _logged(self, pod: Pod, task: str) -> Launch | None:
        """What the launcher of a pod did, if the observer would read its log."""
        if not isinstance(pod.launch, Launch) or not pod.over or pod.deleting is not None or pod.role == STEP:
            return None
        sampling = self._failures if pod.phase == "Failed" else self._uploads
        return pod.launch if sampling.chooses(task) else None

    def _reasons(self, workflow: Workflow) -> Iterator[Event]:
        """The messages of a failed workflow's nodes, of the first few."""
        self._read += 1
        for _, step in workflow.made() if self._read <= _READ else ():
            for pod in step.pods:
                state, message = step.ended.get(pod.name, ("", ""))
                if message and pod.finished is not None:
                    yield _of_task(pod, state.upper(), message, self._calendar.ns(pod.finished))


def _used(pod: Pod, at: int) -> Iterator[Record]:
    """One measurement of what a pod's command used, as metrics-server and cAdvisor measure it."""
    labels = {"pod": pod.name}
    yield Sample(POD_CPU_CORES, at, pod.usage_cpu, labels)
    yield Sample(POD_MEMORY_BYTES, at, pod.usage_memory, labels)
    if pod.limit_cpu and isinstance(pod.launch, Launch):
        yield Sample(POD_CFS_PERIODS, at, CFS_PERIODS_PER_S, labels)
        yield Sample(POD_CFS_THROTTLED, at, CFS_PERIODS_PER_S * pod.launch.throttled, labels)


def _launched(pod: Pod, launch: Launch, task: str, calendar: Calendar) -> Iterator[Record]:
    """What the log shows: how long the outputs were uploaded, and why the launcher failed."""
    assert isinstance(pod.owner, Workflow)
    if launch.error and pod.main_ended is not None:
        at = calendar.ns(pod.main_ended)
        yield Event(at, "Pod", pod.name, LAUNCHER_ERROR, launch.error, SOURCE, _run_id(pod.owner), type="Warning")
    elif launch.uploaded is not None and launch.uploading is not None:
        labels = {"task": task, "pod": pod.name}
        yield Sample(UPLOAD_SECONDS, calendar.ns(launch.uploaded), launch.uploaded - launch.uploading, labels)


def _task(pod: Pod) -> str:
    """The task's name, as an observer takes it from the node's."""
    if pod.role == STEP:
        assert isinstance(pod.owner, Workflow)
        return task_of_node(f"{pod.owner.name}{pod.path}", pod.owner.name)
    if pod.role == EXECUTOR or "-driver" not in pod.path:  # what a driver or an importer does alone is the task
        return pod.task
    return f"{pod.task or 'root'}-driver"


def _run_id(workflow: Workflow) -> str:
    """The run's id in KFP; a workflow of Argo's own is a run of its name."""
    return workflow.run_id or workflow.name


def _of_task(pod: Pod, state: str, message: str, at: int) -> Event:
    """What the workflow's node of a pod says."""
    assert isinstance(pod.owner, Workflow)
    return Event(at, OF_TASK, _task(pod), state, message, SOURCE, _run_id(pod.owner), type="Warning")


def _node(node: cluster.Node, price: float | None, calendar: Calendar) -> Node:
    return Node(
        node.name, node.pool.name, calendar.ns(node.created), calendar.when(node.ready), calendar.when(node.gone),
        node.cpu / 1000, float(node.memory), float(node.gpu), node.pool.pods, node.pool.spot, price, SOURCE,
        machine=node.pool.instance_type,
    )  # fmt: skip


def _run(run: Run, calendar: Calendar) -> list[Record]:
    """A run's span, and the event of its end once the API server has recorded it."""
    learned = run.history[-1][0] if run.state in OVER else None
    return _run_records(run.id, run.name, (run.created, run.finished, learned), run.state, calendar)


def _run_of_workflow(workflow: Workflow, learned: float | None, calendar: Calendar) -> list[Record]:
    """The same for a workflow of Argo's own, whose object shows its end from `learned` on."""
    state = "SUCCEEDED" if workflow.phase == SUCCEEDED else FAILED
    times = workflow.created, workflow.finished, learned
    return _run_records(workflow.name, workflow.title or workflow.name, times, state, calendar, workflow.message)


def _run_records(
    run: str, name: str, times: tuple[float, float | None, float | None], state: str, calendar: Calendar, why: str = ""
) -> list[Record]:
    """Of a run that was created, ended and is known to have ended at these times."""
    created, finished, learned = times
    if learned is None:
        return [Span(run, "", RUN, calendar.ns(created), None, task=name, source=SOURCE)]
    kind = "Normal" if state == "SUCCEEDED" else "Warning"
    return [
        Span(run, "", RUN, calendar.ns(created), calendar.when(finished), task=name, source=SOURCE),
        Event(calendar.ns(learned), "Run", run, state, why, SOURCE, run, type=kind),
    ]


def _life(pod: Pod, task: str, run_id: str, calendar: Calendar, uploading: float | None) -> list[Compact]:
    """The phases of a pod so far, and how it failed; a lost pod ends in its current phase.

    Storing begins when `uploading` did, if the log was read, else with the end of the main container.
    """
    over, begun = pod.finished, pod.created
    ends: tuple[float | None, ...]
    phases, ends = _PHASES, (
        pod.scheduled, pod.pulled, pod.started, pod.main_ended if uploading is None else uploading, over,
    )  # fmt: skip
    if pod.unschedulable is not None:
        phases, ends = _BLOCKED_PHASES, (pod.unschedulable, *ends)
    at = calendar.ns
    shown: list[str] = []
    bounds: list[int | None] = [at(begun)]
    for phase, end in zip(phases, ends, strict=True):
        until = over if end is None else end
        if until is None:
            shown.append(phase)
            bounds.append(None)
        elif until > begun or phase in _ALWAYS_SHOWN:
            shown.append(phase)
            bounds.append(at(until))
            begun = until
        if end is None:
            break
    node = pod.node.name if pod.node is not None else None
    found: list[Compact] = [PodSpans(run_id, pod.name, task, node, SOURCE, shown, bounds)]
    if pod.exit_code and over is not None:
        reason, text = _end(pod)
        found.append(Event(at(over), "Pod", pod.name, reason, text, SOURCE, run_id, type="Warning"))
    if pod.wait_error and over is not None:
        found.append(Event(at(over), "Pod", pod.name, "Error", pod.wait_error, SOURCE, run_id, type="Warning"))
    return found


def _end(pod: Pod) -> tuple[str, str]:
    """Reason and message of a pod that failed or was lost, as its status shows them."""
    if pod.deleting is not None and pod.preemptor is not None:
        return DISRUPTED_BY_SCHEDULER
    if pod.disrupted:
        return pod.disrupted[0], pod.disrupted[1]
    if pod.deleting is not None and pod.node is not None and pod.node.gone is not None:
        return DISRUPTED_BY_GC
    return pod.reason, pod.message or f"container main ended with exit code {pod.exit_code}"
