"""Tests of a real controller that differ in one setting: what is predicted from one of a pair is held against the other.

    python -m tests.support.situations.pairs FOLDER [NAME …]

makes them and keeps their run folders.
"""

import sys
import tempfile
from pathlib import Path

from tests.support.situations.making import quota
from tests.support.situations.rehearsing import made
from tests.support.situations.situation import Situation

_ROOMY = ("32", "32", "32")
_CONTROLLER_POD = 1  # counts towards a quota of pods


def _test(name: str, truth: str, *, runs: int = 60, nodes: tuple[str, ...] = _ROOMY, **more: object) -> Situation:
    return Situation(name, truth, runs=runs, nodes=nodes, drain="300s", **more)  # type: ignore[arg-type]


SITUATIONS = (
    _test("base60", "nothing was limited: --qps 20, 32 workers"),
    _test("base200", "the same with 200 workflows", runs=200),
    _test("qps50", "the controller may ask the API server 50 times a second", runs=200, controller=("--qps", "50")),
    _test("worker1", "the controller has one worker", controller=("--workflow-workers", "1")),
    _test("quota6", "a ResourceQuota of 6 pods", ready=quota(pods=str(6 + _CONTROLLER_POD))),
    _test("quota60", "a ResourceQuota of 60 pods", runs=200, ready=quota(pods=str(60 + _CONTROLLER_POD))),
    _test("parallelism4", "the ConfigMap lets 4 workflows run", settings={"parallelism": "4"}),
    _test("nodes3", "three nodes of 2 CPU", nodes=("2",) * 3),
    _test("nodes6", "six nodes of 2 CPU", nodes=("2",) * 6),
)


def main() -> int:
    """Make those that were named, or all; 1 if one could not be made."""
    keep, *names = sys.argv[1:]
    chosen = [each for each in SITUATIONS if not names or each.name in names]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="pairs-") as place:
        for outcome in made(chosen, Path(place), Path(keep)):
            told = outcome.with_metrics
            print(outcome.situation.name, told.observed if told else "", *outcome.errors, flush=True)
            bad += bool(outcome.errors)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
