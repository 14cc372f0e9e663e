"""The pods of runs as spans, and the failures of all pods, written whenever they are known better."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.events import BEFORE_NS
from harness.collectors.kubernetes.pod.launcher_logs import EndedPod, LauncherLog, ended_pod
from harness.collectors.kubernetes.pod.life import PodLife
from harness.collectors.kubernetes.pod.requests import RecordedRequests, requests_of
from harness.collectors.kubernetes.pod.stated import of_node, text_of
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import Stamp, event_stamps
from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.forgetting import Ids, Leaving
from harness.model.records import Node, Span
from harness.reasons import builtin

_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})

_KEPT_S = 300.0  # of a deleted pod: its events, its log, and another pod of its name come later


@dataclass(slots=True)
class _Known:
    """A pod's life, and what was written of it."""

    life: PodLife
    place: tuple[str, str]  # namespace and name
    spans: dict[tuple[str, int], Span]
    noticed_at: int | None  # when the watch showed its creation, by our clock; none once that has been used
    failures: int = 0


class Pods:
    """Takes in pods and their events from several threads.

    `offer` is called with each pod whose log may be read, once.

    Attributes:
        runs: runs that pods have worked for.
        hosts: nodes that they have been on.
        step_hosts: those of them with other pods than KFP's drivers.
    """

    def __init__(self, journal: Journal, since: int, offer: Callable[[EndedPod], None] = lambda _: None) -> None:
        self._journal = journal
        self._offer = offer
        self._since = since - BEFORE_NS
        self._pods: dict[str, _Known] = {}
        self._by_name: dict[tuple[str, str], str] = {}  # the latest uid of each (namespace, name)
        self._alive: set[str] = set()  # of runs
        self._deleted: Leaving[str] = Leaving(_KEPT_S)
        self._forgotten: Counter[str] = Counter()  # pods of runs by phase
        self.runs = Ids()
        self.hosts: frozenset[str] = frozenset()
        self.step_hosts: frozenset[str] = frozenset()
        self._requests = RecordedRequests()
        self._of_nodes: dict[str, list[tuple[str, Stamp]]] = {}  # what nodes state
        self._taints: dict[str, dict[str, str]] = {}  # by node: keys of taints by their whole text
        self._ahead: int | None = None  # offset of our clock plus delay of the watch, against the cluster's clock, ns
        self._lock = threading.Lock()

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a pod that is new, changed or gone."""
        metadata = manifest["metadata"]
        uid = str(metadata["uid"])
        with self._lock:
            now_at = self._journal.now()
            self._forget(now_at)
            known = self._pods.get(uid)
            if known is None:
                known = self._new(uid, manifest, now_at)
            life, was_over = known.life, known.life.over is not None
            if change == "DELETED":
                life.see_deleted(manifest, now_at)
                self._deleted.add(uid, now_at)
            else:
                life.see(manifest, now_at)
                for text, since in self._of_nodes.get(life.node or "", ()):
                    life.see_statement(text, since, Stamp(now_at, 0.0))
            if life.run:
                self.runs.add(life.run)
                if life.node:
                    self.hosts |= {life.node}
                    self.step_hosts |= set() if life.task.endswith(DRIVER_SUFFIX) else {life.node}
            if life.run and life.over is None:
                self._alive.add(uid)
            else:
                self._alive.discard(uid)
            self._write(known)
            if life.over and not was_over and change != "DELETED" and life.over.at >= self._since:
                ended = ended_pod(manifest, life.run, life.task)
                if ended is not None:
                    self._offer(ended)

    def _new(self, uid: str, manifest: Manifest, now_at: int) -> _Known:
        """Take in a pod that was not known; one of its name before it keeps its spans."""
        life, metadata = PodLife.of(manifest), manifest["metadata"]
        name = str(metadata.get("namespace", "")), str(metadata["name"])
        known = self._pods[uid] = _Known(life, name, {}, now_at)
        if before := self._pods.get(self._by_name.get(name, "")):
            life.earlier = before.life.earlier | dict(sorted(before.spans))  # of each phase the last attempt
        self._by_name[name] = uid
        if life.run:
            requests = requests_of(manifest.get("spec") or {})
            for sample in self._requests.samples(life.task, life.name, requests, now_at):
                self._journal.write(sample)
        return known

    def _forget(self, now_at: int) -> None:
        """Drop pods that were deleted long ago: memory follows what the cluster holds, not what the test has run."""
        for uid in self._deleted.due(now_at):
            gone = self._pods.pop(uid, None)
            if gone is None:
                continue
            name = gone.place
            if self._by_name.get(name) == uid:
                del self._by_name[name]
            self._forgotten[gone.life.phase] += bool(gone.life.run)

    def see_log(self, uid: str, log: LauncherLog) -> None:
        """Take in what the log of a pod shows."""
        with self._lock:
            known = self._pods.get(uid)
            if known is not None and log.uploading_at is not None:
                known.life.see_upload(log.uploading_at)
                self._write(known)

    def see_event(self, event: Manifest) -> PodLife | None:
        """Take in an event of a pod; returns the pod's life, none when the pod is not known.

        Most events name the pod's uid; those of the controller that clears unreachable nodes do not.
        """
        about = event["involvedObject"]
        with self._lock:
            uid = about.get("uid") or self._by_name.get((about.get("namespace", ""), about.get("name", "")), "")
            known = self._pods.get(uid)
            if known is None:
                return None
            known.life.see_event(event)
            if known.noticed_at is not None and known.life.scheduled_at is not None:
                self._date_creation(known, known.noticed_at, known.life.scheduled_at)
            self._write(known)
            return known.life

    def see_node(self, manifest: Manifest, node: Node | None) -> None:
        """Take in what a node's conditions state, none if it is gone: its pods wait or end for that."""
        name = str(manifest["metadata"]["name"])
        told = of_node(manifest, node, self._journal.now()) if node else []
        taints = (manifest.get("spec") or {}).get("taints") or () if node else ()
        self._taints[name] = {
            _named(taint): str(taint.get("key")) for taint in taints if taint.get("effect") in _KEEPS_OFF
        }
        if told or name in self._of_nodes:
            with self._lock:
                self._of_nodes[name] = told
                now = Stamp(self._journal.now(), 0.0)
                for text, since in told:
                    self._state(text, since, now, lambda life: life.node == name)

    def see_other_event(self, event: Manifest) -> None:
        """Take in an event about what pods need: their claims, their nodes, and new nodes by an autoscaler."""
        about, text = event.get("involvedObject") or {}, text_of(event)
        name, first_last = str(about.get("name") or ""), event_stamps(event)
        needs: dict[str, Callable[[PodLife], bool]] = {
            "PersistentVolumeClaim": lambda life: name in life.claims,
            "Node": lambda life: life.node == name,
        }
        concerns = needs.get(str(about.get("kind")))
        if concerns is None and text.startswith("autoscaler/"):
            concerns = _unscheduled
        if concerns is not None and builtin().match(text).row is not None:
            with self._lock:
                self._state(text, *first_last, concerns)

    def _state(self, text: str, first: Stamp, last: Stamp, concerns: Callable[[PodLife], bool]) -> None:
        for uid in self._alive:
            if concerns(self._pods[uid].life):
                self._pods[uid].life.see_statement(text, first, last)
                self._write(self._pods[uid])

    def _date_creation(self, known: _Known, noticed_at: int, scheduled_at: int) -> None:
        """Date a pod's creation, which the API server stamps in whole seconds, by when the watch showed it.

        The scheduler's timestamps, in microseconds, calibrate the clocks: the smallest difference between such a
        timestamp and its arrival here is our clock's offset plus the delay of the watch.
        """
        ahead = self._journal.now() - scheduled_at
        self._ahead = ahead if self._ahead is None else min(self._ahead, ahead)
        known.life.appeared(noticed_at - self._ahead)
        known.noticed_at = None

    @property
    def alive(self) -> int:
        """How many pods of runs are not over."""
        return len(self._alive)

    @property
    def working(self) -> set[str]:
        """The runs that have a living pod."""
        with self._lock:
            return {self._pods[uid].life.run for uid in self._alive}

    @property
    def blocked(self) -> int:
        """How many runs have a living pod that waits for what will not come unless someone intervenes."""
        now_at = self._journal.now()
        with self._lock:
            lives = (self._pods[uid].life for uid in self._alive)
            return len({life.run for life in lives if life.is_blocked(now_at)})

    def phases(self) -> Mapping[str, int]:
        """The pods of runs by phase."""
        with self._lock:
            return self._forgotten + Counter(known.life.phase for known in self._pods.values() if known.life.run)

    def _write(self, known: _Known) -> None:
        life = known.life
        if life.over and life.over.at < self._since:
            return
        if life.node is None and life.run:
            off = {each for taints in tuple(self._taints.values()) for each, key in taints.items()
                   if not {key, ""} & life.tolerated}  # fmt: skip
            life.taint = off.pop() if len(off) == 1 else ""
        outdated = dict(known.spans)
        for span in life.spans():
            key = (span.phase, span.attempt)
            outdated.pop(key, None)
            if known.spans.get(key) != span:
                known.spans[key] = span
                self._journal.write(span)
        for key, span in outdated.items():
            # It never happened, as is known now; a written span can only be overridden by an empty one.
            if span.ended_at != span.started_at:
                known.spans[key] = replace(span, ended_at=span.started_at)
                self._journal.write(known.spans[key])
        failures = life.failures()
        for failure in failures[known.failures :]:
            self._journal.write(failure)
        known.failures = len(failures)


def _unscheduled(life: PodLife) -> bool:
    return life.node is None


def _named(taint: Mapping[str, str]) -> str:
    """A taint as the scheduler writes it."""
    return f"{taint.get('key')}: {taint.get('value') or ''}".rstrip()
