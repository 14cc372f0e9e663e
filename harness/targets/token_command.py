"""Bearer tokens that a command prints, as an exec plugin of the kubeconfig does, and when tokens expire."""

import base64
import json
import subprocess
import time
from typing import NamedTuple

from harness.model.errors import ConfigError

RUN_EVERY_S = 120.0  # of a token whose expiry is not known
BEFORE_EXPIRY_S = 30.0
_LATEST_S = 253402300799.0  # the year 9999, the last that a date can have
_RUN_AT_MOST_S = 60.0


class Printed(NamedTuple):
    """The latest token of a command, the monotonic time when it was printed, and when it expires if that is known."""

    token: str
    at_s: float
    expires_s: float | None


_PRINTED: dict[tuple[str, ...], Printed] = {}  # by command


def printed(command: tuple[str, ...]) -> Printed | None:
    """What the command printed last in this process."""
    return _PRINTED.get(command)


def forget(command: tuple[str, ...]) -> None:
    """Have the command run for the next token."""
    _PRINTED.pop(command, None)


def current(command: tuple[str, ...]) -> str:
    """A token of the command, which runs if what it printed may no longer be used; "" without a command.

    Raises:
        ConfigError: the command fails, or prints no token.
    """
    return _remembered(command) or _token_of(command)


def expiry(token: str) -> float | None:
    """When a bearer token expires, if it is a JWT (RFC 7519): seconds since 1970; its signature is not looked at."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        at_s = float(claims["exp"])
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):
        return None
    return at_s if 0 <= at_s <= _LATEST_S else None


def _remembered(command: tuple[str, ...]) -> str:
    """What the command printed in this process, while that can be used."""
    if not (printed := _PRINTED.get(command)):
        return ""
    if printed.expires_s is None:
        return printed.token if time.monotonic() - printed.at_s < RUN_EVERY_S else ""
    return printed.token if printed.expires_s > time.time() + BEFORE_EXPIRY_S else ""


def _token_of(command: tuple[str, ...]) -> str:
    if not command:
        return ""
    try:
        done = subprocess.run(  # noqa: S603  # a module of Pipeswarm
            command, capture_output=True, text=True, check=False, start_new_session=True, timeout=_RUN_AT_MOST_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"there is no token: {error}", "does kubectl log in?") from error
    if done.returncode:
        raise ConfigError(done.stderr.strip().removeprefix("error: ") or "there is no token", "does kubectl log in?")
    text, _, stated = done.stdout.strip().partition("\n")
    token = one_line(text, "the kubeconfig")
    _PRINTED[command] = Printed(token, time.monotonic(), float(stated) if stated else expiry(token))
    return token


def one_line(token: str, where: str) -> str:
    """The token, without the white space around it; `where` it comes from.

    Raises:
        ConfigError: it is no bearer token.
    """
    token = token.strip()
    if not token.isascii() or not token.isprintable():
        raise ConfigError(f"{where} holds no bearer token", "a bearer token is one line, without line breaks")
    return token
