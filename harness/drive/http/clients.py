"""What sends the requests of a test: an HTTP client, or one that runs processes on this machine."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import gevent
from gevent.os import make_nonblocking, nb_read, nb_write

from harness.drive.http.client import HttpClient, Message
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.plan import Plan
from harness.plan.environment import for_child
from harness.plan.kubeconfig import route_of
from harness.targets.credentials import Credentials, for_host
from harness.targets.kube_service import same_origin
from harness.targets.target import PROCESSES

# --- the platform's credentials, bound to the origin they were given for: any visitor of the web form can enter a host


class BoundCredentials:
    """The credentials for the origin of `host`, both as this process was started."""

    def __init__(self, host: str, credentials: Credentials) -> None:
        self._host = host
        self._credentials = credentials

    def allows(self, host: str) -> bool:
        """Whether `host` has the origin that the credentials were given for."""
        return same_origin(host, self._host)

    def for_host(self, host: str) -> Credentials:
        """The credentials if `host` may have them, else none."""
        return for_host(host, self._host, self._credentials)

    def for_master(self, host: str) -> Credentials:
        """Those for the host of the master's plan; a worker that was started without a host trusts its master."""
        return for_host(host, self._host or host, self._credentials)

    def withheld_from(self, host: str) -> str:
        """A warning if there are credentials that `host` does not get, else ""."""
        if self.allows(host) or not self._credentials:
            return ""
        return f"{host} gets no credentials: they were given for {self._host or 'no host'}"


_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_NOT_STARTED = 422  # "unprocessable content": the request was understood, the command can't be run
_CHUNK = 2**16
_REAP_S = 0.01
_MOST_IDLE = 8  # each takes some 10 MB, and CPU time while it starts
_WARM_S = 0.2  # the first arrival is due a second after the test has begun


class ProcessClient:
    """Runs the command of each request to its end; the answer is what its supervisor says.

    A GET is answered with the address that stands for this machine. A request that is abandoned ends its processes.
    Some supervisors are started in advance, and one whenever a request was answered: then arrivals leave in time.
    """

    def __init__(self) -> None:
        self._idle: list[_Supervisor] = []

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Run one process.

        Raises:
            TargetUnreachableError: its supervisor can't be started, or ended without an answer.
        """
        if request.method == "GET":
            return HttpAnswer(200, PROCESSES.encode())
        try:
            supervisor = self._idle.pop() if self._idle else _start()
        except OSError as error:
            raise TargetUnreachableError(f"no further process can be started: {error.strerror}") from error
        try:
            said = _exchange(request.body + b"\n", supervisor)
        except OSError as error:
            raise TargetUnreachableError(f"the command can't be supervised: {error.strerror}") from error
        finally:
            _end(supervisor)
        if not said:
            raise TargetUnreachableError("the command's supervisor ended without an answer")
        self.warm(1, _WARM_S)
        return HttpAnswer(_NOT_STARTED if b"not_started" in said[:20] else 200, said)

    def warm(self, connections: int, within_s: float) -> None:
        """Start supervisors for so many requests at once: as many as can be within 0.2 s, and at most 8."""
        until_s = time.monotonic() + min(_WARM_S, within_s)
        with suppress(OSError):  # requests report it
            while len(self._idle) < min(connections, _MOST_IDLE) and time.monotonic() < until_s:
                self._idle.append(_start())

    def close(self) -> None:
        """End the supervisors that wait for a request."""
        while self._idle:
            _end(self._idle.pop())


class _Supervisor(NamedTuple):
    """A process, and our ends of the pipes to its input and from its output."""

    pid: int
    stdin: int
    stdout: int


def _start() -> _Supervisor:
    """Start a supervisor, which waits for its request.

    A fork of Locust's process would copy its page tables for tens of milliseconds, and delay all arrivals.
    """
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            # Isolated (-I): PYTHONPATH and the folder of the locustfile are for the command only.
            [sys.executable, "-I", str(_SUPERVISOR)],
            for_child({}),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs_in, 0),
                (os.POSIX_SPAWN_DUP2, theirs_out, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,  # Ctrl-C in the terminal is for Locust alone
        )
    except OSError:
        os.close(ours_in)
        os.close(ours_out)
        raise
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    for end in (ours_in, ours_out):
        make_nonblocking(end)
    return _Supervisor(pid, ours_in, ours_out)


def _exchange(wanted: bytes, supervisor: _Supervisor) -> bytes:
    while wanted:
        wanted = wanted[nb_write(supervisor.stdin, wanted) :]
    said = b""
    while chunk := nb_read(supervisor.stdout, _CHUNK):
        said += chunk
    return said


def _end(supervisor: _Supervisor) -> None:
    os.close(supervisor.stdin)  # it ends the command, if that is not over
    os.close(supervisor.stdout)
    gevent.spawn(_reap, supervisor.pid)


def _reap(pid: int) -> None:
    """Take note of the end of a supervisor, so that no zombie remains."""
    with suppress(ChildProcessError):  # gevent has done it
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            gevent.sleep(_REAP_S)


class Client(Protocol):
    """An `Exchange` that prepares for load."""

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send one request, once; see `Exchange`."""
        ...

    def warm(self, connections: int, within_s: float) -> None:
        """Prepare for so many requests at once, as far as that is possible in this time."""
        ...

    def close(self) -> None:
        """Nothing more will be sent."""
        ...


@runtime_checkable
class RendersAhead(Protocol):
    """A client whose requests can be made before they are due, so that at the due time only a write is left."""

    def render(self, request: HttpRequest) -> Message:
        """Make what is sent; see `HttpClient.render`."""
        ...

    def write(self, message: Message) -> None:
        """Hand it to the kernel if that is possible at once; see `HttpClient.write`."""
        ...

    def finish(self, message: Message) -> HttpAnswer:
        """Send what is left, and read the response; see `HttpClient.finish`."""
        ...


def client_of(
    plan: Plan, credentials: Credentials, on_slow_connect: Callable[[float], None] = lambda _: None
) -> Client:
    """The client of a plan; `credentials` are used where the plan names an address. See `HttpClient`.

    Raises:
        ConfigError: the address or the credentials are invalid, or the kubeconfig does not lead to this platform.
    """
    if plan.host == PROCESSES:
        return ProcessClient()
    route = route_of(plan, credentials)
    return HttpClient(
        route.address,
        route.credentials,
        plan.limits,
        verify_tls=route.verify_tls,
        prepare_tls=route.prepare_tls,
        on_slow_connect=on_slow_connect,
    )
