"""An experiment: axes to vary, the question to answer, and the result of each test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.model.units import counted


class Question(StrEnum):
    """What an experiment answers."""

    GRID = "grid"  # how does it behave at all these points?
    FEWEST_NODES = "fewest-nodes"  # that meet the objectives, for each load
    LARGEST_LOAD = "largest-load"  # that meets them, for each number of nodes


class RunOrder(StrEnum):
    """The order in which points are tested."""

    INTERLEAVED = "interleaved"  # round by round; within a round cells are shuffled, a cell's variants stay together
    RANDOM = "random"  # all shuffled


@dataclass(frozen=True, slots=True)
class Point:
    """One test: a variant under `load` runs at once on `nodes` nodes; `repetition` counts from 0."""

    variant: str
    load: int
    nodes: int
    repetition: int

    def size(self, unit: str) -> str:
        """For people: ``50 runs on 4 nodes``; `unit` is what `nodes` counts."""
        return f"{counted(self.load, 'run')} on {counted(self.nodes, unit)}"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a test: whether all objectives were met, its metrics by name, and its run folder's name, if any."""

    point: Point
    met: bool
    values: Mapping[str, float] = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """The axes and the question. `loads` and `nodes` ascend; `seed` fixes the order of tests.

    `unit` is what `nodes` counts: "node", or "replica" of a service.
    """

    question: Question
    variants: tuple[str, ...]
    loads: tuple[int, ...]
    nodes: tuple[int, ...]
    repetitions: int
    order: RunOrder = RunOrder.INTERLEAVED
    seed: int = 0
    unit: str = "node"


@dataclass(frozen=True, slots=True)
class Series:
    """One search: `candidates` of the searched axis, easy first, at `fixed` on the other."""

    variant: str
    fixed: int
    candidates: tuple[int, ...]
    searched: str  # "nodes" or "load"
    unit: str = "node"  # what `nodes` counts

    def point(self, at: int, repetition: int) -> Point:
        """The test of the candidate at index `at`."""
        value = self.candidates[at]
        load, nodes = (self.fixed, value) if self.searched == "nodes" else (value, self.fixed)
        return Point(self.variant, load, nodes, repetition)

    def candidate(self, point: Point) -> int | None:
        """The searched value of a point; none when the point belongs to another series."""
        fixed, value = (point.load, point.nodes) if self.searched == "nodes" else (point.nodes, point.load)
        belongs = point.variant == self.variant and fixed == self.fixed and value in self.candidates
        return value if belongs else None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one search.

    Attributes:
        series: what was searched.
        value: the fewest nodes or the largest load; none when not even the easiest candidate meets the objectives.
        interval: the least and the most that the tests leave possible: no test failed on their easy side, none passed
            on their hard side; none lies beyond the candidates.
        tests: how many tests the search took.
        contradictions: candidates whose tests contradict the answer: the platform is not monotone, or noisier than the
            repetitions can resolve.
    """

    series: Series
    value: int | None
    interval: tuple[int | None, int | None]
    tests: int
    contradictions: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """For people: ``60 runs need 7 nodes (9 tests; 6 to 7 possible).``."""
        series = self.series
        if series.searched == "nodes":
            subject, searched, verb, none_verb = counted(series.fixed, "run"), series.unit, "need", "need more than"
        else:
            subject, searched, verb, none_verb = (
                counted(series.fixed, series.unit),
                "run",
                "handle",
                "cannot handle even",
            )
        if series.fixed == 1:
            verb, none_verb = f"{verb}s", none_verb.replace("need ", "needs ")
        verb, value = (verb, self.value) if self.value else (none_verb, series.candidates[0])
        low, high = self.interval
        notes = [counted(self.tests, "test")]
        if self.value and low != high:
            span = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
            notes.append(f"{span} possible")
        if self.contradictions:
            notes.append(f"contradicted by the tests at {', '.join(map(str, self.contradictions))}")
        variant = "" if series.variant == "default" else f"{series.variant}, "
        return f"{variant}{subject} {verb} {counted(value, searched)} ({'; '.join(notes)})."
