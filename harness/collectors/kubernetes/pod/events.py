"""A cluster's events, recorded with each repetition; those of pods also date the pods' phases."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.life import PodLife
from harness.collectors.kubernetes.reflector import ADDED, Manifest
from harness.collectors.kubernetes.timestamps import event_count, event_stamps
from harness.model.forgetting import Leaving
from harness.model.records import Event

# What happened earlier than this before the test's start belongs to another test.
BEFORE_NS = 60 * 10**9
# Pods and events are watched separately: an event that arrives before its pod is held so long.
_HELD_S = 3.0
_KEPT_S = 300.0  # of an event's count: a cluster keeps events for an hour, a busy one a million


class Events:
    """Records the cluster's events.

    Args:
        journal: takes the records.
        see_pod_event: takes in an event of a pod and returns the pod's life; none when the pod is not known.
        since: the test's start, UTC ns.
        recorded: what an earlier observer has recorded.
        see_other_event: takes in an event about any other object.
        run_of_workflow: the run that a workflow (its namespace and name) carries out; none if it is not known.
    """

    def __init__(
        self,
        journal: Journal,
        see_pod_event: Callable[[Manifest], PodLife | None],
        since: int,
        recorded: Iterable[Event] = (),
        run_of_workflow: Callable[[str, str], str | None] = lambda _namespace, _name: None,
        see_other_event: Callable[[Manifest], None] = lambda _: None,
    ) -> None:
        self._journal = journal
        self._see_pod_event = see_pod_event
        self._run_of_workflow, self._see_other_event = run_of_workflow, see_other_event
        self._since = since - BEFORE_NS
        self._recorded = {(e.kind, e.object, e.reason, e.at) for e in recorded if e.source == "kubernetes"}
        self._seen: dict[str, tuple[int, int]] = {}  # count and time of the last occurrence, by uid
        self._leaving: Leaving[str] = Leaving(_KEPT_S)
        self._forgotten_at = 0  # last occurrence of those whose count was forgotten
        self._held: deque[tuple[int, str, Manifest]] = deque()
        self._lock = threading.Lock()

    def see(self, change: str, event: Manifest) -> None:
        """Record an event that is new or has happened again."""
        if change == "DELETED":
            with self._lock:
                self._seen.pop(str(event["metadata"]["uid"]), None)
            return
        if "regarding" in event:
            event = _as_core(event)
        about = event.get("involvedObject") or {}
        life = self._see_pod_event(event) if about.get("kind") == "Pod" else None
        if life is None and about.get("kind") == "Pod":
            with self._lock:
                self._held.append((self._journal.now(), change, event))
        else:
            if life is None:
                self._see_other_event(event)
            self._record(change, event, life)

    def release(self, *, every: bool = False) -> None:
        """Record events that were held long enough, or `every` held event."""
        now_at = self._journal.now()
        while True:
            with self._lock:
                if not self._held or not (every or now_at - self._held[0][0] > _HELD_S * 1e9):
                    return
                _, change, event = self._held.popleft()
            self._record(change, event, self._see_pod_event(event))

    def _forget(self) -> None:
        """Drop what happened long ago, unless it has happened more than once: such counts go on."""
        for uid in self._leaving.due(self._journal.now()):
            count, at = self._seen.get(uid, (0, 0))
            if count == 1:
                del self._seen[uid]
                self._forgotten_at = max(self._forgotten_at, at)

    def _record(self, change: str, event: Manifest, life: PodLife | None) -> None:
        first, last = event_stamps(event)
        about, uid = event.get("involvedObject") or {}, str(event["metadata"]["uid"])
        count = event_count(event)
        with self._lock:
            self._forget()
            if uid not in self._seen:
                self._leaving.add(uid, self._journal.now())
            # Another listing, or a repetition, may show one that was forgotten: it was recorded once.
            forgotten = change != ADDED and first.at <= self._forgotten_at
            known, known_at = self._seen.get(uid, (int(forgotten), last.at))
            news = max(count - known, int(last.at > known_at))
            self._seen[uid] = (max(count, known), max(last.at, known_at))
        kind, name, reason = (str(each or "") for each in (about.get("kind"), about.get("name"), event.get("reason")))
        if news <= 0 or last.at < self._since or (kind, name, reason, last.at) in self._recorded:
            return
        message, run = str(event.get("message") or ""), (life.run or None) if life else None
        if kind == "Workflow":
            run = self._run_of_workflow(str(about.get("namespace") or ""), name)
        severity = str(event.get("type") or "Normal")
        within = str(about.get("namespace") or "")
        self._journal.write(Event(last.at, kind, name, reason, message, "kubernetes", run, news, severity, within))


def _as_core(event: Manifest) -> Manifest:
    """An event of ``events.k8s.io/v1`` with the field names of the core API."""
    names = {"involvedObject": "regarding", "message": "note", "count": "deprecatedCount"}
    stamps = {"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp"}
    return {**event, **{ours: event.get(theirs) for ours, theirs in (names | stamps).items()}}
