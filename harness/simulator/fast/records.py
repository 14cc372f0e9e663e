"""What a simulated test is given and what it leaves: arrivals, the records of a run folder, and their stamps."""

from dataclasses import dataclass

from harness.model import Event, Node, Sample, Scenario, Span, Submission
from harness.simulator.platform import Skew

SOURCE = "simulator"

Record = Submission | Span | Event | Node | Sample


@dataclass(frozen=True, slots=True)
class Arrival:
    """A scenario, due so long after the start."""

    due_s: float
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Stamps:
    """Simulated seconds as UTC ns; `skew` is of the clock that stamps, none where it is right."""

    origin_at: int
    skew: Skew | None = None

    def at(self, t: float) -> int:
        """What the clock shows at `t`."""
        if self.skew is not None:
            t += self.skew.at(t)
        return self.origin_at + round(t * 1e9)

    def when(self, t: float | None) -> int | None:
        """The same, where it has happened."""
        return None if t is None else self.at(t)
