"""What sends the requests of a test: an HTTP client, or one that runs processes on this machine."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from harness.drive.http_client import HttpClient, Message
from harness.drive.process_client import ProcessClient
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.plan import Plan
from harness.plan.kubeconfig import route_of
from harness.targets.credentials import Credentials
from harness.targets.target import PROCESSES


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
