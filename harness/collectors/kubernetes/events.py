"""A cluster's events, each recorded as often as it happened; those of pods also tell the pods' phases."""

import threading
from collections import deque
from collections.abc import Callable

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pods import PodLife
from harness.collectors.kubernetes.reflector import Manifest
from harness.collectors.kubernetes.timestamps import event_count, event_stamps
from harness.model.records import Event

# What happened so long before the test started is of another one.
BEFORE_NS = 60 * 10**9
# A pod's event may come before the pod does, since they are watched apart: it is held so long.
_HELD_S = 3.0


class Events:
    """The cluster's events.

    Args:
        journal: gets them.
        tell_pod: is told of an event of a pod, and says which pod that is; none when it is not known.
        since: the test's start, UTC ns.
        recorded: (kind, object, reason, at) of those that are recorded already.
    """

    def __init__(
        self,
        journal: Journal,
        tell_pod: Callable[[Manifest], PodLife | None],
        since: int,
        recorded: set[tuple[str, str, str, int]],
    ) -> None:
        self._journal = journal
        self._tell_pod = tell_pod
        self._since = since - BEFORE_NS
        self._recorded = recorded
        self._seen: dict[str, tuple[int, int]] = {}  # how often, and when last, by uid
        self._held: deque[tuple[int, Manifest]] = deque()
        self._lock = threading.Lock()

    def see(self, change: str, event: Manifest) -> None:
        """Record an event when it is new or has happened again."""
        if change == "DELETED":
            with self._lock:
                self._seen.pop(str(event["metadata"]["uid"]), None)
            return
        if "regarding" in event:
            event = _as_core(event)
        about = event.get("involvedObject") or {}
        if about.get("kind") == "Pod":
            life = self._tell_pod(event)
            if life is None:
                with self._lock:
                    self._held.append((self._journal.now(), event))
                return
            self._record(event, life.run or None)
        else:
            self._record(event, None)

    def release(self, *, every: bool = False) -> None:
        """Record events that were held for pods that have come meanwhile, or never will."""
        now_at = self._journal.now()
        while True:
            with self._lock:
                if not self._held or not (every or now_at - self._held[0][0] > _HELD_S * 1e9):
                    return
                _, event = self._held.popleft()
            life = self._tell_pod(event)
            self._record(event, life.run or None if life else None)

    def _record(self, event: Manifest, run: str | None) -> None:
        _, last = event_stamps(event)
        about, uid = event.get("involvedObject") or {}, str(event["metadata"]["uid"])
        count = event_count(event)
        with self._lock:
            known, known_at = self._seen.get(uid, (0, last.at))
            news = max(count - known, int(last.at > known_at))
            self._seen[uid] = (max(count, known), max(last.at, known_at))
        kind, name, reason = (str(each or "") for each in (about.get("kind"), about.get("name"), event.get("reason")))
        if news <= 0 or last.at < self._since or (kind, name, reason, last.at) in self._recorded:
            return
        message = str(event.get("message") or "")
        severity = str(event.get("type") or "Normal")
        self._journal.write(Event(last.at, kind, name, reason, message, "kubernetes", run, news, severity))


def _as_core(event: Manifest) -> Manifest:
    """An event of ``events.k8s.io/v1`` as the core API shows it; they are the same events."""
    names = {"involvedObject": "regarding", "message": "note", "count": "deprecatedCount"}
    stamps = {"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp"}
    return {**event, **{ours: event.get(theirs) for ours, theirs in (names | stamps).items()}}
