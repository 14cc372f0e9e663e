"""Values of changes, read as a profile's file has them, with their units and bounds."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import yaml

from harness.model.errors import ConfigError
from harness.reading import parse_yaml
from harness.simulator.profile.file import parse_profile

# Lists of a profile, with what their entries must have.
_LISTS: Mapping[str, Mapping[str, str]] = {
    "adapters": {"id": "set"}, "queues": {"name": "set", "cohort": "set"}, "tenants": {"namespace": "set"},
}  # fmt: skip


def parsed(text: str, path: tuple[str, ...], value: str) -> object:
    """A value as a profile's file has it at this path; a list in it has one entry.

    Raises:
        ConfigError: a value that such a setting can't have.
    """
    try:
        document: Any = next(iter(parse_yaml(value, "--set")), None)
        for key in reversed(path):
            document = {key: [{**_LISTS[key], **document}] if key in _LISTS else document}
        found: Any = parse_profile(yaml.safe_dump(document), "--set", "set")
        for key in path:
            found = getattr(found, key)
            found = found[0] if key in _LISTS else found
    except (ConfigError, yaml.YAMLError) as error:
        message = error.message.rpartition(": ")[2] if isinstance(error, ConfigError) else "it can't be read"
        hint = error.hint if isinstance(error, ConfigError) else "write it as --set controller.qps=50"
        raise ConfigError(f"--set {text}: {message}", hint) from error
    of_profile: object = found
    return of_profile


def above_0(text: str, value: str, parse: Callable[[str], float]) -> float:
    """A number above 0.

    Raises:
        ConfigError: it is none.
    """
    try:
        found = parse(value)
    except ConfigError as error:
        raise ConfigError(f"--set {text}: {error.message}", error.hint) from error
    if not (found > 0 and isfinite(found)):
        raise ConfigError(f"--set {text}: {value} is not above 0", "give a number above 0")
    return found


def float_of(text: str) -> float:
    """A plain number.

    Raises:
        ConfigError: it is none.
    """
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"'{text}' is not a number", "give a number, or on or off for spot") from None
