"""Arrivals at recorded or generated times."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any, Self

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.schedule import Document, OpenSchedule


@dataclass(frozen=True, slots=True)
class Replay(OpenSchedule):
    """Due times as they were recorded or generated; `source` names the file or run folder.

    `scenarios` are the scenarios' ids by arrival, where the source names them; otherwise they are taken in turn.
    `tenants` are those by arrival, where the source names them; otherwise those of the scenarios.
    """

    OPTIONS = (Option("schedule-file", "", "CSV with a column due_s (seconds), or a run folder", file="arrivals"),)
    SUMMARY = "at the due times of a CSV or of an earlier run, with the scenarios it names"

    due_s: tuple[float, ...]
    source: str = ""
    scenarios: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    name: str = "replay"

    def __post_init__(self) -> None:
        if not self.due_s:
            raise ConfigError("the schedule has no arrivals", "give a file with one row per arrival")
        if self.due_s[0] < 0 or any(b < a for a, b in zip(self.due_s, self.due_s[1:], strict=False)):
            raise ConfigError("the due times go back in time", "sort the file by due_s, from 0 on")

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`; the document holds (line, row) pairs: ``due_s``, perhaps ``scenario_id``, ``tenant``."""
        document: Document | None = values["schedule-file"]
        if document is None:
            raise ConfigError("the file is missing", "give --schedule-file FILE or a run folder")
        due_s, scenarios, tenants = [], [], []
        for line, row in document.content:
            due_s.append(_seconds(row["due_s"]))
            scenarios.append(row.get("scenario_id", ""))
            tenants.append(row.get("tenant", ""))
            if not isfinite(due_s[-1]):
                where = f"{document.source}, line {line}"
                raise ConfigError(f"{where}: '{row['due_s']}' is not a number of seconds", "correct due_s")
        try:
            return cls(
                tuple(due_s), document.source, tuple(scenarios) if any(scenarios) else (),
                tuple(tenants) if any(tenants) else (),
            )  # fmt: skip
        except ConfigError as error:
            raise ConfigError(f"{document.source}: {error.message}", error.hint) from error

    @property
    def length_s(self) -> float:
        """When the last arrival is due."""
        return self.due_s[-1]

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """The recorded due times."""
        yield from self.due_s

    def to_mapping(self) -> dict[str, object]:
        """Its source only: the due times lie in the run's ``schedule.csv``."""
        return {"name": self.name, "source": self.source}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """A manifest holds no due times.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"the due times of {values.get('source')} are not in the manifest", "replay the run folder")


def _seconds(text: str | float) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
