"""A pod's life, reconstructed from its manifest and its events, as spans and failures.

A pod of a KFP v2 run has the labels ``pipeline/runid`` (the run's id) and ``workflows.argoproj.io/workflow``, and the
annotation ``workflows.argoproj.io/node-name``: ``<workflow>(0).root(0).train-driver(0)`` for a driver, and
``<workflow>(0).root(0).train(0).executor(0)`` for the pod that runs the user's container. Each ``(0)`` is an attempt;
without KFP's ConfigMap, which makes every node one that may be retried, there are none. The main container is called
``main``; ``wait`` beside it saves logs and outputs for Argo. KFP's launcher saves artifacts within ``main``, which only
its log shows: see `launcher_logs`. A run's task details name no pods.

The pods of a Dask cluster have the labels ``dask.org/cluster-name``, which is the run's id, and ``dask.org/component``.
Its scheduler and workers serve the pod that computes (component ``stage``).

Conditions and the kubelet's events have timestamps in whole seconds, the scheduler's events in microseconds; the
lengths of pulls in the kubelet's messages are exact to a millisecond.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise, zip_longest
from typing import Any

from harness.collectors.kubernetes.pod.image_pulls import Pulls
from harness.collectors.kubernetes.pod.stated import SCHEDULING_REASONS, Statements
from harness.collectors.kubernetes.timestamps import Stamp, event_stamps, finer, settled, stamp
from harness.model.argo.nodes import task_of_node
from harness.model.phases import PULLING, RUNNING, SCHEDULING, SERVING, SIDECARS, STARTING, STORING, UNSCHEDULABLE
from harness.model.records import Event, Span
from harness.reasons import stated
from harness.targets.dask_tenants.objects import CLUSTER, COMPONENT
from harness.targets.target import LabelsPods, Target

WORKFLOW = "workflows.argoproj.io/workflow"
RUN_ID = "pipeline/runid"
NODE_NAME = "workflows.argoproj.io/node-name"
LABELS = (RUN_ID, WORKFLOW, CLUSTER, COMPONENT)  # that are read here
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_SERVING = frozenset({"scheduler", "worker"})  # components of Dask clusters that others compute with
_OWN = ("main", "wait")  # containers of a step; others are injected
_BLOCKED_NS = 60 * 10**9  # what is stated once may pass: a secret that is created a moment later
_UNNAMED = "untolerated taint(s)"  # as schedulers from Kubernetes 1.35 on write, without the taints
_FINE_S = 1e-3
_WATCH_DELAY_S = 0.05  # a watch shows a pod within this time after its creation
# Reasons for which a container waits in vain.
STUCK = frozenset(
    {
        "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
        "ImagePullBackOff", "InvalidImageName", "RunContainerError",
    }
)  # fmt: skip


def run_of(manifest: Mapping[str, Any]) -> str:
    """The id of the run that a pod works for: KFP's run id, Argo's workflow, or a Dask cluster; "" for other pods."""
    labels = manifest["metadata"].get("labels") or {}
    return str(labels.get(RUN_ID) or labels.get(WORKFLOW) or labels.get(CLUSTER) or "")


def label_of(target: Target) -> str:
    """The label that all pods of a target's runs have."""
    return target.pod_label if isinstance(target, LabelsPods) else WORKFLOW


def task_of(manifest: Mapping[str, Any]) -> str:
    """The step's name in the pipeline: ``train`` where the user's container runs, ``train-driver`` for its driver.

    Of a Dask cluster, its component.
    """
    metadata = manifest["metadata"]
    labels = metadata.get("labels") or {}
    if CLUSTER in labels:
        return str(labels.get(COMPONENT) or metadata["name"])
    workflow = str(labels.get(WORKFLOW, ""))
    path = str((metadata.get("annotations") or {}).get(NODE_NAME, ""))
    return task_of_node(path, workflow) if path else str(metadata["name"])


@dataclass(slots=True)
class PodLife:
    """What is known of one pod. Manifests and events may be seen in any order.

    Attributes:
        name: of the pod.
        run: the platform's id of its run; "" when it works for none.
        task: the step's name in the pipeline.
        created: when the pod was created.
        phase: in Kubernetes' words: Pending, Running, Succeeded, Failed; or Deleted.
        over: when it ended; none while it lives.
        node: the node that it was scheduled to.
        tolerated: keys of the taints that it tolerates; "" for every taint.
        taint: that keeps it off all nodes that are tainted, as ``sku: training``; "" where it is none, or several.
        claims: names of the volume claims that it mounts.
        serves: its main container serves other pods of its run, until it is deleted.
        earlier: by phase, the last attempt of a pod of this name before it: Argo creates a pod that was lost again.
    """

    name: str
    run: str
    task: str
    created: Stamp
    _: KW_ONLY
    phase: str = "Pending"
    over: Stamp | None = None
    node: str | None = None
    serves: bool = False
    tolerated: frozenset[str] = frozenset()
    taint: str = ""
    claims: frozenset[str] = frozenset()
    earlier: dict[str, int] = field(default_factory=dict)
    _unschedulable: Stamp | None = None
    _scheduled: Stamp | None = None
    _started: Stamp | None = None
    _finished: Stamp | None = None
    _uploading: Stamp | None = None  # within the main container
    _pulls: Pulls = field(default_factory=Pulls)
    _statements: Statements = field(default_factory=Statements)
    _outlived: tuple[str, Stamp] | None = None  # a container that ran on after the others, and since when
    _failures: dict[tuple[str, str], Event] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> "PodLife":
        """A life with what the manifest's metadata hold."""
        metadata = manifest["metadata"]
        created = stamp(metadata.get("creationTimestamp")) or Stamp(0, 1.0)
        serves = (metadata.get("labels") or {}).get(COMPONENT) in _SERVING
        return cls(str(metadata["name"]), run_of(manifest), task_of(manifest), created, serves=serves)

    def see(self, manifest: Mapping[str, Any], now_at: int) -> None:
        """Take in the pod as it is now."""
        status = manifest.get("status") or {}
        self.phase = str(status.get("phase") or self.phase)
        spec = manifest.get("spec") or {}
        self.node = spec.get("nodeName") or self.node
        self.tolerated = frozenset(str(toleration.get("key") or "") for toleration in spec.get("tolerations") or ())
        mounted = (volume.get("persistentVolumeClaim") or {} for volume in spec.get("volumes") or ())
        self.claims = frozenset(str(each["claimName"]) for each in mounted if each.get("claimName"))
        for condition in status.get("conditions") or ():
            self._see_condition(condition)
        containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        self._see_main(manifest, status.get("containerStatuses") or ())
        if self.phase in {"Succeeded", "Failed"} and self.over is None:
            # The containers of a pod whose node is gone are shown as running to the end.
            running = any("running" in (container.get("state") or {}) for container in containers)
            ends = [] if running else [each for each in map(_end, containers) if each]
            self.over = max(ends, default=None) or _latest_transition(status) or _just_now(now_at)
        self._see_sidecars(status.get("containerStatuses") or ())
        self._statements.see_status(status, containers, now_at)
        self._see_failures(status, containers, now_at)

    def see_deleted(self, manifest: Mapping[str, Any], now_at: int) -> None:
        """The pod was deleted, which ends whatever had not ended before."""
        if self.over is None:
            deleted = stamp(manifest["metadata"].get("deletionTimestamp"))
            self.over = deleted if deleted and deleted.at <= now_at else _just_now(now_at)
            self.phase = "Deleted"

    def see_event(self, event: Mapping[str, Any]) -> None:
        """Take in an event about the pod."""
        first, last = event_stamps(event)
        reason, message = str(event.get("reason", "")), str(event.get("message", ""))
        self._statements.see_event(event)
        if reason in SCHEDULING_REASONS:
            self._unschedulable = finer(self._unschedulable, first)
        elif reason == "Scheduled":
            self._scheduled = finer(self._scheduled, first)
        elif reason == "Pulling":
            self._pulls.see_start(message, first)
        elif reason == "Pulled":
            self._pulls.see_end(message, last)

    def see_statement(self, text: str, first: Stamp, last: Stamp) -> None:
        """Take in what was stated about an object that the pod needs, from `first` to `last`."""
        self._statements.add(text, first, last)

    def see_upload(self, began_at: int) -> None:
        """The main container began to store its outputs at `began_at`, UTC ns, as its log says."""
        self._uploading = Stamp(began_at, 1e-6)

    def appeared(self, at: int) -> None:
        """The watch suggests that the pod was created at `at`, UTC ns.

        Used if it falls into the whole second that the API server stamped.
        """
        for later in (self._unschedulable, self._scheduled):
            at = min(at, later.latest) if later else at  # the watch may be late
        if self.created.at <= at <= self.created.latest:
            earliest = max(self.created.at, at - round(_WATCH_DELAY_S * 1e9))
            self.created = Stamp(earliest, (at - earliest) / 1e9)

    @property
    def scheduled_at(self) -> int | None:
        """When it was scheduled, UTC ns, if known to the microsecond."""
        fine = self._scheduled and self._scheduled.resolution_s < _FINE_S
        return self._scheduled.at if self._scheduled and fine else None

    def spans(self) -> list[Span]:
        """The pod's consecutive phases so far; none for a pod that works for no run."""
        if not self.run:
            return []
        boundaries, ongoing = self._boundaries()
        instants: list[int | None] = [*settled([known for _, known in boundaries])]
        by_scheduler = self._statements.by_scheduler()
        if ongoing:
            boundaries.append(("", Stamp(0, 0.0)))
            instants.append(None)
        counts = dict(self.earlier)
        spans = []
        for k, ((phase, start), (_, end)) in enumerate(pairwise(boundaries)):
            attempt = counts[phase] = counts.get(phase, -1) + 1
            started_at = instants[k]
            assert started_at is not None
            last = ongoing and k == len(boundaries) - 2
            if phase == UNSCHEDULABLE:
                place = attempt - self.earlier.get(phase, -1) - 1
                reason = self._statements.explained(by_scheduler[place].text) if place < len(by_scheduler) else ""
                reason = reason.replace(_UNNAMED, f"{_UNNAMED} {{{self.taint}}}") if self.taint else reason
            elif phase == SIDECARS and self._outlived:
                ran_on = f"{self._outlived[0]} runs on after main has ended"
                reason = stated("pod-status", "SidecarOutlivesMain", ran_on)
            else:
                reason = self._statements.during(phase, start, None if last else end)
            spans.append(
                Span(
                    self.run, self.name, phase, started_at, instants[k + 1], self.task, attempt, self.node,
                    "kubernetes", max(start.resolution_s, end.resolution_s), reason,
                )
            )  # fmt: skip
        return spans

    def is_blocked(self, now_at: int) -> bool:
        """Whether it has waited long for what will not come unless someone intervenes, as was stated of it."""
        waits = self.over is None and self._started is None
        return waits and self._statements.block(self.node is None, now_at - _BLOCKED_NS)

    def failures(self) -> list[Event]:
        """What went wrong in it, each failure once, in the order of sight."""
        return list(self._failures.values())

    # --- what the manifest holds ----------------------------------------------------------------------------------

    def _see_condition(self, condition: Mapping[str, Any]) -> None:
        if condition.get("type") != "PodScheduled":
            return
        at = stamp(condition.get("lastTransitionTime"))
        if condition.get("status") == "True":
            self._scheduled = finer(self._scheduled, at)
        elif condition.get("reason") in SCHEDULING_REASONS:
            self._unschedulable = finer(self._unschedulable, at)

    def _see_main(self, manifest: Mapping[str, Any], statuses: Iterable[Mapping[str, Any]]) -> None:
        by_name = {str(status["name"]): status for status in statuses}
        default = (manifest["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER, "")
        main = by_name.get(default) or by_name.get("main") or next(iter(by_name.values()), None)
        if main is None:
            return
        state, before = main.get("state") or {}, main.get("lastState") or {}
        for each in (before.get("terminated"), state.get("terminated"), state.get("running")):
            self._started = self._started or stamp((each or {}).get("startedAt"))
        self._finished = stamp((state.get("terminated") or {}).get("finishedAt")) or self._finished

    def _see_sidecars(self, containers: Sequence[Mapping[str, Any]]) -> None:
        """A container that runs on after Argo's ``wait`` has ended keeps the pod, and so the workflow, from ending."""
        by_name = {str(container["name"]): container for container in containers}
        own = [_end(by_name[name]) for name in _OWN if name in by_name]
        if "main" not in by_name or not own or not all(own):
            return
        ended = max(each for each in own if each)
        for name, each in by_name.items():
            end = _end(each)
            running = "running" in (each.get("state") or {})
            if name not in _OWN and (running or (end is not None and end.at > ended.latest)):
                self._outlived = (name, ended)
                return

    def _see_failures(self, status: Mapping[str, Any], containers: Iterable[Mapping[str, Any]], now_at: int) -> None:
        if self.phase == "Failed" and status.get("reason"):
            at = self.over.at if self.over else now_at
            self._fail("", str(status["reason"]), str(status.get("message") or ""), at)
        for condition in status.get("conditions") or ():
            if (
                condition.get("type") == "DisruptionTarget"
                and condition.get("status") == "True"
                and condition.get("reason")
            ):
                disrupted = stamp(condition.get("lastTransitionTime"))
                at = disrupted.at if disrupted else now_at
                self._fail("", str(condition["reason"]), str(condition.get("message") or ""), at)
        for container in containers:
            name, state = str(container["name"]), container.get("state") or {}
            waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
            if waiting.get("reason") in STUCK:
                self._fail(name, str(waiting["reason"]), str(waiting.get("message") or ""), now_at)
            if ended.get("exitCode"):
                end = stamp(ended.get("finishedAt"))
                text = (
                    str(ended.get("message") or "").strip()
                    or f"container {name} ended with exit code {ended['exitCode']}"
                )
                self._fail(name, str(ended.get("reason") or "Error"), text, end.at if end else now_at)

    def _fail(self, container: str, reason: str, message: str, at: int) -> None:
        event = Event(at, "Pod", self.name, reason, message, "kubernetes", self.run or None, type="Warning")
        self._failures.setdefault((container, reason), event)

    # --- the order of its phases ----------------------------------------------------------------------------------

    def _boundaries(self) -> tuple[list[tuple[str, Stamp]], bool]:
        """Where each phase begins, in order, and whether the last is ongoing; if not, the last boundary is the end."""
        found = [(SCHEDULING, self.created)]
        if self._unschedulable:
            found.append((UNSCHEDULABLE, self._unschedulable))
            changes = [statement.first for statement in self._statements.by_scheduler()[1:]]
            found += [(UNSCHEDULABLE, change) for change in changes if change.at >= self._unschedulable.at]
        if self._scheduled:
            found.append((STARTING, self._scheduled))
            pulling = self._add_pulls(found)
            if self._started:
                found.append((SERVING if self.serves else RUNNING, self._started))
            elif pulling and not self.over:
                return found, True
        storing = self._uploading or self._finished
        if self._started and storing and storing != self.over and not self.serves:
            found.append((STORING, storing))
        if self._outlived and self._started and not self.serves:
            found.append((SIDECARS, self._outlived[1]))
        if self.over:
            found.append(("", self.over))
        return found, self.over is None

    def _add_pulls(self, found: list[tuple[str, Stamp]]) -> bool:
        """Add the pulls, with a start after each ended one; returns whether the last one is ongoing."""
        running = self._started
        # Later pulls are for containers that start later.
        pulls = [each for each in self._pulls.in_order() if running is None or each.start.at < running.latest]
        for pull, following in zip_longest(pulls, pulls[1:]):
            start, end = pull.narrowed(found[-1][1])
            found.append((PULLING, start))
            # A kubelet pulls a pod's images one after the other.
            end = end or (following.start if following else None)
            if end is None:
                return True
            if running and end.at > running.latest:
                end = running
            found.append((STARTING, end))
        return False


def _just_now(now_at: int) -> Stamp:
    """An instant shortly before `now_at`, UTC ns: within the last second."""
    return Stamp(now_at - 10**9, 1.0)


def _end(container: Mapping[str, Any]) -> Stamp | None:
    return stamp(((container.get("state") or {}).get("terminated") or {}).get("finishedAt"))


def _latest_transition(status: Mapping[str, Any]) -> Stamp | None:
    """When a pod without terminated containers ended: one that was evicted or lost has only its conditions."""
    stamps = [stamp(condition.get("lastTransitionTime")) for condition in status.get("conditions") or ()]
    return max((each for each in stamps if each), default=None)
