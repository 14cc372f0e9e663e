"""Rows of the catalogue as faults: what a component states, with the delay or the end of which it states it.

A row is stated where its first source stands: of a pod that waits for a node, that starts, that runs, or that is not
created; of a run that is not accepted. Its first example is the text.
"""

import re
from collections.abc import Iterable

from harness.model.errors import ConfigError, suggestion
from harness.reasons import Row, builtin
from harness.reasons.catalogue import DELAYS, FAILS
from harness.simulator.cluster import Change, Pod
from harness.simulator.cluster.objects import Words
from harness.simulator.kfp.errors import Code, RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.workflows.graph import RUNS_USER_CODE
from harness.simulator.workflows.launcher import FAILED as LAUNCHER_FAILED
from harness.simulator.workflows.workflow import Workflow

PREFIX = "stated:"
SHARE = 0.5  # of the runs, where none is given
_LASTS_S, _AGAIN_S = 240.0, 60.0  # how long what passes delays, and after what time it is stated again
_DIES_S = 5.0  # from a container's start to the end that is stated
_SIGKILLED, _NOT_STARTED = 137, 128
UNSCHEDULED, STARTING, CREATION, SUBMISSION, AT_WORK = "unscheduled", "starting", "creation", "submission", "at work"
_MOMENTS = {
    "scheduler": UNSCHEDULED, "autoscaler": UNSCHEDULED, "pod-condition": UNSCHEDULED, "event": STARTING,
    "kubelet-event": STARTING, "waiting": STARTING, "node-condition": STARTING, "admission": CREATION,
    "workflow": CREATION, "platform": SUBMISSION,
}  # fmt: skip
_DELETED = frozenset({"pod-condition", "event", "autoscaler"})  # sources that state why a pod is taken away
_OF_STATES = re.compile(r"Err|\wBackOff|Invalid|Unavailable|HookError|CreateContainer|RunContainer|SidecarOutlives")
_ENDS = ("Error", "OOMKilled", "StartError", "ContainerCannotRun", "ContainerStatusUnknown")
_KILLED = frozenset({"OOMKilled", "ContainerStatusUnknown"})  # of which the kubelet writes 137
_UNBOUND, _GATED = (
    "pod has unbound immediate PersistentVolumeClaims",
    "Scheduling is blocked due to non-empty scheduling gates",
)
_COUNTED = re.compile(r"node\(s\)|Insufficient|Too many pods")
_EXIT_CODE = re.compile(r"main: (\w+) \(exit code (\d+)\)")
_HTTP = re.compile(r"(?:HTTP )?([45]\d\d)\b")


def row_of(name: str) -> Row:
    """The row of a fault ``stated:NAME``.

    Raises:
        ConfigError: there is no such row.
    """
    rows = {row.name: row for row in builtin().rows}
    wanted = name.removeprefix(PREFIX)
    if wanted not in rows:
        hint = suggestion(wanted, rows)
        raise ConfigError(
            f"no row of the catalogue is called '{wanted}'", f"{hint}docs/reference/reasons.md lists them"
        )
    return rows[wanted]


def moment_of(row: Row) -> str:
    """When in a run's life it is stated."""
    source = row.sources[0]
    if row.effect == FAILS and source not in {"admission", "workflow", "platform"}:
        return AT_WORK
    if source == "event" and (row.layer == "quota" or row.about == "PersistentVolumeClaim"):
        return UNSCHEDULED
    return _MOMENTS.get(source, AT_WORK)


class Statements:
    """The rows that are stated on one platform: each about its share of the runs, no two about the same run."""

    def __init__(self, platform: Platform) -> None:
        self._platform, self._cluster, self._loop = platform, platform.cluster, platform.loop
        self._shares: dict[Row, float] = {}
        self._credits: dict[Row, float] = {}
        self._of_runs: dict[str, Row | None] = {}
        self._spared: dict[str, float] = {}  # by run: since when its first step has been hit
        self._cluster.withhold, self._cluster.kubelet.hold, self._cluster.kubelet.undo = (
            self._unscheduled, self._starting, self._at_work,
        )  # fmt: skip
        platform.controller.pods.refuse = self._created
        platform.server.refuse = self._submitted

    def add(self, row: Row, share: float) -> None:
        """State a row about this share of the runs from now on."""
        self._shares[row], self._credits[row] = min(share, 1.0), 0.0

    def _row(self, run: str, moments: Iterable[str]) -> Row | None:
        """The row that is stated of a run, if it is at one of these moments."""
        if run not in self._of_runs:
            for row, share in self._shares.items():
                self._credits[row] += share
            row = max(self._credits, key=lambda credit: self._credits[credit])
            self._of_runs[run] = row if self._credits[row] > 1 - 1e-9 else None
            if self._of_runs[run] is not None:
                self._credits[row] -= 1
        found = self._of_runs[run]
        return found if found is not None and moment_of(found) in moments else None

    def _of(self, pod: Pod, *moments: str) -> Row | None:
        """The row that is stated of a pod: of its run's first step alone where it passes, else of each."""
        if pod.role not in RUNS_USER_CODE or not isinstance(pod.owner, Workflow):
            return None
        run = pod.owner.run_id or pod.owner.name
        row = self._row(run, moments)
        if row is None or (row.effect == DELAYS and self._loop.now - self._spared.setdefault(run, self._loop.now) > 0):
            return None
        return row

    # --- the moments ----------------------------------------------------------------------------------------------

    def _submitted(self, run: Run) -> RpcError | None:
        row = self._row(run.id, (SUBMISSION,))
        if row is None:
            return None
        status = _HTTP.search(row.examples[0])
        codes = [code for code in Code if status and code.http == int(status[1])]
        return RpcError(codes[0] if codes else Code.INTERNAL, row.examples[0], row.examples[0], complete=True)

    def _created(self, pod: Pod) -> tuple[str, bool]:
        """Why a pod is not created, and whether that is the end of its step; "" if it is created."""
        if pod.role not in RUNS_USER_CODE or not isinstance(pod.owner, Workflow):
            return "", False
        run = pod.owner.run_id or pod.owner.name
        row = self._row(run, (CREATION,))
        if row is None:
            return "", False
        waits = row.effect == DELAYS or (row.effect != FAILS and row.sources[0] == "workflow")
        since = self._spared.setdefault(run, self._loop.now)
        over = row.effect == DELAYS and self._loop.now - since >= _LASTS_S
        return ("", False) if over else (row.examples[0], not waits)

    def _unscheduled(self, pod: Pod) -> bool:
        row = self._of(pod, UNSCHEDULED)
        if row is None:
            return False
        pod.unschedulable = self._loop.now
        pod.explanation = self._explanation(row)
        self._cluster.listener.pod_changed(pod, Change.UNSCHEDULABLE, pod.explanation)
        if row.sources[0] != "scheduler":
            self._say(pod, row)
        if row.effect == DELAYS:
            self._loop.after(_LASTS_S, self._cluster.scheduler.add, pod)
        return True

    def _explanation(self, row: Row) -> str:
        """What the scheduler says, with the row's text or in addition to another component's."""
        count = len(self._cluster.nodes)
        if row.sources[0] == "pod-condition":
            return row.examples[0]
        if row.sources[0] == "event":  # about the claim, or by a queue that holds the pod back
            text = _GATED if row.about == "Pod" else _UNBOUND
        else:
            text = row.examples[0] if row.sources[0] == "scheduler" else "Insufficient cpu"
        if text.startswith(_GATED):
            return text
        counted = f"{count} {text}" if _COUNTED.match(text) else text.rstrip(".")
        why = f"{count} Preemption is not helpful for scheduling"
        return f"0/{count} nodes are available: {counted}. preemption: 0/{count} nodes are available: {why}."

    def _starting(self, pod: Pod) -> bool:
        row = self._of(pod, STARTING)
        if row is None:
            return False
        self._say(pod, row)
        if row.effect == DELAYS:
            self._loop.after(_LASTS_S, self._go_on, pod)
        return True

    def _go_on(self, pod: Pod) -> None:
        pod.words = None
        if pod.node is not None:
            self._tell_node(pod, None)
            self._cluster.kubelet.pull(pod, pod.node)

    def _at_work(self, pod: Pod) -> bool:
        row = self._of(pod, AT_WORK)
        if row is None:
            return False
        if row.sources[0] not in {"log", "terminated", "pod-status", "pod-condition", "workflow"}:
            self._say(pod, row)
        if row.effect == FAILS:
            self._loop.after(_DIES_S, self._end, pod, row)
        elif row.about == "Container":  # it runs on when the others have ended
            pod.words = _words(row)
            self._loop.after(_DIES_S, self._cluster.kubelet.end_main, pod)
        return row.effect == FAILS or row.about == "Container"

    def _end(self, pod: Pod, row: Row) -> None:
        """End a pod as the row states it: its container, by its kubelet, or by its deletion."""
        kubelet, text = self._cluster.kubelet, row.examples[0]
        if pod.over or pod.deleting is not None:
            return
        if row.sources[0] in _DELETED:
            if "pod-condition" in row.sources:
                pod.disrupted = (row.reasons[0], text)
            kubelet.delete(pod, 0.0 if pod.disrupted else 30.0)
        elif row.sources[0] == "pod-status":
            pod.by_kubelet = True
            kubelet.finish(pod, _SIGKILLED, row.reasons[0], text)
        elif row.layer == "store" and "terminated" not in row.sources:
            pod.wait_error = text  # Argo's executor stores and loads
            kubelet.finish(pod)
        else:
            pod.words = _words(row) if row.about != "Pod" else None
            if pod.words is not None:  # a container beside it has ended, without which it fails
                kubelet.finish(pod, int(row.exit_code or LAUNCHER_FAILED), "Error")
                return
            known, reason = _EXIT_CODE.search(text), _reason(row, "terminated")
            code = _NOT_STARTED if reason in {"StartError", "ContainerCannotRun"} else LAUNCHER_FAILED
            code = _SIGKILLED if reason in _KILLED or "terminated" not in row.sources else code
            shown = "" if known or text == reason else text
            kubelet.finish(pod, int(known[2]) if known else code, known[1] if known else reason, shown)

    # --- what is written ------------------------------------------------------------------------------------------

    def _say(self, pod: Pod, row: Row) -> None:
        """Write the event, now and again while the pod waits, and what its containers or its node show."""
        pod.words = _words(row)
        if row.sources[0] == "node-condition":
            self._tell_node(pod, pod.words)
        self._cluster.listener.pod_changed(pod, Change.STATED, row.examples[0])
        self._loop.after(_AGAIN_S, self._say_again, pod, row)

    def _say_again(self, pod: Pod, row: Row) -> None:
        waits = pod.started is None and pod.deleting is None and not pod.over and pod.words is not None
        if waits and (row.about == "Pod" or pod.scheduled is None):
            self._say(pod, row)

    def _tell_node(self, pod: Pod, words: Words | None) -> None:
        if pod.node is not None and pod.node.words != words:
            pod.node.words = words
            self._cluster.listener.node_changed(pod.node)


def _words(row: Row) -> Words:
    # The kubelet reports a waiting container by an event.
    source = "kubelet-event" if row.sources[0] == "waiting" else row.sources[0]
    reason, state = _reason(row, source), _reason(row, "waiting") if "waiting" in row.sources else ""
    return Words(row.sources[0], reason, row.examples[0], state, row.about)


def _reason(row: Row, source: str) -> str:
    """The first of a row's reasons that such a source states."""
    if source == "terminated":
        return next((end for end in _ENDS if end in row.reasons), "Error")
    of_states = source == "waiting"
    fitting = [
        reason for reason in row.reasons if bool(_OF_STATES.search(reason)) == of_states and reason not in _ENDS[:1]
    ]
    return (fitting or list(row.reasons) or ["Failed"])[0]
