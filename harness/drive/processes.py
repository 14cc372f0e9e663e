"""The other processes of a test: simulated platform, generator, observer, report. Each runs a module of ours.

They are started with ``-P``: Locust's folder of locustfiles, where ``kfp.py`` lies, must not come before the packages.
And each in a session of its own: a Ctrl-C in the terminal is for Locust alone, which ends them in order.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gevent

from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.plan.subprocesses import module, run

Process = subprocess.Popen[bytes]

_START_S = 30.0
_END_S = 30.0


@dataclass(frozen=True, slots=True)
class Simulator:
    """A simulated platform that runs on a loopback port of this machine, and ends with this process."""

    url: str
    kubeconfig: str
    profile: str
    fault: str
    process: Process

    def stop(self) -> None:
        """End it."""
        end(self.process)


def start_simulator(profile: str, fault: str, seed: int) -> Simulator:
    """Start a simulated platform and wait until it answers.

    Raises:
        ConfigError: there is no such profile or fault.
        PipeswarmError: it does not start.
    """
    command = [*module("harness.simulator"), "serve", "--profile", profile, "--seed", str(seed), "--port", "0"]
    command += ["--die-with-parent", *(["--fault", fault] if fault else [])]
    process = subprocess.Popen(  # noqa: S603  # our own module
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
        said = process.stderr.read().decode(errors="replace").strip()
        if process.returncode == ExitCode.BAD_CONFIG:
            raise ConfigError(said.removeprefix("error: "))
        raise PipeswarmError(f"the simulated platform does not start: {said or 'no answer'}")
    ready = json.loads(line)
    gevent.spawn(_discard, process.stderr)
    return Simulator(ready["url"], ready["kubeconfig"], profile, fault, process)


def start_beside(verb: Sequence[str], log: Path, environment: Mapping[str, str], given: bytes = b"") -> Process:
    """Start a verb of ``pipeswarm`` that goes on beside the test until it is told to end, or this process is gone.

    It finds `given` at its standard input: in a file without a name, so that nothing is left behind.
    """
    command = [*module("harness.cli"), *verb, "--die-with-parent"]
    with log.open("ab") as told, tempfile.TemporaryFile() as put:
        put.write(given)
        put.seek(0)
        return subprocess.Popen(  # noqa: S603  # our own module
            command,
            stdin=put,
            stdout=subprocess.DEVNULL,
            stderr=told,
            env={**os.environ, **environment},
            start_new_session=True,
        )


def folder_of(platform: object) -> str:
    """Where a platform lies that is a module beside the locustfile: the observer has to find it too. "" elsewhere."""
    name, file = str(getattr(platform, "__name__", "")), getattr(platform, "__file__", None)
    return str(Path(file).parent.resolve()) if file and "." not in name else ""


def report(path: Path) -> tuple[int, str]:
    """Seal the run and write its reports; returns the run's exit code and the verdict for people.

    Where they can't be written there is no verdict, and what was said instead.
    """
    command = [*module("harness.cli"), "report", str(path)]
    done = run(command)
    if done.returncode == ExitCode.BUG:
        return done.returncode, done.stdout + done.stderr
    if done.returncode == ExitCode.BAD_CONFIG:
        return ExitCode.INVALID, done.stderr
    return done.returncode, done.stdout


def end(process: Process, patience_s: float = _END_S) -> None:
    """Ask a process to end and wait; after `patience_s` it is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _discard(stream: object) -> None:
    while stream.readline():  # type: ignore[attr-defined]  # a pipe that nobody reads would stop its writer
        pass
