"""The observer of a running test: started beside the load, started again if it dies, ended with the test."""

import time
from collections.abc import Mapping

import gevent

from harness.drive import processes
from harness.model.errors import ConfigError, ExitCode
from harness.model.phases import GAP
from harness.model.records import Event
from harness.store.folder import Recorder, RunFolder

LOG = "observer.log"
_START_S = 20.0
_MOST_RESTARTS = 3
_LOOK_EVERY = "10s"


class Observer:
    """A process that records the platform into `folder`. Its death is recorded as a gap; the load is not disturbed.

    `hidden` is a CSV with the values that must not be recorded.
    """

    def __init__(
        self,
        folder: RunFolder,
        recorder: Recorder,
        environment: Mapping[str, str],
        hidden: bytes = b"",
    ) -> None:
        self._folder = folder
        self._recorder = recorder
        self._environment = environment
        self._hidden = hidden
        self._restarts = 0
        self._process = self._start()

    def wait_until_it_looks(self) -> None:
        """Return when it has begun to look, or has died, or some time has passed.

        Raises:
            ConfigError: it can't work with these options.
        """
        waited = time.monotonic() + _START_S
        while not self._folder.read_live("observer") and self._process.poll() is None and time.monotonic() < waited:
            gevent.sleep(0.05)
        if self._process.poll() == ExitCode.BAD_CONFIG:
            said = (self._folder.path / LOG).read_text(encoding="utf-8", errors="replace").strip()
            raise ConfigError(said.removeprefix("error: "))

    def watch(self) -> None:
        """Start it again if it has died."""
        if self._process.poll() is not None and self._restarts < _MOST_RESTARTS:
            self._restarts += 1
            told = f"the observer ended with {self._process.returncode} and was started again; see {LOG}"
            self._recorder.write(Event(time.time_ns(), "Observer", "observer", GAP, told, type="Warning"))
            self._process = self._start()

    def end(self) -> None:
        """Let it have a last look, and end."""
        processes.end(self._process)

    def _start(self) -> processes.Process:
        command = ["observe", "--run", str(self._folder.path)]
        if self._hidden:
            command += ["--redact-from", "/dev/stdin"]
        return processes.start_beside(command, self._folder.path / LOG, self._environment, self._hidden)


class LiveDiagnosis:
    """A process that says, while the test goes, what holds the platform back. Without it nothing else is missing."""

    def __init__(self, folder: RunFolder) -> None:
        verb = ["diagnose", str(folder.path), "--every", _LOOK_EVERY, "--quiet"]
        self._process = processes.start_beside(verb, folder.path / LOG, {})

    def end(self) -> None:
        """The report will say it better."""
        processes.end(self._process, patience_s=1.0)
