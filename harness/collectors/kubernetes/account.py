"""Prints what the kubeconfig gives, for the process that asked: see `harness.plan.kubeconfig`.

``access CONTEXT`` prints an `Access` as JSON, ``token CONTEXT [SERVER]`` a bearer token (of that API server and no
other), and ``service CONTEXT HOST`` the
complete address of a ``kube://`` service that this account may use.
"""

import json
import logging
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import reading
from harness.collectors.kubernetes import renewal
from harness.collectors.kubernetes.kube_api import connect
from harness.collectors.source_health import UnreachableError
from harness.model.errors import ConfigError, ExitCode
from harness.plan.kubeconfig import Access
from harness.targets.kube_service import KubeService, same_origin

_FORBIDDEN, _NOT_FOUND = 403, 404
_PROXY_VERBS = ("get", "create")  # a test's own; some clean-ups need more
_WEB_PORTS = ("http", "https")
_TIMEOUT_S = 20.0


def main(what: str, context: str, host: str = "") -> int:
    """Print what was asked for, in a context of the kubeconfig; "" is the current one."""
    said = _Said()
    logging.getLogger().addHandler(said)
    try:
        client, namespace = connect(context)
        if what == "service":
            print(find_service(client, KubeService.parse(host)))
            return ExitCode.OK
        found = access(client, namespace)
    except (ConfigError, UnreachableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.BAD_CONFIG
    if what == "token" and host and not same_origin(found.host, host):
        print(f"error: the kubeconfig leads to {found.host} now, and no longer to {host}", file=sys.stderr)
        return ExitCode.BAD_CONFIG
    if what == "access":
        print(json.dumps(asdict(found)))
    elif found.token:
        print(found.token, *([found.token_expires_s] if found.token_expires_s else ()), sep="\n")
    else:
        print(f"error: the kubeconfig gives no bearer token{said}", file=sys.stderr)
        return ExitCode.BAD_CONFIG
    return ExitCode.OK


class _Said(logging.Handler):
    """Keeps the last message: the official client goes on without a token where a plugin fails, and only logs why."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._message = ""

    def emit(self, record: logging.LogRecord) -> None:
        self._message = record.getMessage()

    def __str__(self) -> str:
        return f": {self._message}" if self._message else ""


def access(client: Any, namespace: str) -> Access:
    """What the official client would use; a password in the server's address is its token."""
    settings = client.configuration
    headers: dict[str, str] = {}
    client.update_params_for_auth(headers, [], ["BearerToken"])
    token = str(headers.get("authorization") or headers.get("Authorization") or "").partition(" ")[2]
    parts = urlsplit(settings.host)
    if parts.password is not None:
        token, place = parts.password, parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=place)
    authority, certificate, key = map(_text, (settings.ssl_ca_cert, settings.cert_file, settings.key_file))
    verify = bool(settings.verify_ssl)
    expires_s = renewal.expires_s(settings) if token else None
    return Access(parts.geturl(), namespace, token, authority, certificate, key, verify, expires_s)


def find_service(client: Any, service: KubeService) -> KubeService:
    """The service with its port, if it exists and this account may use the proxy to it.

    Raises:
        ConfigError: there is no such service or port, or a right is missing: which one is named.
        UnreachableError: the API server does not answer.
    """
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        _demand_proxy(client, service)
        return replace(service, port=_port(client, service))
    except ApiException as error:
        raise UnreachableError(f"the API server answered {error.status} {error.reason}", error.status) from error
    except HTTPError as error:
        raise UnreachableError(f"{client.configuration.host} does not answer: {error}") from error


def may(client: Any, verb: str, resource: str, *, group: str = "", namespace: str = "", name: str = "") -> bool:
    """Whether this account may do it, as ``kubectl auth can-i`` asks; `resource` may have a part, as ``pods/log``."""
    from kubernetes import client as kubernetes

    plural, _, part = resource.partition("/")
    wanted = kubernetes.V1ResourceAttributes(
        group=group, resource=plural, subresource=part or None, verb=verb, namespace=namespace, name=name or None
    )
    review = kubernetes.V1SelfSubjectAccessReview(
        spec=kubernetes.V1SelfSubjectAccessReviewSpec(resource_attributes=wanted)
    )
    answer = kubernetes.AuthorizationV1Api(client).create_self_subject_access_review(
        review, _request_timeout=_TIMEOUT_S
    )
    return bool(answer.status.allowed)


def _demand_proxy(client: Any, service: KubeService) -> None:
    named = f"{service.scheme}:{service.name}:{service.port}"  # as the API server will name it
    missing = [
        verb
        for verb in _PROXY_VERBS
        if not may(client, verb, "services/proxy", namespace=service.namespace, name=named)
    ]
    if missing:
        raise ConfigError(
            f"the kubeconfig's account may not {' and '.join(missing)} services/proxy in the namespace "
            f"{service.namespace}",
            f'grant it the verbs {" and ".join(_PROXY_VERBS)} on services/proxy (apiGroup "") in a Role of '
            f"{service.namespace}; some clean-ups need update and delete, too",
        )


def _port(client: Any, service: KubeService) -> str:
    """The port as it was given, or else the service's one for the web: that of its scheme, or its only one."""
    from kubernetes import client as kubernetes
    from kubernetes.client.exceptions import ApiException

    core = kubernetes.CoreV1Api(client)
    try:
        found = core.read_namespaced_service(service.name, service.namespace, _request_timeout=_TIMEOUT_S)
    except ApiException as error:
        if error.status == _NOT_FOUND:
            raise ConfigError(
                f"the cluster has no service {service.name} in the namespace {service.namespace}",
                _existing(core, service.namespace),
            ) from error
        if error.status != _FORBIDDEN:
            raise
        if service.port:
            return service.port
        raise ConfigError(
            f"the kubeconfig's account may not get services in the namespace {service.namespace}, to find the port",
            f"name it: --host {replace(service, port='80')}",
        ) from error
    ports = [(str(port.port), port.name or "") for port in found.spec.ports or ()]
    if service.port:
        if any(service.port in port for port in ports):
            return service.port
    elif len(ports) == 1:
        return ports[0][0]
    elif of_web := [number for number, name in ports if name == service.scheme] or [
        number for number, name in ports if name in _WEB_PORTS
    ]:
        return of_web[0]
    listed = ", ".join(f"{number} ({name})" if name else number for number, name in ports) or "none"
    wanted = f"port {service.port}" if service.port else "one port for HTTP"
    raise ConfigError(f"the service {service.name} has not {wanted}", f"its ports are: {listed}")


def _existing(core: Any, namespace: str) -> str:
    from kubernetes.client.exceptions import ApiException

    try:
        found = core.list_namespaced_service(namespace, limit=20, _request_timeout=_TIMEOUT_S).items
    except ApiException:
        return f"look it up with kubectl -n {namespace} get services"
    if not found:
        return f"it has no services there: does the namespace {namespace} exist?"
    return f"there are: {', '.join(sorted(each.metadata.name for each in found))}"


def _text(file: str | None) -> str:
    return reading.read_text(Path(file)) if file else ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
