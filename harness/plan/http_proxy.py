"""The HTTP proxy for an address, as ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` name it.

There is no standard; this is what Go's httpproxy and curl agree on: names in small letters come first, an entry of
``NO_PROXY`` is ``*``, a domain with all below it, an address, or a network, the first two perhaps with a port.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from harness.model.errors import ConfigError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy; `authorization` is the value of ``Proxy-Authorization``, "" for none, and is never shown."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """The header fields for the proxy itself."""
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}


def proxy_for(address: str, variables: Mapping[str, str]) -> Proxy | None:
    """The proxy for requests to `address`; none for one on this machine, or where no variable names one.

    Raises:
        ConfigError: the variable names none that can be used.
    """
    parts = urlsplit(address)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    if parts.scheme not in _PORTS or not parts.hostname or _is_loopback(parts.hostname):
        return None
    name, text = _given(f"{parts.scheme}_proxy", variables)
    if not text or _bypassed(parts.hostname, port, _given("no_proxy", variables)[1]):
        return None
    return _parsed(text, name)


def _given(name: str, variables: Mapping[str, str]) -> tuple[str, str]:
    """The variable that counts, and its text."""
    small = variables.get(name, "").strip()
    return (name, small) if small else (name.upper(), variables.get(name.upper(), "").strip())


def _parsed(text: str, variable: str) -> Proxy:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme == "http" and parts.hostname:
            return Proxy(parts.hostname, parts.port or _PORTS["http"], _basic(parts))
    except ValueError:  # an invalid port or IPv6 address
        pass
    raise ConfigError(
        f"{variable} does not name an HTTP proxy", "write it as http://proxy.example:3128, without https or socks"
    )


def _basic(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    account = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(account.encode()).decode()}"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _bypassed(host: str, port: int, entries: str) -> bool:
    return any(_names(entry.strip().lower(), host.lower().rstrip("."), port) for entry in entries.split(","))


def _names(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:  # one of them is a name, or has a port
        pass
    place, _, its_port = entry.rpartition(":") if entry.count(":") == 1 or "]:" in entry else (entry, "", "")
    if its_port and its_port != str(port):
        return False
    domain = place.strip("[]").removeprefix("*").removeprefix(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))
