"""One row of a scenario CSV: the parameter values of one pipeline run."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scenario:
    """An id, a name, and the parameter values of one pipeline run.

    `values` are already typed for the target's inputs; `row` keeps the CSV cells as they were read. `tenant` is on
    whose behalf it runs, "" if that is not said: the column `tenant` of the scenarios, or of a replayed schedule.
    """

    id: str
    name: str
    values: Mapping[str, object]
    row: Mapping[str, str]
    tenant: str = ""

    @property
    def run_name(self) -> str:
        """The run's name on the platform, ``<id>-<scenario_name>``, as orchestrator pipelines write it."""
        return f"{self.id}-{self.name}"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival of the schedule: due at an instant (UTC ns) with a scenario."""

    seq: int
    due_at: int
    scenario: Scenario
