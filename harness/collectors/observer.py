"""Runs the collectors of a run folder until it is told to stop. Reads like what happens."""

import csv
import sys
import threading
import time
import traceback
from collections.abc import Mapping

from harness.collectors.collector import Collector, Observation, ObserverSettings, sources
from harness.collectors.journal import Journal
from harness.model.redaction import Redaction, values_of
from harness.store.folder import SCENARIOS, RunFolder
from harness.targets.target import Target

__all__ = ["ObserverSettings", "observe"]

_LIVE_EVERY_S = 1.0
_FIRST_LOOK_S = 8.0  # the load starts when the first look is over: so long it may take
_REQUESTS_EVERY = 10  # in live updates
_RESTART_S = 5.0
_LAST_PASS_S = 20.0  # the load gives the observer 30 s to end


def observe(folder: RunFolder, target: Target, settings: ObserverSettings, stop: threading.Event) -> None:
    """Record what the platform and its cluster show of the run in `folder` until `stop` is set, and once more then.

    Raises:
        ConfigError: a setting can't work.
    """
    with folder.recorder() as recorder:
        bucket = settings.store_probe
        keys = (bucket.key, bucket.secret, bucket.session) if bucket else ()
        secrets = (settings.token, settings.prometheus_token, *keys, *_hidden(folder, settings))
        redaction = Redaction(secrets, settings.redact)
        journal = Journal(recorder, redaction)
        observation = Observation(folder, folder.read_plan(), target, settings, journal)
        threads = [_Supervised(name, collector, journal, stop) for name, collector in _collectors(observation)]
        for thread in threads:
            thread.start()
        _await_first_look(threads, stop)
        updates = 0
        while not stop.is_set():
            _show(folder, threads, journal, "observing")
            if updates % _REQUESTS_EVERY == 0:
                journal.write_requests()
            journal.retry()
            updates += 1
            stop.wait(_LIVE_EVERY_S)
        _await_last_pass(threads, journal)
        journal.write_requests()
        _show(folder, threads, journal, "over")


def _hidden(folder: RunFolder, settings: ObserverSettings) -> tuple[str, ...]:
    """The values of redacted parameters."""
    scenarios = settings.redact_from or folder.path / SCENARIOS
    if not settings.redact or not scenarios.is_file():
        return ()
    with scenarios.open(encoding="utf-8-sig", newline="") as text:
        return tuple(values_of(settings.redact, csv.DictReader(text)))


def _collectors(observation: Observation) -> list[tuple[str, Collector]]:
    opened = []
    for name, source in sorted(sources().items()):
        collector = source.open_collector(observation)
        if collector is not None:
            opened.append((name, collector))
    return opened


def _await_first_look(threads: "list[_Supervised]", stop: threading.Event) -> None:
    deadline = time.monotonic() + _FIRST_LOOK_S
    while not all(thread.has_looked for thread in threads) and time.monotonic() < deadline:
        if stop.wait(0.02):
            return


def _await_last_pass(threads: "list[_Supervised]", journal: Journal) -> None:
    deadline = time.monotonic() + _LAST_PASS_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            journal.note("Gap", thread.name, "its last pass took too long and was left out")


def _show(folder: RunFolder, threads: "list[_Supervised]", journal: Journal, stage: str) -> None:
    """Say what there is to see now: the collectors' parts, our own requests, and what went wrong last."""
    live: dict[str, object] = {"at": journal.now(), "stage": stage}
    for thread in threads:
        live |= thread.live()
    live["requests"] = journal.requests
    live["last_error"] = journal.last_error
    try:
        folder.write_live("observer", live)
    except OSError as error:
        journal.last_error = f"run folder: {error.strerror}"  # the disk is full: the observation goes on without


class _Supervised(threading.Thread):
    """A collector's thread. A defect of the collector is recorded, and it is started again."""

    def __init__(self, name: str, collector: Collector, journal: Journal, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.collector = collector
        self._journal = journal
        self._stop_all = stop
        self._failed = False
        self._told = ""

    @property
    def has_looked(self) -> bool:
        """It has seen its source, or has found that it can't."""
        return self._failed or bool(self.live())

    def live(self) -> Mapping[str, object]:
        """What the collector knows of the present; nothing where it can't say it."""
        try:
            return self.collector.live()
        except Exception as error:  # noqa: BLE001  # nor must what it says of itself
            self._tell(error)
            return {}

    def run(self) -> None:
        """Collect, again and again if need be, until all stop."""
        while True:
            try:
                self.collector.collect(self._stop_all)
            except Exception as error:  # noqa: BLE001  # one source's defect must not end the observation of the others
                self._tell(error)
            else:
                return
            if self._stop_all.wait(_RESTART_S):
                return

    def _tell(self, error: Exception) -> None:
        self._failed = True
        told = f"{type(error).__name__}: {error}"
        if told == self._told:
            return
        self._told = told
        # Standard error is kept beside the records, as observer.log.
        print(self._journal.clean(traceback.format_exc()), file=sys.stderr, flush=True)
        self._journal.note("Failed", self.name, told)
