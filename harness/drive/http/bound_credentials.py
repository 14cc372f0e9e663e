"""The platform's credentials, bound to the origin they were given for: any visitor of the web form can enter a host."""

from harness.targets.credentials import Credentials, for_host
from harness.targets.origin import same_origin


class BoundCredentials:
    """The credentials for the origin of `host`, both as this process was started."""

    def __init__(self, host: str, credentials: Credentials) -> None:
        self._host = host
        self._credentials = credentials

    def allows(self, host: str) -> bool:
        """Whether `host` has the origin that the credentials were given for."""
        return same_origin(host, self._host)

    def for_host(self, host: str) -> Credentials:
        """The credentials if `host` may have them, else none."""
        return for_host(host, self._host, self._credentials)

    def for_master(self, host: str) -> Credentials:
        """Those for the host of the master's plan; a worker that was started without a host trusts its master."""
        return for_host(host, self._host or host, self._credentials)

    def withheld_from(self, host: str) -> str:
        """A warning if there are credentials that `host` does not get, else ""."""
        if self.allows(host) or not self._credentials:
            return ""
        return f"{host} gets no credentials: they were given for {self._host or 'no host'}"
