"""Whether the artifact store takes objects: a small one is written, looked for and deleted, where the user allows it.

A full store says so in as many ways as there are stores: MinIO answers 507 XMinioStorageFull, Ceph 403 QuotaExceeded,
and others, such as rclone and SeaweedFS, a plain 500 for what they can't write. So a write that fails within the store
while it goes on to answer for its bucket counts as full, and one that is refused for a quota.
"""

import threading
import time
from collections.abc import Mapping

from harness.collectors.collector import Observation
from harness.collectors.http import Http, Timeouts
from harness.collectors.polling import Polling
from harness.collectors.probes.s3 import S3, Bucket, error_of
from harness.collectors.source_health import SourceHealth, UnreachableError
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpAnswer
from harness.model.phases import STORE_FULL, STORE_PROBE_SECONDS, STORE_WRITABLE
from harness.model.records import Event, Sample

_SIZE = 4096  # bytes: one block of a file system, which a full one does not have
_FULL_STATUS, _BROKEN_STATUS, _SLOW_STATUS = 507, 500, 503
_FULL_CODES = frozenset({"XMinioStorageFull", "QuotaExceeded", "InsufficientStorage", "StorageFull", "NoSpaceLeft"})


class StoreProbe:
    """Writes, looks for and deletes one object again and again."""

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

    def live(self) -> Mapping[str, object]:
        """See `Collector`; whether the store takes objects."""
        return {"store_writable": not self._full and not self._polling.lost} if self._polling.looked else {}

    def _probe(self) -> None:
        put = self._timed("PUT", b"\0" * _SIZE)
        if put.status // 100 == 2:
            self._tell(full=False, why="")
            self._checked(self._timed("HEAD"), "HEAD")
            self._checked(self._timed("DELETE"), "DELETE")
            return
        if not self._is_full(put):
            raise _failure("PUT", put)
        self._tell(full=True, why=str(_failure("PUT", put)))

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
        # Anything else within the store; a store that is down or overloaded does not answer for its bucket either.
        if put.status < _BROKEN_STATUS or put.status == _SLOW_STATUS:
            return False
        return self._send("HEAD").status // 100 == 2

    def _checked(self, answer: HttpAnswer, method: str) -> None:
        if answer.status // 100 != 2:
            raise _failure(method, answer)

    def _tell(self, *, full: bool, why: str) -> None:
        at, labels = self._journal.now(), {"bucket": self._bucket}
        self._journal.write(Sample(STORE_WRITABLE, at, float(not full), labels))
        if full != self._full:
            reason, severity = (STORE_FULL, "Warning") if full else ("StoreWritable", "Normal")
            text = why or "objects are taken again"
            self._journal.write(Event(at, "ObjectStore", self._bucket, reason, text, "probe", type=severity))
            self._full = full


def _failure(method: str, answer: HttpAnswer) -> UnreachableError:
    code, message = error_of(answer)
    text = " ".join(part for part in (f"{method} answered {answer.status}", code, message) if part)
    return UnreachableError(text, answer.status)


def open_collector(observation: Observation) -> StoreProbe | None:
    """Probes the bucket that the settings name, if they name one.

    Raises:
        ConfigError: its endpoint is no address.
    """
    settings = observation.settings
    if settings.store_probe is None:
        return None
    timeouts = Timeouts(settings.connect_timeout_s, settings.answer_timeout_s)
    exchange = Http(
        "s3", settings.store_probe.endpoint, "", timeouts, observation.journal.count, verify_tls=settings.verify_tls
    )
    s3 = S3(settings.store_probe, exchange, observation.journal.now)
    return StoreProbe(observation, settings.store_probe, s3)
