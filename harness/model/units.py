"""Rates, durations and quantities as users write them: ``2/s 120/m 500/h``, ``90s 10m 1h30m``, ``500m 2Gi``."""

import re
from datetime import UTC, datetime
from math import isfinite, nan

from harness.model.errors import ConfigError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST = 64  # characters of a duration, for the search takes quadratic time; and of a text that is shown
_LEAST_S = 1e-6  # shorter is shown as 0
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|m|h|d)")
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|K|M|G|T|P|E)?")
_QUANTITY_FACTORS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


def parse_duration(text: str | float) -> float:
    """Seconds of ``90s``, ``10m``, ``1h30m``, ``250ms`` or a bare number (seconds); finite, from 0 on.

    Raises:
        ConfigError: the text is not a duration.
    """
    compact = str(text).replace(" ", "")
    parts = _DURATION_PART.findall(compact) if len(compact) <= _LONGEST else []
    if parts and "".join(number + unit for number, unit in parts) == compact:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if isfinite(seconds):
            return seconds
    return _bare(text, "a duration", "write it as 90s, 10m, 1h30m or a number of seconds")


def parse_rate(text: str | float) -> float:
    """Arrivals per second of ``2/s``, ``120/m``, ``500/h`` or a bare number (per second); finite, from 0 on.

    Raises:
        ConfigError: the text is not a rate.
    """
    if (match := _RATE.fullmatch(str(text).strip())) and isfinite(float(match[1])):
        return float(match[1]) / _SECONDS[match[2]]
    return _bare(text, "a rate", "write it as 2/s, 120/m or 500/h")


def parse_quantity(text: str | float) -> float:
    """A Kubernetes quantity in base units: ``500m`` CPU is 0.5, ``2Gi`` memory is 2147483648.

    Raises:
        ConfigError: the text is not a quantity.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match and isfinite(value := float(match[1]) * _QUANTITY_FACTORS.get(match[2], 1.0)):
        return value
    raise ConfigError(f"'{_short(text)}' is not a Kubernetes quantity", "write it as 500m, 2, 128Mi or 4Gi")


def _bare(text: str | float, what: str, hint: str) -> float:
    try:
        value = float(text)
    except (OverflowError, TypeError, ValueError):
        value = nan
    if not (isfinite(value) and value >= 0):
        raise ConfigError(f"'{_short(text)}' is not {what}", hint)
    return value


def _short(text: str | float) -> str:
    shown = str(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def format_duration(seconds: float) -> str:
    """A duration for people: ``8.3 ms``, ``250 ms``, ``42 s``, ``3 min 20 s``, ``2 h 5 min``; else "unknown"."""
    if not isfinite(seconds):
        return "unknown"
    if abs(seconds) < _LEAST_S:
        return "0 s"
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if seconds < 0.0095:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.995:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def timestamp(at_s: float) -> str:
    """An instant in UTC s as Kubernetes writes it: RFC 3339 in whole seconds."""
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def counted(count: float, noun: str) -> str:
    """A count with its noun, which has a regular plural: ``1 run``, ``1,200 nodes``; means as ``2.5 nodes``."""
    shown = format_count(count)
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def format_count(count: float) -> str:
    """A count, or a mean of counts with one decimal: ``1,200``, ``14.9``; below 1 with two digits."""
    return f"{count:.2g}" if 0 < abs(count) < 1 else f"{count:,.1f}".removesuffix(".0")


def format_bytes(count: float) -> str:
    """A byte count for people, in binary units: ``1.5 GiB``."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if abs(count) < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"
