"""Which point to test next: a grid, or a search for the fewest nodes or the largest load that meets the objectives.

A function of the plan and the results so far. What was interrupted is asked again with the results that were kept, and
goes on with the point it was at; no finished point is repeated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from harness.model.units import counted
from harness.planning.search import Search, Tally


class Question(StrEnum):
    """What an experiment answers."""

    GRID = "grid"  # how does it behave at all these points?
    FEWEST_NODES = "fewest-nodes"  # that meet the objectives, for each load
    LARGEST_LOAD = "largest-load"  # that meets them, for each number of nodes


class Order(StrEnum):
    """In which order points are tested."""

    INTERLEAVED = "interleaved"  # round by round; within a round cells are shuffled, a cell's variants stay together
    RANDOM = "random"  # all shuffled


@dataclass(frozen=True, slots=True)
class Point:
    """One test: a variant under a load on so many nodes, for the k-th time, from 0."""

    variant: str
    load: int
    nodes: int
    repetition: int

    @property
    def size(self) -> str:
        """For people: ``50 runs on 4 nodes``."""
        return f"{counted(self.load, 'run')} on {counted(self.nodes, 'node')}"


@dataclass(frozen=True, slots=True)
class Result:
    """What a test gave: whether all objectives were met, its figures by name, and its run folder's name, if any."""

    point: Point
    met: bool
    values: Mapping[str, float] = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """The axes and the question. `loads` and `nodes` ascend; `seed` fixes the order of tests."""

    question: Question
    variants: tuple[str, ...]
    loads: tuple[int, ...]
    nodes: tuple[int, ...]
    repetitions: int
    order: Order = Order.INTERLEAVED
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """One search: `candidates` of the searched axis, easy first, at `fixed` on the other."""

    variant: str
    fixed: int
    candidates: tuple[int, ...]
    searched: str  # "nodes" or "load"

    def point(self, at: int, repetition: int) -> Point:
        """The test of a candidate."""
        value = self.candidates[at]
        load, nodes = (self.fixed, value) if self.searched == "nodes" else (value, self.fixed)
        return Point(self.variant, load, nodes, repetition)

    def value(self, cut: int) -> int | None:
        """The answer when so many candidates pass."""
        return self.candidates[cut - 1] if cut else None

    def tallies(self, results: Sequence[Result]) -> dict[int, Tally]:
        """This search's results, by candidate."""
        found: dict[int, Tally] = {}
        for result in results:
            p = result.point
            fixed, value = (p.load, p.nodes) if self.searched == "nodes" else (p.nodes, p.load)
            if p.variant == self.variant and fixed == self.fixed and value in self.candidates:
                at = self.candidates.index(value)
                found[at] = found.get(at, Tally()).after(passed=result.met)
        return found


@dataclass(frozen=True, slots=True)
class Found:
    """The answer of one search; `value` is none when not even the easiest candidate meets the objectives.

    `interval` is from the least to the most that the tests leave possible: on their easy side no test failed, on their
    hard side none passed; none is beyond the candidates. `contradictions` are candidates whose tests speak against the
    answer: the platform is not monotone, or noisier than the repetitions can tell.
    """

    series: Series
    value: int | None
    interval: tuple[int | None, int | None]
    tests: int
    contradictions: tuple[int, ...]


def next_point(experiment: Experiment, results: Sequence[Result]) -> Point | None:
    """The test to make now; none when the question is answered."""
    if experiment.question is Question.GRID:
        done = {result.point for result in results}
        return next((point for point in grid(experiment) if point not in done), None)
    open_ = []
    for series in all_series(experiment):
        tallies = series.tallies(results)
        at = _search(experiment, series).next(tallies)
        if at is not None:
            trials = sum(tally.trials for tally in tallies.values())
            open_.append((trials, series.point(at, tallies.get(at, Tally()).trials)))
    # The search with the fewest tests goes first: variants take turns, and drift hits all of them alike.
    return min(open_, key=lambda entry: entry[0])[1] if open_ else None


def grid(experiment: Experiment) -> Iterator[Point]:
    """All points in the order in which they are tested."""
    random = Random(experiment.seed)
    cells = [(load, nodes) for load in experiment.loads for nodes in experiment.nodes]
    points = []
    for repetition in range(experiment.repetitions):
        random.shuffle(cells)
        for load, nodes in cells:
            variants = list(experiment.variants)
            random.shuffle(variants)
            points += [Point(variant, load, nodes, repetition) for variant in variants]
    if experiment.order is Order.RANDOM:
        random.shuffle(points)
    yield from points


def all_series(experiment: Experiment) -> list[Series]:
    """The searches that a question takes; none for a grid."""
    match experiment.question:
        case Question.FEWEST_NODES:
            candidates = tuple(reversed(experiment.nodes))  # many nodes are the easy end
            return [Series(v, load, candidates, "nodes") for load in experiment.loads for v in experiment.variants]
        case Question.LARGEST_LOAD:
            return [Series(v, n, experiment.loads, "load") for n in experiment.nodes for v in experiment.variants]
        case _:
            return []


def answers(experiment: Experiment, results: Sequence[Result]) -> list[Found]:
    """What the searches have found."""
    found = []
    for series in all_series(experiment):
        tallies, search = series.tallies(results), _search(experiment, series)
        low, high = map(series.value, search.possible(tallies))
        found.append(
            Found(
                series,
                series.value(search.boundary(tallies)),
                (high, low) if series.searched == "nodes" else (low, high),
                sum(tally.trials for tally in tallies.values()),
                tuple(series.candidates[at] for at in search.contradictions(tallies)),
            )
        )
    return found


def _search(experiment: Experiment, series: Series) -> Search:
    return Search(len(series.candidates), experiment.repetitions)
