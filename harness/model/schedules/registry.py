"""Which kinds of schedules there are, and their form in a manifest.

Each kind is one module of this package (or an entry point of ``pipeswarm.schedules``): a frozen dataclass with its
options and its parser.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol, cast

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.concurrency import Concurrency
from harness.model.schedules.schedule import OpenSchedule, Schedule
from harness.model.units import format_duration

DEFAULT = "spread"


class Kind(Protocol):
    """What the class of a schedule offers, in addition to its instances."""

    OPTIONS: ClassVar[tuple[Option, ...]]  # what it reads; the same words describe it as a stage
    SUMMARY: ClassVar[str]  # its arrivals in a phrase

    def parse(self, values: Mapping[str, Any]) -> Schedule | Concurrency:
        """The schedule of its options' values.

        Beside them stand "scenarios" (their number), and Locust's "users" and "spawn-rate". An option with `file` has a
        `Document` as its value.

        Raises:
            ConfigError: the values make no schedule.
            KeyError: a value that it needs is missing, as it may be in a stage.
        """
        ...

    def from_mapping(self, values: Mapping[str, Any]) -> Schedule | Concurrency:
        """The schedule that `to_mapping` gave `values` for."""
        ...


@cache
def kinds() -> Mapping[str, Kind]:
    """The kinds of schedules by name: the default, then the other built-in ones, then third parties'."""
    package = importlib.import_module(__package__)
    modules = [importlib.import_module(f"{__package__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    found = {
        module.__name__.rpartition(".")[2]: cast("Kind", var)
        for module in modules
        for var in vars(module).values()
        if isinstance(var, type) and var.__module__ == module.__name__ and hasattr(var, "SUMMARY")
    }
    found |= {entry.name: cast("Kind", entry.load()) for entry in entry_points(group="pipeswarm.schedules")}
    return dict(sorted(found.items(), key=lambda item: item[0] != DEFAULT))


def find_kind(name: object) -> Kind:
    """The kind called `name`.

    Raises:
        ConfigError: there is none.
    """
    try:
        return kinds()[str(name)]
    except KeyError:
        raise ConfigError(f"there is no schedule '{name}'", f"schedules: {', '.join(kinds())}") from None


def schedule_options() -> tuple[Option, ...]:
    """The options of all kinds, each once; its help says which kinds read it."""
    helps: dict[str, dict[str, list[str]]] = {}  # option → help → kinds
    first: dict[str, Option] = {}
    for name, kind in kinds().items():
        for option in kind.OPTIONS:
            first.setdefault(option.name, option)
            helps.setdefault(option.name, {}).setdefault(option.help, []).append(name)
    return tuple(
        replace(option, help=" · ".join(f"{', '.join(names)}: {text}" for text, names in helps[option.name].items()))
        for option in first.values()
    )


def to_mapping(schedule: Schedule | Concurrency) -> dict[str, object]:
    """A schedule as plain values for the manifest; of a replay only the source: its times lie in ``schedule.csv``."""
    return cast("OpenSchedule", schedule).to_mapping()


def from_mapping(values: Mapping[str, Any]) -> Schedule | Concurrency:
    """The schedule of a manifest.

    Raises:
        ConfigError: there is no such schedule, the values are not its own, or it is a replay.
    """
    try:
        return find_kind(values["name"]).from_mapping(values)
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"{dict(values)} is not a schedule: {error}", "was the run made by a newer version?"
        ) from error


def in_words(values: Mapping[str, Any]) -> str:
    """A schedule's plain values for people: ``burst, runs 200``; "observed" where there is none."""
    if isinstance(values.get("parts"), list):
        return " then ".join(map(in_words, values["parts"]))
    # A length of 0 and a single burst go without saying.
    shown = {k: v for k, v in sorted(values.items()) if k != "name" and v and (k, v) != ("times", 1)}
    return ", ".join((str(values.get("name", "observed")), *(_in_words(key, value) for key, value in shown.items())))


def _in_words(key: str, value: object) -> str:
    word = key.removesuffix("_s").replace("_", " ")
    if not isinstance(value, float):
        return f"{word} {value}"
    if key.endswith("_s"):
        return f"{word} {format_duration(value)}"
    return f"{word} {value:g}" + ("/s" if "rate" in key else "")
