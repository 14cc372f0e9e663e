"""Runs all collectors for a run folder, each in a supervised thread, until it is stopped."""

import csv
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import TextIOWrapper

from harness import reading
from harness.collectors.collector import Collector, Observation, ObserverSettings, read_options, sources
from harness.collectors.journal import Journal
from harness.model.live.observer import LiveObserver
from harness.model.text.redaction import Redaction, values_of
from harness.store.folder import SCENARIOS, RunFolder
from harness.targets.target import Target

__all__ = ["Look", "ObserverSettings", "observe"]

_LIVE_EVERY_S = 1.0
_FIRST_LOOK_S = 8.0  # the load waits so long at most
_REQUESTS_EVERY = 10  # live updates
_RESTART_S = 5.0
_LAST_PASS_S = 20.0  # the load kills the observer after 30 s
_WHOLE_LOOK_S = 300.0  # at everything, while no run's end is awaited


@dataclass(frozen=True, slots=True)
class Look:
    """A single look at what there is, instead of an observation: what to record of it, and the sources to leave out."""

    clip: Callable[[object], object | None]
    without: frozenset[str]


def observe(
    folder: RunFolder, target: Target, settings: ObserverSettings, stop: threading.Event, look: Look | None = None
) -> None:
    """Record what the platform and its cluster show of the run in `folder` until `stop` is set, and then once more.

    With a `look`, `stop` is set as soon as every source was read, or found unreachable.

    Raises:
        ConfigError: a setting can't work.
    """
    with folder.recorder() as recorder:
        bucket = settings.bucket
        keys = (bucket.key, bucket.secret, bucket.session) if bucket else ()
        secrets = (
            *settings.credentials.secrets(settings.host),
            settings.prometheus_token,
            *keys,
            *_hidden(folder, settings),
        )
        redaction = Redaction(secrets, settings.redact)
        journal = Journal(recorder, redaction, clip=look.clip) if look else Journal(recorder, redaction)
        plan = folder.read_plan()
        observation = Observation(
            folder=folder, plan=plan, target=target, settings=settings, journal=journal,
            options=read_options(plan.observer.collector_options),
        )  # fmt: skip
        opened = _collectors(observation, look.without if look else frozenset())
        threads = [_Supervised(name, collector, journal, stop) for name, collector in opened]
        for thread in threads:
            thread.start()
        _await_first_look(threads, stop, _WHOLE_LOOK_S if look else _FIRST_LOOK_S)
        if look:
            stop.set()
        updates = 0
        while not stop.is_set():
            _write_live(folder, threads, journal, "observing")
            if updates % _REQUESTS_EVERY == 0:
                journal.write_requests()
            journal.retry()
            updates += 1
            stop.wait(_LIVE_EVERY_S)
        _await_last_pass(threads, journal, _WHOLE_LOOK_S if look else _LAST_PASS_S)
        journal.write_requests()
        _write_live(folder, threads, journal, "over")


def _hidden(folder: RunFolder, settings: ObserverSettings) -> tuple[str, ...]:
    """The values of redacted parameters."""
    if not settings.redact or not (settings.redact_from or folder.has(SCENARIOS)):
        return ()
    if settings.redact_from:
        file = reading.open_file(settings.redact_from)
    else:
        file = folder.open_file(SCENARIOS, reading.MOST_TABLE_BYTES)
    with TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        return tuple(values_of(settings.redact, csv.DictReader(text)))


def _collectors(observation: Observation, without: frozenset[str]) -> list[tuple[str, Collector]]:
    opened = []
    for name, source in sorted(sources().items()):
        collector = source.open_collector(observation) if name not in without else None
        if collector is not None:
            opened.append((name, collector))
    return opened


def _await_first_look(threads: "list[_Supervised]", stop: threading.Event, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while not all(thread.has_looked for thread in threads) and time.monotonic() < deadline:
        if stop.wait(0.02):
            return


def _await_last_pass(threads: "list[_Supervised]", journal: Journal, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            journal.note("Gap", thread.name, "its last pass took too long and was abandoned")


def _write_live(folder: RunFolder, threads: "list[_Supervised]", journal: Journal, stage: str) -> None:
    live = LiveObserver()
    for thread in threads:
        live |= thread.live() or LiveObserver()
    live = replace(live, at=journal.now(), stage=stage, requests=journal.requests, last_error=journal.last_error)
    try:
        folder.write_live("observer", live.to_json())
    except OSError as error:
        journal.last_error = f"run folder: {error.strerror}"  # the disk is full; the observation goes on


class _Supervised(threading.Thread):
    """A collector's thread. An internal error of the collector is recorded, and the collector restarted."""

    def __init__(self, name: str, collector: Collector, journal: Journal, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.collector = collector
        self._journal = journal
        self._stop_all = stop
        self._failed = False
        self._reported = ""

    @property
    def has_looked(self) -> bool:
        """It has read its source, or has failed to."""
        return self._failed or self.live() is not None

    def live(self) -> LiveObserver | None:
        """The collector's part of the live view; none where it has nothing to show or fails to."""
        try:
            return self.collector.live()
        except Exception as error:  # noqa: BLE001  # one source's defect must not hide the others
            self._report(error)
            return None

    def run(self) -> None:
        """Collect until all stop, restarting after errors."""
        while True:
            try:
                self.collector.collect(self._stop_all)
            except Exception as error:  # noqa: BLE001  # one source's defect must not end the observation of the others
                self._report(error)
            else:
                return
            if self._stop_all.wait(_RESTART_S):
                return

    def _report(self, error: Exception) -> None:
        self._failed = True
        message = f"{type(error).__name__}: {error}"
        if message == self._reported:
            return
        self._reported = message
        # Standard error is kept in the run folder, as observer.log.
        print(self._journal.clean(traceback.format_exc()), file=sys.stderr, flush=True)
        self._journal.note("Failed", self.name, message)
