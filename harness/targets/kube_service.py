"""``kube://NAMESPACE/SERVICE[:PORT]``: a service of the kubeconfig's cluster, through the proxy of its API server."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from harness.model.errors import ConfigError

_SCHEME = "kube://"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"  # RFC 1123, as Kubernetes names namespaces, services and ports
_HOST = re.compile(
    rf"{_SCHEME}(?P<namespace>{_LABEL})/(?:(?P<scheme>https?):)?(?P<name>{_LABEL})(?::(?P<port>{_LABEL}))?"
    r"(?P<path>(?:/[\w~-][\w.~-]*)*)/?",
    re.ASCII,
)
_UNSERVED = re.compile(r'no endpoints available for service "|services "[^"]*" not found')
_UNSERVED_HINT = "no pod of this service is ready yet: kubectl get pods,endpointslices -n NAMESPACE"


@dataclass(frozen=True, slots=True)
class KubeService:
    """A service of a cluster.

    Attributes:
        namespace: its namespace.
        name: its name.
        port: name or number; "" as long as it is not known.
        scheme: of requests to it, "http" or "https".
        path: of the platform's API on it, as ``/hdapi``; "" for its root.
    """

    namespace: str
    name: str
    port: str = ""
    scheme: str = "http"
    path: str = ""

    @classmethod
    def parse(cls, host: str) -> Self:
        """The service that a ``--host`` names.

        Raises:
            ConfigError: it names none.
        """
        match = _HOST.fullmatch(host)
        if not match:
            raise ConfigError(
                f"'{host}' names no service of a cluster",
                "write it as kube://kubeflow/ml-pipeline-ui:80, or kube://hetida/https:backend:8443/hdapi",
            )
        parts = {name: text for name, text in match.groupdict().items() if text}
        return cls(**parts)

    def __str__(self) -> str:
        scheme = "https:" if self.scheme == "https" else ""
        port = f":{self.port}" if self.port else ""
        return f"{_SCHEME}{self.namespace}/{scheme}{self.name}{port}{self.path}"

    @property
    def proxied(self) -> str:
        """The path of its API at the API server (Kubernetes API, connect of ``services/proxy``)."""
        return f"/api/v1/namespaces/{self.namespace}/services/{self.scheme}:{self.name}:{self.port}/proxy{self.path}"


def is_unserved(said: str) -> bool:
    """Whether an API server answered itself, for want of pods that serve.

    Of a service without any EndpointSlice, as one that was just made, it says that there is no such service.
    """
    return bool(_UNSERVED.search(said))


def hint_for(said: str, otherwise: str) -> str:
    """What to do after an answer that is no success."""
    return _UNSERVED_HINT if is_unserved(said) else otherwise


def is_kube_service(host: str) -> bool:
    """Whether a ``--host`` is meant to name a service of a cluster."""
    return host.startswith(_SCHEME)


# --- the origin of an address (RFC 6454): credentials go to the one that they were given for, and to no other --------


_PORTS = {"http": 80, "https": 443}


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses share scheme, host and port (RFC 6454); False if either is not an address.

    A service of a cluster is an origin, too, whichever of its ports is named.
    """
    origin = _origin(one)
    return origin is not None and origin == _origin(other)


def path_of(address: str) -> str:
    """The path of a platform's address, without slashes at its ends."""
    return (KubeService.parse(address).path if is_kube_service(address) else urlsplit(address).path).strip("/")


def _origin(address: str) -> tuple[str, str, int] | None:
    try:
        if is_kube_service(address):
            service = KubeService.parse(address)
            return "kube", f"{service.namespace}/{service.name}", 0
        parts = urlsplit(address if "://" in address else f"https://{address}")
        if parts.scheme not in _PORTS or not parts.hostname:
            return None
        return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]
    except (ValueError, ConfigError):
        return None
