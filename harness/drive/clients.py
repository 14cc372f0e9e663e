"""What sends the requests of a test: an HTTP client, or one that runs processes on this machine."""

from typing import Protocol

from harness.drive.http_client import HttpClient
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

    def warm(self, connections: int) -> None:
        """Prepare for so many requests at once."""
        ...

    def close(self) -> None:
        """Nothing more will be sent."""
        ...


def client_of(plan: Plan, credentials: Credentials) -> Client:
    """The client of a plan; `credentials` are used where the plan names an address.

    Raises:
        ConfigError: the address or the credentials are invalid, or the kubeconfig does not lead to this platform.
    """
    if plan.host == PROCESSES:
        return ProcessClient()
    route = route_of(plan, credentials)
    return HttpClient(
        route.address, route.credentials, plan.limits, verify_tls=route.verify_tls, prepare_tls=route.prepare_tls
    )
