"""A KFP for several users: every call is for a namespace, and Kubernetes is asked whether the user may do it there.

Here everybody may; what a user may not do, a real API server refuses. The question takes its time all the same.
"""

import asyncio
from collections.abc import Callable

from harness.simulator.kfp.errors import invalid
from harness.simulator.kfp.server import Server


class Tenancy:
    """The namespaces of calls. With a single user there are none, and Kubernetes is not asked."""

    def __init__(self, server: Server, advance: Callable[[], None]) -> None:
        self._server = server
        self._advance = advance

    def namespace(self, given: str) -> str:
        """The namespace of a request; a KFP for a single user ignores it."""
        return given if self._server.multi_user else ""

    async def reviewed(self, kind: str, namespace: str) -> None:
        """Wait until the server's client that asks for users' rights has a token; pipelines for all need no right.

        Raises:
            RpcError: 400 without a namespace.
        """
        if not self._server.multi_user or (kind == "pipeline" and not namespace):
            return
        if not namespace:
            article = "An" if kind == "experiment" else "A"
            raise invalid(f"{article} {kind} cannot have an empty namespace in multi-user mode")
        ready = asyncio.get_running_loop().create_future()
        self._server.after_review(lambda: None if ready.done() else ready.set_result(None))
        self._advance()
        await ready
