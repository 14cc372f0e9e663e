"""Which point to test next: a grid, or a search for the fewest nodes or the largest load that meets the objectives.

A pure function of the experiment and the results so far. An interrupted experiment is asked again with the results that
were kept and continues where it stopped; no finished point is repeated.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from math import ceil, log2
from random import Random

from harness.model.experiment import Answer, Experiment, Point, Question, Result, RunOrder, Series
from harness.planning.search import Search, Tally


def next_point(experiment: Experiment, results: Sequence[Result]) -> Point | None:
    """The test to make now; none when the question is answered."""
    if experiment.question is Question.GRID:
        done = {result.point for result in results}
        return next((point for point in grid(experiment) if point not in done), None)
    open_ = []
    for series in all_series(experiment):
        tallies = _tallies(series, results)
        at = _search(experiment, series).next(tallies)
        if at is not None:
            trials = sum(tally.trials for tally in tallies.values())
            open_.append((trials, series.point(at, tallies.get(at, Tally()).trials)))
    # The search with the fewest tests goes first: variants take turns, and drift affects all of them alike.
    return min(open_, key=lambda entry: entry[0])[1] if open_ else None


def likely_points(experiment: Experiment, results: Sequence[Result], count: int) -> list[Point]:
    """The test to make now, and others that may be next: up to `count`, the more likely first.

    Each test is supposed to meet the objectives, and not to.
    """
    points: list[Point] = []
    courses = deque([list(results)])
    while courses and len(points) < count:
        course = courses.popleft()
        point = next_point(experiment, course)
        if point is None:
            continue
        outcomes = (True,) if experiment.question is Question.GRID else (True, False)
        courses.extend([*course, Result(point, met, {})] for met in outcomes)
        if point not in points:
            points.append(point)
    return points


def expected_tests(experiment: Experiment) -> int:
    """How many tests the answer takes: exactly for a grid, otherwise about as many as bisections take."""
    if experiment.question is Question.GRID:
        return sum(1 for _ in grid(experiment))
    half = (experiment.repetitions + 1) // 2  # equal trials settle a candidate
    series = all_series(experiment)
    return sum(ceil(log2(len(each.candidates) + 1)) + 2 * (half - 1) for each in series)


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
    if experiment.order is RunOrder.RANDOM:
        random.shuffle(points)
    yield from points


def all_series(experiment: Experiment) -> list[Series]:
    """The searches that a question takes; none for a grid."""
    unit = experiment.unit
    match experiment.question:
        case Question.FEWEST_NODES:
            candidates = tuple(reversed(experiment.nodes))  # many nodes are the easy end
            return [
                Series(v, load, candidates, "nodes", unit) for load in experiment.loads for v in experiment.variants
            ]
        case Question.LARGEST_LOAD:
            return [Series(v, n, experiment.loads, "load", unit) for n in experiment.nodes for v in experiment.variants]
        case _:
            return []


def answers(experiment: Experiment, results: Sequence[Result]) -> tuple[Answer, ...]:
    """The answer of each search so far; empty for a grid."""
    found = []
    for series in all_series(experiment):
        tallies, search = _tallies(series, results), _search(experiment, series)
        low, high = (_value(series, cut) for cut in search.possible(tallies))
        found.append(
            Answer(
                series,
                _value(series, search.boundary(tallies)),
                (high, low) if series.searched == "nodes" else (low, high),
                sum(tally.trials for tally in tallies.values()),
                tuple(series.candidates[at] for at in search.contradictions(tallies)),
            )
        )
    return tuple(found)


def _tallies(series: Series, results: Sequence[Result]) -> dict[int, Tally]:
    """A search's results by the candidate's index."""
    tallies: dict[int, Tally] = {}
    for result in results:
        if (value := series.candidate(result.point)) is not None:
            at = series.candidates.index(value)
            tallies[at] = tallies.get(at, Tally()).after(passed=result.met)
    return tallies


def _search(experiment: Experiment, series: Series) -> Search:
    return Search(len(series.candidates), experiment.repetitions)


def _value(series: Series, passing: int) -> int | None:
    """The answer when the first `passing` candidates pass."""
    return series.candidates[passing - 1] if passing else None
