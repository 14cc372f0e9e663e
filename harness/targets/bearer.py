"""The platform's bearer token. It is never an option's value, which process lists and web pages would show."""

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from harness.model.errors import ConfigError

VARIABLE = "PIPESWARM_TOKEN"
_MOST_BYTES = 2**20
_PORTS = {"http": 80, "https": 443}


def token_for(host: str, given_for: str, read: Callable[[], str]) -> str:
    """The token that `read` returns if `host` has the origin it was given for, otherwise "".

    The host of a test may come from a web form that anyone can post; the token never does.
    """
    return read() if same_origin(host, given_for) else ""


def token_for_folder(host: str, given_for: str, token: str) -> str:
    """The token for the `host` that a run folder names.

    Raises:
        ConfigError: the token was given for another one: the folder may come from anybody.
    """
    if token and not same_origin(host, given_for):
        raise ConfigError(
            f"the token is not sent to {host}, which only the run folder names",
            f"if it is your platform, add --host {host}",
        )
    return token


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses share scheme, host and port (RFC 6454); False if either is not an address."""
    origin = _origin(one)
    return origin is not None and origin == _origin(other)


def _origin(address: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        if parts.scheme not in _PORTS or not parts.hostname:
            return None
        return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]
    except ValueError:
        return None


def read_token(file: str, environment: Mapping[str, str]) -> str:
    """The token in `file`, or in the environment if no file is named; "" if there is none.

    Raises:
        ConfigError: the file can't be read, or is no token.
    """
    if not file:
        return environment.get(VARIABLE, "")
    from harness import reading

    try:
        return reading.as_text(reading.read_bytes(Path(file), _MOST_BYTES), f"the token file {file}").strip()
    except OSError as error:
        raise ConfigError(f"the token file {file} can't be read: {error.strerror}", "check --token-file") from error
