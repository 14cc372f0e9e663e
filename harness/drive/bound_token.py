"""The platform's bearer token, bound to the origin it was given for: any visitor of the web form can enter a host."""

from harness.plan.environment import bearer_token
from harness.targets.bearer import same_origin, token_for


class BoundToken:
    """The token in `file`, or else in the environment, for the origin of `host` (both as this process was started)."""

    def __init__(self, host: str, file: str) -> None:
        self._host = host
        self._file = file

    def allows(self, host: str) -> bool:
        """Whether `host` has the origin that the token was given for."""
        return same_origin(host, self._host)

    def for_host(self, host: str) -> str:
        """The token if `host` may have it, else "".

        Raises:
            ConfigError: the file can't be read.
        """
        return token_for(host, self._host, self._read)

    def for_master(self, host: str) -> str:
        """The token for the host of the master's plan; a worker that was started without a host trusts its master.

        Raises:
            ConfigError: the file can't be read.
        """
        return token_for(host, self._host or host, self._read)

    def withheld_from(self, host: str) -> str:
        """A warning if there is a token that `host` does not get, else ""."""
        if self.allows(host) or not self._read():
            return ""
        return f"{host} gets no bearer token: it was given for {self._host or 'no host'}"

    def _read(self) -> str:
        return bearer_token(self._file)
