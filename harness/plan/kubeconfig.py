"""Access to the Kubernetes API as the user's kubeconfig has it, or the account of the pod that this process runs in.

The official client reads it, in a process of its own: it knows every way to log in, and must not be imported by a load.
"""

import json
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.plan import environment
from harness.plan.subprocesses import run, token_command, what_kubeconfig_gives
from harness.targets.credentials import Credentials
from harness.targets.kube_service import KubeService, is_kube_service, same_origin
from harness.targets.token_command import expiry

HOST = "kubeconfig"  # as --host
OPTION = "access"  # of the plan's target options; the plan's host is then the API server's address
CLUSTER = "cluster"  # of the plan's target options, of a service of a cluster: the API server's address
_HINT = "check KUBECONFIG and --kube-context with kubectl get namespaces"
_REREAD_S = 120.0  # a token whose expiry is not known
_BEFORE_EXPIRY_S = 10.0  # enough to begin with: what sends the requests renews it
_NOT_PASSED = (
    "leave them out, also the variables that name them (PIPESWARM_TOKEN, those of the platform's tools); "
    "a user's name goes into --header 'kubeflow-userid: …'"
)


@dataclass(frozen=True, slots=True)
class Access:
    """An API server, and what it asks for: a bearer token, or a client's certificate with its key; texts in PEM.

    `token_expires_s` is in seconds since 1970, None where it is not known.
    """

    host: str
    namespace: str
    token: str
    authority: str
    certificate: str
    key: str
    verify_tls: bool = True
    token_expires_s: float | None = None

    def prepare(self, context: ssl.SSLContext) -> None:
        """Have a TLS context trust the cluster's authority and show the client's certificate."""
        if self.authority:
            context.load_verify_locations(cadata=self.authority)
        if self.certificate and self.key:
            with tempfile.NamedTemporaryFile("w", prefix="pipeswarm-") as file:  # OpenSSL reads only files; mode 0600
                file.write(f"{self.certificate}\n{self.key}\n")
                file.flush()
                context.load_cert_chain(file.name)


_READ: dict[tuple[str, str | None], tuple[Access, float]] = {}  # by context and KUBECONFIG; with the monotonic time


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests to a platform go: an http(s) address, and what proves there who asks."""

    address: str
    credentials: Credentials
    verify_tls: bool
    prepare_tls: Callable[[ssl.SSLContext], None] = lambda _: None


def names_kubeconfig(host: str) -> bool:
    """Whether a ``--host`` means a cluster of the kubeconfig, or a service in it."""
    return host == HOST or is_kube_service(host)


def by_kubeconfig(plan: Plan) -> bool:
    """Whether the platform is the API server itself, and not an address, or a service of the cluster."""
    return HOST in {plan.host, plan.target_options.get(OPTION)}


def read_access(context: str) -> Access:
    """The access that the kubeconfig gives in a context; "" is the current one.

    It takes a second to read, so that it is read again only once its token may have expired: a process of the web UI
    starts many tests.

    Raises:
        ConfigError: there is none.
    """
    key = context, environment.kubeconfig()
    access, read_s = _READ.get(key, (None, 0.0))
    if access is None or not _usable(access, read_s):
        found: dict[str, Any] = json.loads(_asked("access", context))
        access = Access(**found)
        _READ[key] = access, time.monotonic()
    return access


def _usable(access: Access, read_s: float) -> bool:
    if not access.token:
        return True
    expires_s = access.token_expires_s or expiry(access.token)
    return time.monotonic() - read_s < _REREAD_S if expires_s is None else expires_s > time.time() + _BEFORE_EXPIRY_S


def _asked(*what: str) -> str:
    done = run(what_kubeconfig_gives(*what))
    if done.returncode:
        message, _, hint = done.stderr.strip().removeprefix("error: ").partition("\n  → ")
        raise ConfigError(message or "the kubeconfig can't be used", hint or _HINT)
    return done.stdout.strip()


def resolved(plan: Plan) -> Plan:
    """A plan whose host means a cluster of the kubeconfig, with the address; other plans are returned as they are.

    ``--host kubeconfig`` becomes the server's address, with the context's namespace where none is given; the port of a
    service is looked up, and whether this account may use its proxy.

    Raises:
        ConfigError: the kubeconfig gives no access, or there is no such service.
    """
    if not names_kubeconfig(plan.host):
        return plan
    context = plan.observer.kube_context
    if is_kube_service(plan.host):
        KubeService.parse(plan.host)  # offline: a mistyped one is reported at once
        access = read_access(context)
        options = {**plan.target_options, CLUSTER: access.host}
        return replace(plan, host=_asked("service", context, plan.host), target_options=options)
    access = read_access(context)
    namespace = plan.target_options.get("namespace") or access.namespace
    return replace(plan, host=access.host, target_options={**plan.target_options, OPTION: HOST, "namespace": namespace})


def access_of(plan: Plan) -> Access:
    """The access to the platform of a plan that was made with a kubeconfig.

    Raises:
        ConfigError: the kubeconfig gives none, or now leads to another cluster.
    """
    access = read_access(plan.observer.kube_context)
    place = str(plan.target_options.get(CLUSTER, "")) if is_kube_service(plan.host) else plan.host
    if not same_origin(access.host, place):
        raise ConfigError(
            f"the kubeconfig leads to {access.host}, and this test's runs are at {place or 'no cluster'}",
            "choose its cluster with KUBECONFIG or --kube-context",
        )
    return access


def route_of(plan: Plan, credentials: Credentials) -> Route:
    """Where the requests of a plan go; `credentials` are used where the plan names an address.

    Raises:
        ConfigError: the kubeconfig does not lead to this platform, or `credentials` would be lost on the way.
    """
    through = is_kube_service(plan.host)
    if not through and not by_kubeconfig(plan):
        return Route(plan.host, credentials, plan.verify_tls)
    path, headers = "", credentials.headers if through else ()
    if through:
        path = KubeService.parse(plan.host).proxied
        if credentials != Credentials(headers=headers) or any(name.lower() == "authorization" for name, _ in headers):
            raise ConfigError(
                "tokens, cookies and certificates do not pass the API server on the way to a service", _NOT_PASSED
            )
    access = access_of(plan)
    renewal = token_command(plan.observer.kube_context, access.host) if access.token else ()
    proof = Credentials(
        token=access.token, token_expires_s=access.token_expires_s, token_command=renewal, headers=headers
    )
    return Route(f"{access.host.rstrip('/')}{path}", proof, plan.verify_tls and access.verify_tls, access.prepare)
