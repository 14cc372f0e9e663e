"""Changes of a service that executes the runs: hetida's replicas, workers, backend and adapters."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from harness.planning.what_if.scenario import Apply, Scenario
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
        return partial(_with_part, part=head, changed={rest: parsed(text, ("hetida", head, rest), value)})
    adapter, _, setting = rest.rpartition(".")
    if (
        head == "adapter"
        and setting in _OF_ADAPTERS
        and adapter in {data_adapter.id for data_adapter in hetida.adapters}
    ):
        found = parsed(text, ("hetida", "adapters", setting), value)
        return partial(_with_adapter, adapter=adapter, changed={setting: found})
    return None


def known(hetida: Hetida) -> list[str]:
    """The names of all settings."""
    adapters = [f"adapter.{adapter.id}.{name}" for adapter in hetida.adapters for name in _OF_ADAPTERS]
    return [*SHORT, *(f"{part}.{setting}" for part in _PARTS for setting in _settings(hetida, part)), *adapters]


def _settings(hetida: Hetida, part: str) -> Sequence[str]:
    return [field.name for field in fields(getattr(hetida, part))]


def _with_part(scenario: Scenario, *, part: str, changed: Mapping[str, Any]) -> Scenario:
    hetida = scenario.profile.hetida
    assert hetida is not None
    other: Any = {part: replace(getattr(hetida, part), **changed)}
    return replace(scenario, profile=replace(scenario.profile, hetida=replace(hetida, **other)))


def _with_adapter(scenario: Scenario, *, adapter: str, changed: Mapping[str, Any]) -> Scenario:
    hetida = scenario.profile.hetida
    assert hetida is not None
    adapters = tuple(
        replace(data_adapter, **changed) if data_adapter.id == adapter else data_adapter
        for data_adapter in hetida.adapters
    )
    return replace(scenario, profile=replace(scenario.profile, hetida=replace(hetida, adapters=adapters)))
