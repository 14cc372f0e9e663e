"""Where targets are found: entry points, the modules of this package, and modules of the user's own."""

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import cast

from harness.model.errors import ConfigError
from harness.targets.target import Platform


def own_host(platform: Platform, texts: Mapping[str, str]) -> str:
    """The address that a platform has where the user gives none; "" for none."""
    found = getattr(platform, "own_host", None)
    return str(found(texts)) if found is not None else platform.DEFAULTS.get("host", "")


def observed_by(platform: Platform) -> tuple[str, ...]:
    """The names of the options of an observation without a load."""
    return tuple(getattr(platform, "OBSERVED_BY", None) or (option.name for option in platform.OPTIONS))


def find(name: str) -> Platform:
    """The platform that the user calls `name`: an entry point, a module of this package, or any importable module.

    Raises:
        ConfigError: there is no such target.
    """
    platform = _registered(name) or _platform_in(name)
    if platform is None:
        raise ConfigError(f"unknown target '{name}'", f"targets are: {', '.join(names())}, or a module of your own")
    return platform


def find_recorded(name: str, named: str = "") -> Platform:
    """The platform that a run folder names, which is not allowed to have any other module imported than `named`.

    Raises:
        ConfigError: it is neither registered nor the one that the user named.
    """
    if name and name == named:
        return find(name)
    platform = _registered(name)
    if platform is None:
        raise ConfigError(
            f"the run folder names the target '{name}', which is not registered", f"if it is yours, add --target {name}"
        )
    return platform


def _registered(name: str) -> Platform | None:
    """The platform of an entry point, or of a module of this package."""
    for entry in entry_points(group="pipeswarm.targets"):
        if entry.name == name:
            return cast("Platform", entry.load())
    return _platform_in(f"{__package__}.{name}") if "." not in name else None


def _platform_in(module: str) -> Platform | None:
    if not all(part.isidentifier() for part in module.split(".")):
        return None
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{module}.".startswith(f"{missing.name}."):
            return None
        raise  # the module exists, and one that it imports does not
    return cast("Platform", found) if hasattr(found, "from_plan") else None


def names() -> list[str]:
    """The names of all targets, built-in and third-party."""
    modules = pkgutil.iter_modules(importlib.import_module(__package__).__path__)
    built_in = {m.name for m in modules if hasattr(importlib.import_module(f"{__package__}.{m.name}"), "from_plan")}
    return sorted(built_in | {entry.name for entry in entry_points(group="pipeswarm.targets")})
