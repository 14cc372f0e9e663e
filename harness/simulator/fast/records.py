"""Input and output of a simulated test: arrivals, and the records of a run folder."""

from dataclasses import dataclass

from harness.model import Event, Node, PodSpans, Sample, Scenario, Span, Submission

SOURCE = "simulator"

Record = Submission | Span | Event | Node | Sample
Compact = Record | PodSpans  # one object a pod instead of one a span


@dataclass(frozen=True, slots=True)
class Arrival:
    """A scenario, due `due_s` seconds after the start."""

    due_s: float
    scenario: Scenario
