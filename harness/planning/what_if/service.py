"""Changes of a service that executes the runs: hetida's replicas, workers, backend and adapters."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from harness.planning.removals import of_service
from harness.planning.what_if.scenario import Apply, with_profile
from harness.planning.what_if.values import parsed
from harness.simulator.profile import Hetida

SHORT = {name: f"runtime.{name}" for name in ("replicas", "workers", "nodes", "balancing")}
_PARTS, _OF_ADAPTERS = ("runtime", "backend"), ("capacity", "error_rate")


def applying(text: str, name: str, value: str, hetida: Hetida) -> Apply | None:
    """The change of a setting; none if there is no such setting.

    Raises:
        ConfigError: an impossible value.
    """
    head, _, rest = name.partition(".")
    if head in _PARTS and rest in _settings(hetida, head):
        changed: Any = {rest: parsed(text, ("hetida", head, rest), value)}
        return _applied(lambda of: replace(of, **{head: replace(getattr(of, head), **changed)}))
    adapter, _, setting = rest.rpartition(".")
    if head == "adapter" and setting in _OF_ADAPTERS and adapter in {each.id for each in hetida.adapters}:
        changed = {setting: parsed(text, ("hetida", "adapters", setting), value)}
        return _applied(lambda of: replace(of, adapters=tuple(
            replace(each, **changed) if each.id == adapter else each for each in of.adapters
        )))  # fmt: skip
    return None


def known(hetida: Hetida) -> list[str]:
    """The names of all settings."""
    adapters = [f"adapter.{adapter.id}.{name}" for adapter in hetida.adapters for name in _OF_ADAPTERS]
    return [*SHORT, *(f"{part}.{setting}" for part in _PARTS for setting in _settings(hetida, part)), *adapters]


def _settings(hetida: Hetida, part: str) -> Sequence[str]:
    return [field.name for field in fields(getattr(hetida, part))]


def _applied(change: Callable[[Hetida], Hetida]) -> Apply:
    return partial(with_profile, change=of_service(change))
