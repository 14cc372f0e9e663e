"""Changes from run to run: which metric of like tests changed, by how much, and with which run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.stats.change_points import change_points
from reports.index import Entry, alike

_LEVEL = 0.01  # chance of a false alarm for each group of like tests
_MOST_RUNS = 200  # runs of a group, the latest
_MIN_SHARE_OF_CHANGE = 0.05  # smaller changes are not worth a look
_SEED = 7


def _failed(run: Entry) -> float | None:
    return None if run.failed is None or not run.intended else run.failed / run.intended


# Name, value of a run, whether more is better.
_METRICS: tuple[tuple[str, Callable[[Entry], float | None], bool], ...] = (
    ("run duration p95 (s)", lambda run: run.p95_s, False),
    ("succeeded runs per hour", lambda run: run.per_hour, True),
    ("failed share", _failed, False),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A metric of like tests that differs from `run` (a folder's name) on; `age` counts the runs from that one on."""

    tests: str
    metric: str
    run: str
    started_at: int
    before: float
    after: float
    p: float
    worse: bool
    age: int

    @property
    def sentence(self) -> str:
        """The change in words."""
        by = f" ({self.after / self.before - 1:+.0%})" if self.before else ""
        word = "worse" if self.worse else "better"
        return f"{word} since {self.run}: {self.metric} {self.before:,.4g} → {self.after:,.4g}{by} in {self.tests}"


def changes(runs: Sequence[Entry]) -> list[Change]:
    """The changes in the valid runs of each target, schedule and size, the latest first."""
    found = [change for tests, members in alike(runs).items() for change in _of(tests, members)]
    return sorted(found, key=lambda change: (-change.started_at, change.tests, change.metric))


def _of(tests: str, members: Sequence[Entry]) -> list[Change]:
    found = []
    for metric, value, more_is_better in _METRICS:
        known = [(run, each) for run in members[-_MOST_RUNS:] if (each := value(run)) is not None]
        points = change_points([each for _, each in known], np.random.default_rng(_SEED), _LEVEL / len(_METRICS))
        for point in points:
            if abs(point.after - point.before) > _MIN_SHARE_OF_CHANGE * abs(point.before):
                run = known[point.first][0]
                worse = (point.after < point.before) == more_is_better
                found.append(
                    Change(
                        tests, metric, run.folder, run.started_at, point.before, point.after, point.p, worse,
                        len(known) - point.first,
                    )
                )  # fmt: skip
    return found
