"""Schedules one after the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.registry import Kind, from_mapping, kinds, to_mapping
from harness.model.schedules.schedule import Document, OpenSchedule, Schedule


@dataclass(frozen=True, slots=True)
class Stages(OpenSchedule):
    """Schedules one after the other; each begins when the length of the one before it is over."""

    OPTIONS = (
        Option(
            "schedule-file", "", "YAML list of schedules, as {schedule: ramp, rate: 1/s..5/s, for: 10m}", file="yaml"
        ),
    )
    SUMMARY = "schedules one after the other"

    parts: tuple[Schedule, ...]
    name: str = "stages"

    def __post_init__(self) -> None:
        if not self.parts:
            raise ConfigError("there is no stage", "give at least one")

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`; each item of the document names a schedule and its options."""
        document: Document | None = values["schedule-file"]
        if document is None:
            raise ConfigError("the file is missing", "give --schedule-file FILE, a YAML list of schedules")
        if not isinstance(document.content, list) or not document.content:
            raise ConfigError(f"{document.source} is not a list of stages", "begin each with '- schedule: …'")
        places = (f"{document.source}, stage {number}" for number in range(1, len(document.content) + 1))
        return cls(tuple(map(_stage, places, document.content)))

    @property
    def length_s(self) -> float:
        """The sum of its parts."""
        return sum(part.length_s for part in self.parts)

    def offsets(self, seed: int) -> Iterator[float]:
        """Each part is seeded by its place, so that equal parts differ."""
        begins_s = 0.0
        for place, part in enumerate(self.parts):
            for due_s in part.offsets(seed + place):
                yield begins_s + due_s
            begins_s += part.length_s

    def to_mapping(self) -> dict[str, object]:
        """Its parts as plain values."""
        return {"name": self.name, "parts": [to_mapping(part) for part in self.parts]}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """The stages of these plain values."""
        return cls(tuple(cast("Schedule", from_mapping(part)) for part in values["parts"]))


def _stage(where: str, stage: Any) -> Schedule:
    known = {name: kind for name, kind in kinds().items() if not any(option.file for option in kind.OPTIONS)}
    name = stage.get("schedule") if isinstance(stage, dict) else None
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"{where}: it names no schedule", f"give schedule: one of {', '.join(known)}")
    values = _values(name, known[name], stage, where)
    try:
        return cast("Schedule", known[name].parse(values))
    except KeyError as missing:
        raise ConfigError(f"{where}: {name} needs {missing}", "add it") from None
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.hint) from error


def _values(name: str, kind: Kind, stage: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values that a stage gives; the options' defaults are for the command line only."""
    options = {option.name: option for option in kind.OPTIONS}
    given = {str(key): "" if value is None else str(value) for key, value in stage.items() if key != "schedule"}
    if unknown := sorted(set(given) - set(options)):
        raise ConfigError(f"{where}: {name} has no '{unknown[0]}'", f"its options: {', '.join(sorted(options))}")
    return {key: options[key].read(text, f"{where}, {key}") for key, text in given.items() if text}
