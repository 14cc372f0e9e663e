"""The processes that accompany a running test: its observer, restarted if it dies, and its live diagnosis."""

import time
from collections.abc import Mapping

import gevent

from harness.drive import processes
from harness.model.errors import ConfigError, ExitCode
from harness.model.phases import GAP
from harness.model.plan import Plan
from harness.model.records import Event
from harness.plan.reach import arguments_for
from harness.store.folder import Recorder, RunFolder

LOG = "observer.log"
_START_S = 20.0
_MAX_RESTARTS = 3
_DIAGNOSE_EVERY = "10s"


class Observer:
    """A process that records the platform into `folder`. If it dies, a gap is recorded and the load goes on.

    `hidden` is a CSV of the values that must not be recorded. It is restarted `most_restarts` times.
    """

    def __init__(
        self,
        folder: RunFolder,
        plan: Plan,
        recorder: Recorder,
        environment: Mapping[str, str],
        hidden: bytes = b"",
        *,
        most_restarts: int = _MAX_RESTARTS,
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._recorder = recorder
        self._environment = environment
        self._hidden = hidden
        self._restarts_left = most_restarts
        self._process = self._start()

    def wait_until_observing(self) -> None:
        """Return when it observes, has died, or 20 seconds have passed.

        Raises:
            ConfigError: it rejects its options.
        """
        deadline = time.monotonic() + _START_S
        while not self._folder.read_live("observer") and self._process.poll() is None and time.monotonic() < deadline:
            gevent.sleep(0.05)
        if self._process.poll() == ExitCode.BAD_CONFIG:
            message = self._folder.read_bytes(LOG).decode(errors="replace").strip()
            raise ConfigError(message.removeprefix("error: "))

    def cluster_problem(self) -> str:
        """Why the cluster can't be observed; "" if it can, or if that is not known yet."""
        return str(self._folder.read_live("observer").get("kubernetes") or "")

    def restart_if_dead(self) -> None:
        """Start it again if it has died; the gap is recorded."""
        if self._process.poll() is not None and self._restarts_left:
            self._restarts_left -= 1
            message = f"the observer ended with exit code {self._process.returncode} and was restarted; see {LOG}"
            self._recorder.write(Event(time.time_ns(), "Observer", "observer", GAP, message, type="Warning"))
            self._process = self._start()

    def end(self) -> None:
        """End it after a last look at the platform."""
        processes.end(self._process)

    def _start(self) -> processes.Process:
        # Not told by the folder, which may be foreign: where requests and tokens go, what is imported, what is checked.
        command = ["observe", "--run", str(self._folder.path), "--host", self._plan.host, "--target", self._plan.target]
        command += arguments_for(self._plan.observer)
        if not self._plan.observer.verify_tls:  # of the platform's own, the environment may say so
            command += ["--insecure"]
        if self._hidden:
            command += ["--redact-from", "/dev/stdin"]
        return processes.start_beside(command, self._folder.path / LOG, self._environment, self._hidden)


class LiveDiagnosis:
    """A process that looks for bottlenecks while the test runs; nothing depends on it."""

    def __init__(self, folder: RunFolder, every: str = _DIAGNOSE_EVERY) -> None:
        verb = ["report", str(folder.path), "--findings", "--every", every, "--quiet"]
        self._process = processes.start_beside(verb, folder.path / LOG, {})

    def end(self) -> None:
        """End it: the report diagnoses the complete run."""
        processes.end(self._process, timeout_s=1.0)
