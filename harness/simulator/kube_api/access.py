"""Who asks, and whether they may: bearer tokens, impersonation, and RBAC for every path of the Kubernetes API."""

import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from harness.simulator.kube_api.errors import ApiError, unauthorized
from harness.simulator.kube_api.options import flag
from harness.simulator.kube_api.rbac import AUTHENTICATED, UNAUTHENTICATED, Attempt, User, granted
from harness.simulator.kube_api.store import ObjectStore

_ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
# Where nobody has an account, everybody is this user, who may do everything.
EVERYBODY = User("simulated", ("system:masters", AUTHENTICATED))
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_METRICS = "/metrics"
_OTHER_GROUP = re.compile(r"/apis/(?!v\d)")  # KFP's API is below /apis, too, and begins with its version
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Access:
    """The rights of the clients of one API.

    Args:
        store: holds the roles and bindings.
        accounts: users by bearer token. Without any, every client may do everything, with and without a token.
    """

    def __init__(self, store: ObjectStore, accounts: Mapping[str, User]) -> None:
        self.store = store
        self._accounts = accounts

    @property
    def guarded(self) -> bool:
        """Whether anybody has an account, so that not every client may do everything."""
        return bool(self._accounts)

    def user(self, request: web.Request) -> User:
        """Who sends the request, or whom they impersonate.

        Raises:
            ApiError: 401 for an unknown token, 403 for an impersonation without the right to it.
        """
        if not self._accounts:
            return EVERYBODY
        given = request.headers.get("Authorization", "")
        user = self._accounts.get(_token(given)) if given else _ANONYMOUS
        if user is None:
            raise unauthorized()
        other = request.headers.get("Impersonate-User")
        if not other:
            return user
        self.check(user, Attempt("impersonate", resource="users", name=other))
        groups = request.headers.getall("Impersonate-Group", [])
        for group in groups:
            self.check(user, Attempt("impersonate", resource="groups", name=group))
        return User(other, (*groups, AUTHENTICATED))

    def why(self, user: User, attempt: Attempt) -> str | None:
        """Why the user may do it; none if they may not."""
        return "" if not self._accounts else granted(self.store, user, attempt)

    def check(self, user: User, attempt: Attempt) -> None:
        """Refuse what the user may not do.

        Raises:
            ApiError: 403, in the words of a real server.
        """
        if self.why(user, attempt) is None:
            raise _forbidden_path(user.name, attempt) if attempt.path else _forbidden(user.name, attempt)

    def middleware(self, ours: Callable[[str], bool]) -> Any:
        """Check every request to one of the API's paths, before it is known whether anything is there."""

        @web.middleware
        async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
            path = request.path
            # KFP's API server has its metrics there, too, which need no right: a client of Kubernetes has a token.
            metrics = path == _METRICS and "Authorization" in request.headers
            if self._accounts and (metrics or ours(path) or _OTHER_GROUP.match(path)):
                self.check(self.user(request), attempt(request.method, path, request.query))
            return await handler(request)

        return check


def _token(authorization: str) -> str:
    """The token in a header; "" if there is none.

    Without TLS `kubectl` sends no token, but what stands before the host in its server's address, as name and password.
    """
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    try:
        return b64decode(given).decode().partition(":")[2]
    except ValueError:
        return ""


def attempt(method: str, path: str, query: Mapping[str, str]) -> Attempt:
    """What a request would do.

    ``/api/v1/…`` and ``/apis/GROUP/VERSION/…`` lead to ``[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]``; every
    other path is no resource.
    """
    root, *parts = path.strip("/").split("/")
    group, parts = ("", parts[1:]) if root == "api" else (parts[0] if parts else "", parts[2:])
    if root not in ("api", "apis") or not parts:
        return Attempt(method.lower(), path=path)
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in ("finalize", "status"):
            parts = parts[2:]
    plural, name, subresource = (*parts, "", "")[:3]
    verb = _VERBS.get(method, "get")
    if not name:
        verb = {"delete": "deletecollection", "get": "watch" if flag(query, "watch") else "list"}.get(verb, verb)
    return Attempt(verb, group, plural, subresource, namespace, name)


def _forbidden(user: str, attempt: Attempt) -> ApiError:
    """403: the user has no right to do that to a resource."""
    details = {"name": attempt.name, "group": attempt.group, "kind": attempt.resource}
    qualified = f"{attempt.resource}.{attempt.group}" if attempt.group else attempt.resource
    what = f'{qualified} "{attempt.name}"' if attempt.name else qualified
    where = f'in the namespace "{attempt.namespace}"' if attempt.namespace else "at the cluster scope"
    wanted = f'{attempt.verb} resource "{attempt.kind}" in API group "{attempt.group}"'
    message = f'{what} is forbidden: User "{user}" cannot {wanted} {where}'
    return ApiError(403, "Forbidden", message, {name: value for name, value in details.items() if value})


def _forbidden_path(user: str, attempt: Attempt) -> ApiError:
    """403: the user has no right to a path that is no resource."""
    return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot {attempt.verb} path "{attempt.path}"', {})
