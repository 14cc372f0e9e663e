"""The child processes of a test: simulated platform, observer, diagnosis, report. Each runs a module of Pipeswarm.

They run with ``-P``: the locustfile ``kfp.py`` must not hide the package of that name. And they run in their own
sessions: Ctrl-C in the terminal is for Locust alone, which ends them in order.
"""

import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gevent

from harness.drive.console import say
from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.plan.environment import for_child
from harness.plan.subprocesses import module, run

Process = subprocess.Popen[bytes]

_START_S = 30.0
_END_S = 30.0


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulated platform on a loopback port of this machine; it ends with this process."""

    url: str
    kubeconfig: str
    profile: str
    fault: str
    process: Process

    def stop(self) -> None:
        """End the simulated platform."""
        end(self.process)


def start_simulator(profile: str, fault: str, seed: int) -> Simulator:
    """Start a simulated platform and wait until it answers.

    Raises:
        ConfigError: there is no such profile or fault.
        PipeswarmError: it does not start.
    """
    command = [*module("harness.simulator"), "serve", "--profile", profile, "--seed", str(seed), "--port", "0"]
    command += ["--die-with-parent", *(["--fault", fault] if fault else [])]
    process = subprocess.Popen(  # noqa: S603  # a module of Pipeswarm
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = b""
    try:
        with gevent.Timeout(_START_S, exception=False):
            line = process.stdout.readline()
    except BaseException:  # interrupted while it starts
        end(process)
        raise
    if not line:
        end(process)
        message = process.stderr.read().decode(errors="replace").strip()
        if process.returncode == ExitCode.BAD_CONFIG:
            raise ConfigError(message.removeprefix("error: "))
        raise PipeswarmError(f"the simulated platform does not start: {message or 'no response'}")
    ready = json.loads(line)
    gevent.spawn(_discard, process.stderr)
    return Simulator(ready["url"], ready["kubeconfig"], profile, fault, process)


def start_beside(verb: Sequence[str], log: Path, environment: Mapping[str, str], stdin: bytes = b"") -> Process:
    """Start a ``pipeswarm`` command that runs beside the test until it is ended or this process has ended.

    It reads `stdin` from an unnamed file, so that nothing stays behind. `environment` is added to this process's own.
    """
    command = [*module("harness.cli"), *verb, "--die-with-parent"]
    with log.open("ab") as errors, tempfile.TemporaryFile() as unnamed:
        unnamed.write(stdin)
        unnamed.seek(0)
        return subprocess.Popen(  # noqa: S603  # a module of Pipeswarm
            command,
            stdin=unnamed,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=for_child(environment),
            start_new_session=True,
        )


def folder_of(platform: object) -> str:
    """The folder of a platform that is a module beside the locustfile, for the observer's ``PYTHONPATH``; else ""."""
    name, file = str(getattr(platform, "__name__", "")), getattr(platform, "__file__", None)
    return str(Path(file).parent.resolve()) if file and "." not in name else ""


def report(path: Path, *options: str) -> tuple[ExitCode, str]:
    """Seal the run and write its reports, with the verb's `options`; returns its exit code and verdict.

    If the reports can't be written, the verdict is the error message.
    """
    done = run([*module("harness.cli"), "report", str(path), *options])
    try:
        code = ExitCode(done.returncode)
    except ValueError:  # ended by a signal
        code = ExitCode.BUG
    if code is ExitCode.BUG:
        return code, done.stdout + done.stderr
    if code is ExitCode.BAD_CONFIG:
        return ExitCode.INVALID, done.stderr
    return code, done.stdout


def end(process: Process, timeout_s: float = _END_S) -> None:
    """Ask a process to end and wait; kill it after `timeout_s`."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _discard(stream: object) -> None:
    while stream.readline():  # type: ignore[attr-defined]  # a full pipe would block its writer
        pass


# --- the simulated platform that is loaded if no ``--host`` is given -------------------------------------------------


class LocalSimulator:
    """Runs at most one simulated platform at a time; each test gets one that was not loaded before."""

    def __init__(self) -> None:
        self._simulator: Simulator | None = None
        self._fresh = False
        self.urls: tuple[str, ...] = ()  # of all so far: the page of a test before may still name its platform

    def prepare(self, profile: str, fault: str, seed: int) -> Simulator:
        """Return an unloaded platform of this profile: the present one if it fits, or a new one.

        Raises:
            ConfigError: there is no such profile or fault.
        """
        present = self._simulator
        if present is not None and self._fresh and (present.profile, present.fault) == (profile, fault):
            return present
        self.stop()
        new = self._simulator = start_simulator(profile, fault, seed)
        self._fresh = True
        self.urls = (*self.urls, new.url)
        injected = f" with fault {fault}" if fault else ""
        say(f"no --host: simulated platform '{profile}'{injected} started at {new.url}\n")
        return new

    def load(self, profile: str, fault: str, seed: int) -> Simulator:
        """As `prepare`, for a test that starts now: the next one gets a new platform."""
        simulator = self.prepare(profile, fault, seed)
        self._fresh = False
        return simulator

    def stop(self) -> None:
        """End the platform, if there is one."""
        if self._simulator is not None:
            self._simulator.stop()
            self._simulator = None
