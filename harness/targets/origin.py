"""The origin of an address (RFC 6454): credentials go to the one that they were given for, and to no other."""

from urllib.parse import urlsplit

from harness.model.errors import ConfigError
from harness.targets.kube_service import KubeService, is_kube_service

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
