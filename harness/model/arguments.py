"""Types of arguments, for argparse and `Option`; an error is reported with the name of the option."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from harness.model.errors import ConfigError
from harness.model.units import parse_duration, parse_rate

_LAST_PORT = 65_535
_LAST_S = 2**33  # in the year 2242; nanoseconds until then fit 64 bits
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_INSTANTS = "write it as 2026-11-26T22:00:00Z, 22:00 or '2026-11-26 22:00' (local time), or '8h ago'"
N = TypeVar("N", int, float)


class ArgumentError(ConfigError, ArgumentTypeError):
    """A text that an argument can't have; argparse prints it on one line."""

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


def duration(text: str) -> float:
    """Seconds of ``90s`` or ``1h30m``; 0 is allowed."""
    return _read(text, parse_duration)


def duration_above_0(text: str) -> float:
    """Seconds of ``90s`` or ``1h30m``, above 0."""
    return _above_0(text, duration(text))


def rate_above_0(text: str) -> float:
    """Arrivals or requests per second of ``20/s`` or ``500/h``, above 0."""
    return _above_0(text, _read(text, parse_rate))


def instant(text: str, now_at: int) -> int:
    """UTC ns of ``2026-11-26T22:00:00Z``, of local time (``22:00``, the last one; ``2026-11-26 22:00``), of ``8h ago``.

    Raises:
        ArgumentError: it is none of these, or lies outside of the years 1970 to 2242.
    """
    now, given = datetime.fromtimestamp(now_at / 1e9, UTC), text.strip()
    try:
        if given.endswith("ago"):
            found = now - timedelta(seconds=parse_duration(given.removesuffix("ago")))
        elif _CLOCK.fullmatch(given):
            moment = datetime.combine(now.astimezone(), datetime.strptime(given, "%H:%M").time())  # noqa: DTZ007  # local
            found = moment.astimezone()
            found = found if found <= now else (moment - timedelta(days=1)).astimezone()
        else:
            found = datetime.fromisoformat(given).astimezone()
        seconds = found.timestamp()
    except (ValueError, OverflowError, OSError, ConfigError) as error:
        raise ArgumentError(f"{text} is not an instant", _INSTANTS) from error
    if not 0 <= seconds < _LAST_S:
        raise ArgumentError(f"{text} is not an instant", _INSTANTS)
    return int(seconds) * 10**9 + found.microsecond * 1000


def count(text: str) -> int:
    """A whole number above 0; ``10_000`` is one."""
    return _above_0(text, int(text))


def port(text: str) -> int:
    """A port to listen on; 0 is any free one."""
    number = int(text)
    if not 0 <= number <= _LAST_PORT:
        raise ArgumentError(f"{text} is not a port", f"give a number from 0 to {_LAST_PORT}")
    return number


def address(text: str) -> tuple[str, int]:
    """Where to listen: ``9646`` (on this machine only), ``0.0.0.0:9646`` or ``[::]:9646``; port 0 is any free one."""
    host, colon, number = text.rpartition(":")
    name = host.removeprefix("[").removesuffix("]") if host else "127.0.0.1"
    if (colon and not host) or not re.fullmatch(r"[\w.:-]{1,253}", name):
        raise ArgumentError(f"{text} is not an address to listen on", "write it as 9646 or 0.0.0.0:9646")
    return name, port(number)


def count_or_0(text: str) -> int:
    """A whole number from 0 on."""
    number = int(text)
    if number < 0:
        raise ArgumentError(f"{text} is below 0")
    return number


def amount(text: str) -> float:
    """A finite number from 0 on, as of money."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ArgumentError(f"{text} is not a number from 0 on")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{text} is not a number from 0 to 1")
    return number


def _read(text: str, parse: Callable[[str], float]) -> float:
    try:
        return parse(text)
    except ConfigError as error:
        raise ArgumentError(error.message, error.hint) from error


def _above_0(text: str, number: N) -> N:
    if number <= 0:
        raise ArgumentError(f"{text} is not above 0", "give a larger value")
    return number
