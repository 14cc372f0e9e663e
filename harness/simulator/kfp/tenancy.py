"""A KFP for several users: every call is for a namespace, and Kubernetes is asked whether the user may do it there.

Order, texts and codes are those of backend/src/apiserver/resource/resource_manager.go (``IsAuthorized``) and of
``canAccessRun``, ``canAccessExperiment`` and ``canAccessPipeline`` in backend/src/apiserver/server.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from aiohttp import web

from harness.simulator.kfp.errors import RpcError, denied, invalid, unauthenticated
from harness.simulator.kfp.server import Server

GROUP, _VERSION = "pipelines.kubeflow.org", "v1beta1"
_EMPTY = {"runs": "A run cannot have an empty namespace in multi-user mode",
          "experiments": "An experiment cannot have an empty namespace in multi-user mode"}  # fmt: skip


class Wanted(NamedTuple):
    """What a call is to do: a verb on a resource of a namespace."""

    verb: str
    resource: str
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        """As Go prints Kubernetes' ResourceAttributes."""
        return (
            f"&ResourceAttributes{{Namespace:{self.namespace},Verb:{self.verb},Group:{GROUP},Version:{_VERSION},"
            f"Resource:{self.resource},Subresource:,Name:{self.name},FieldSelector:nil,LabelSelector:nil,}}"
        )


class Verdict(NamedTuple):
    """Who calls ("" if the request does not say, or with an unknown token), and whether they may."""

    user: str
    allowed: bool


Review = Callable[[web.Request, Wanted], Verdict]


def everybody(_: web.Request, __: Wanted) -> Verdict:
    """Allows every call."""
    return Verdict("simulated", allowed=True)


class Tenancy:
    """Refuses what a user may not do. With a single user there is nothing to refuse, and Kubernetes is not asked."""

    def __init__(self, server: Server, advance: Callable[[], None], review: Review = everybody) -> None:
        self._server = server
        self._advance = advance
        self._review = review

    def namespace(self, given: str) -> str:
        """The namespace of a request; a KFP for a single user ignores it."""
        return given if self._server.multi_user else ""

    async def demand(self, request: web.Request, wanted: Wanted) -> None:
        """Ask Kubernetes, when the server's client for that has a token.

        Raises:
            RpcError: 400 without a namespace, 401 without a user, 403 without the right.
        """
        if not self._server.multi_user:
            return
        where, whose = f"namespace {wanted.namespace}", wanted.name
        if not wanted.namespace and wanted.resource == "pipelines":  # a pipeline for all
            if wanted.verb in ("get", "list"):
                return
            wanted = wanted._replace(namespace=self._server.namespace)
        elif not wanted.namespace:
            raise invalid(_EMPTY[wanted.resource])
        ready = asyncio.get_running_loop().create_future()
        self._server.after_review(lambda: None if ready.done() else ready.set_result(None))
        self._advance()
        await ready
        user, allowed = self._review(request, wanted)
        try:
            if not user:
                raise unauthenticated()
            if not allowed:
                raise denied(f"User '{user}' is not authorized with reason:  (request: {wanted})")
        except RpcError as error:
            step = {
                "runs": f"Failed to access run {whose}. Check if you have access to {where}",
                "experiments": "Failed to authorize with API",
                "pipelines": f"Failed to access pipeline {whose}. Check if you have access to {where}",
            }
            raise error.within(step[wanted.resource]) from None
