"""Predicted effects against the truth, on platforms drawn as for `benchmarks/detectors.py`, all of them observed.

    python benchmarks/what_if.py [--tests 40] [--seed N] [--jobs N] [--show] [--hetida]

Each test is simulated, its platform is identified from the records alone, and a few removals of causes are predicted.
The truth is a simulation of the drawn platform without the cause, with the faults and arrivals of the test and other
random draws, as a repeated test would have. Where the model does not reproduce a test, it is right to refuse if a
prediction would be off by more than it promises.
"""

import argparse
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from harness.cli.sweep_bar import SweepBar
from harness.model.errors import ConfigError
from harness.model.findings import Evidence, Finding
from harness.planning.identify import identify, measures_of, recorded_test
from harness.planning.identify.reproduction import OFF, Measures
from harness.planning.sweeps import Sweep, Workers, open_workers, usable_cores
from harness.planning.what_if import fixes_of
from harness.planning.what_if.prediction import predictions
from tests.support.injection.case import run_in, simulated
from tests.support.injection.installations import Installation, draw
from tests.support.injection.judging import without

CHANGES = ("nodes-exhausted", "store-slow", "image-pull", "controller-backlog", "parallelism-cap", "cpu-starved")
OF_HETIDA = ("runtime-saturated", "lb-imbalance", "adapter-slow")
ERROR, COVERED, BEST, REFUSED = 0.1, (0.85, 0.95), 0.95, 0.8  # what is promised
_AS_GOOD = 1.05  # times the mean of the truly best
_FIGURES = ("makespan_s", "p95_s")


@dataclass(frozen=True)
class Predicted:
    """A figure of a change: predicted with its interval, and true."""

    value: float
    low: float
    high: float
    truth: float

    @property
    def error(self) -> float:
        """Share of the truth."""
        return abs(self.value / self.truth - 1)


@dataclass(frozen=True)
class Test:
    """A drawn test: how the model reproduces it, its predictions, and whether the best of them is the best."""

    number: int
    said: str
    reproduced: bool = False
    figures: tuple[Predicted, ...] = ()
    best: bool = False


def main() -> int:
    """Print the shares; 1 when a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=40)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--show", action="store_true", help="each test")
    parser.add_argument("--hetida", action="store_true", help="those of hetida designer, in place of KFP's")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.tests} tests", flush=True)
    with SweepBar("", things="tests") as bar, open_workers(options.jobs, progress=bar) as workers:
        bar.expect(options.tests)
        found = Sweep(partial(judged, options.seed, of_hetida=options.hetida), workers).map(range(options.tests))
    tests = [each for each in found if each.said]
    if options.show:
        print("\n".join(f"{each.number} {each.said}: {_shown(each)}" for each in tests))
    return int(not all([*_promises(tests)]))


def judged(seed: int, number: int, *, of_hetida: bool) -> Test:
    """Predict and simulate the changes of one test; nothing is said of the other kind of platform."""
    drawn = draw(seed, number)
    if (drawn.profile.hetida is not None) != of_hetida:
        return Test(number, "")
    test = replace(drawn, case=replace(drawn.case, without=frozenset(), many=False))
    with TemporaryDirectory() as passing:
        place = Path(passing)
        timeline = simulated(test.case, test.strength, test.seed, test.profile, place)
        try:
            recorded = recorded_test(run_in(place), timeline)
            recorded = recorded if of_hetida else replace(recorded, package=test.case.package)
            identified = identify(timeline, recorded)
        except ConfigError as error:
            return Test(number, f"refused: {error.message}")
    changes = OF_HETIDA if of_hetida else CHANGES
    fixes = fixes_of(Finding(name, name, 1.0, (Evidence(name),), "") for name in changes)
    found = predictions(identified, recorded, [change for _, change in fixes.values()], Workers(1))
    truths = {name: _truth(test, name) for name in fixes}
    figures = tuple(
        Predicted(figure.value, figure.low, figure.high, getattr(truths[each.name], name))
        for each in found
        for name, figure in each.figures.items()
        if name in _FIGURES
    )
    chosen = min(found, key=lambda each: each.figures["seen_s"].value).name
    least = min(each.seen_s for each in truths.values())
    best = truths[chosen].seen_s <= _AS_GOOD * least
    reproduction = identified.reproduction
    return Test(number, str(reproduction), not reproduction.misfits, figures, best)


def _truth(test: Installation, removed: str) -> Measures:
    changed = without(test, [removed])
    repeated = simulated(changed.case, changed.strength, changed.seed, changed.profile, chance=changed.seed + 1)
    return measures_of(repeated)


def _promises(tests: Sequence[Test]) -> Iterator[bool]:
    good = [each for each in tests if each.reproduced]
    other = [each for each in tests if each.figures and not each.reproduced]
    figures = [figure for each in good for figure in each.figures]
    short = len(tests) - len(good) - len(other)
    print(f"{len(tests)} tests: {len(good)} reproduced, {len(other)} not, {short} too short")
    if figures:
        error = median(figure.error for figure in figures)
        print(f"median error of predicted makespan and p95: {error:.1%} of {len(figures)}, promised {ERROR:.0%}")
        covered = sum(each.low <= each.truth <= each.high for each in figures) / len(figures)
        print(f"true values within the 90 % interval: {covered:.0%}, promised {COVERED[0]:.0%} to {COVERED[1]:.0%}")
        best = sum(each.best for each in good) / len(good)
        print(f"the best change is the best or within 5 %: {best:.0%}, promised {BEST:.0%}")
        yield from (error <= ERROR, COVERED[0] <= covered <= COVERED[1], best >= BEST)
    if other:
        right = sum(max(figure.error for figure in each.figures) > OFF for each in other) / len(other)
        print(
            f"not reproduced, and a prediction would be off by more than {OFF:.0%}: {right:.0%}, promised {REFUSED:.0%}"
        )
        yield right >= REFUSED


def _shown(test: Test) -> str:
    return ", ".join(f"{each.value:.0f} for {each.truth:.0f}" for each in test.figures)


if __name__ == "__main__":
    sys.exit(main())
