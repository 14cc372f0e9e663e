"""Whether the artifact store takes objects: a small one is written, checked and deleted, if the user allows it.

Stores report that they are full in different ways: MinIO with 507 XMinioStorageFull, Ceph with 403 QuotaExceeded,
others, such as rclone and SeaweedFS, with a plain 500. So a store counts as full when it refuses a write for a quota,
and when a write fails within the store while requests for the bucket succeed.
"""

import threading
import time

from harness.collectors.collector import Observation
from harness.collectors.probes.s3 import S3, Bucket, error_of
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model import Event, Sample, TargetUnreachableError
from harness.model.http import HttpAnswer
from harness.model.live.observer import LiveObserver
from harness.model.phases import STORE_FULL, STORE_PROBE_SECONDS, STORE_WRITABLE

_SIZE = 4096  # bytes: a block of a file system; a full one has none left
_FULL_STATUS, _BROKEN_STATUS, _SLOW_STATUS = 507, 500, 503
_FULL_CODES = frozenset({"XMinioStorageFull", "QuotaExceeded", "InsufficientStorage", "StorageFull", "NoSpaceLeft"})


class StoreProbe:
    """Writes, checks and deletes one object again and again."""

    def __init__(self, observation: Observation, bucket: Bucket, s3: S3) -> None:
        self._journal = observation.journal
        self._bucket = bucket.name
        self._key = f"pipeswarm-probe-{observation.folder.path.name}"
        self._s3 = s3
        every_s = observation.settings.probe_every_s
        self._polling = Polling(SourceHealth("object store", observation.journal), self._probe, every_s)
        self._full = False

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        writable = not self._full and not self._polling.lost
        return LiveObserver(store_writable=writable) if self._polling.looked else None

    def _probe(self) -> None:
        put = self._timed("PUT", b"\0" * _SIZE)
        if put.status // 100 == 2:
            self._record(full=False, why="")
            for method in ("HEAD", "DELETE"):
                answer = self._timed(method)
                if answer.status // 100 != 2:
                    raise _failure(method, answer)
            return
        if not self._is_full(put):
            raise _failure("PUT", put)
        self._record(full=True, why=str(_failure("PUT", put)))

    def _timed(self, method: str, body: bytes = b"") -> HttpAnswer:
        begun_s = time.perf_counter()
        answer = self._send(method, self._key, body)
        taken_s, labels = time.perf_counter() - begun_s, {"operation": method, "bucket": self._bucket}
        self._journal.write(Sample(STORE_PROBE_SECONDS, self._journal.now(), taken_s, labels))
        return answer

    def _send(self, method: str, key: str = "", body: bytes = b"") -> HttpAnswer:
        try:
            return self._s3.send(method, key, body)
        except TargetUnreachableError as error:
            raise UnreachableError(error.message) from error

    def _is_full(self, put: HttpAnswer) -> bool:
        if put.status == _FULL_STATUS or error_of(put)[0] in _FULL_CODES:
            return True
        # A failure within the store, unless it is down or overloaded: then requests for its bucket fail too.
        if put.status < _BROKEN_STATUS or put.status == _SLOW_STATUS:
            return False
        return self._send("HEAD").status // 100 == 2

    def _record(self, *, full: bool, why: str) -> None:
        at, labels = self._journal.now(), {"bucket": self._bucket}
        self._journal.write(Sample(STORE_WRITABLE, at, float(not full), labels))
        if full != self._full:
            reason, severity = (STORE_FULL, "Warning") if full else ("StoreWritable", "Normal")
            text = why or "the store takes objects again"
            self._journal.write(Event(at, "ObjectStore", self._bucket, reason, text, "probe", type=severity))
            self._full = full


def _failure(method: str, answer: HttpAnswer) -> UnreachableError:
    code, message = error_of(answer)
    text = " ".join(part for part in (f"{method} answered {answer.status}", code, message) if part)
    return UnreachableError(text, answer.status)


def open_collector(observation: Observation) -> StoreProbe | None:
    """Probes the bucket that the settings name, if any.

    Raises:
        ConfigError: its endpoint is not an address.
    """
    bucket = observation.settings.bucket
    if bucket is None:
        return None
    s3 = S3(bucket, observation.connect("s3", bucket.endpoint), observation.journal.now)
    return StoreProbe(observation, bucket, s3)
