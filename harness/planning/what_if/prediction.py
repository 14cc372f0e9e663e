"""Predicts what changes would bring: the identified platform is simulated with and without each of them.

A prediction is the recorded value times the ratio of both simulations, which have the same random draws. Its interval
is that of another test: chance had its part in the recorded one, and has in the next. How much shows in several seeds,
each of which draws from the measured pods anew; to that come the error with which the model reproduces the recorded
test, and how much equal tests of a real platform differ besides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt

import numpy as np
from scipy.special import stdtrit

from harness.analysis.timeline import Floats
from harness.model.effects import Figure, Prediction
from harness.planning.identify import Identified, Measures, RecordedTest, replay
from harness.planning.identify.reproduction import NOISE, OfTenant
from harness.planning.sweeps import DaskWorkers, Sweep, Workers
from harness.planning.what_if.scenario import Change, Scenario

MOST_SEEDS, FEWEST_SEEDS = 9, 2
_PODS = 130_000  # simulated in all, if that many seeds are enough
_LEVEL = 0.95  # of each side of the interval
_Z = 1.645  # standard deviations to it
_BINDS = 0.1  # of a run's time
_OF_NODES = ("node_hours", "cost")
_FIGURES = ("p50_s", "p95_s", "mean_s", "seen_s", "makespan_s", *_OF_NODES)
_OF_TENANT = ("mean_s", "p95_s")
STEPS = "the steps' own work"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Predictions from a recorded test; none where the model does not reproduce it."""

    identified: Identified
    binds: str
    predictions: tuple[Prediction, ...]

    @property
    def reproduced(self) -> bool:
        """Whether the model reproduces the test, so that it can predict."""
        return not self.identified.reproduction.misfits


def predict(
    identified: Identified, test: RecordedTest, changes: Sequence[Change], workers: Workers | DaskWorkers
) -> WhatIf:
    """Predict the effect of each change.

    Raises:
        ConfigError: a change that the simulated platform can't have.
    """
    if identified.reproduction.misfits:
        return WhatIf(identified, "", ())
    today, found = _predicted(identified, test, changes, workers)
    return WhatIf(identified, binding(today), found)


def predictions(
    identified: Identified, test: RecordedTest, changes: Sequence[Change], workers: Workers | DaskWorkers
) -> tuple[Prediction, ...]:
    """The effect of each change, whether or not the model reproduces the test."""
    return _predicted(identified, test, changes, workers)[1]


def _predicted(
    identified: Identified, test: RecordedTest, changes: Sequence[Change], workers: Workers | DaskWorkers
) -> tuple[Sequence[Measures], tuple[Prediction, ...]]:
    today = Scenario(identified.profile, test)
    scenarios = [today, *(change.apply(today) for change in changes)]
    seeds = seeds_for(identified.recorded, len(scenarios))
    asked = [(k, seed) for k in range(len(scenarios)) for seed in range(1, seeds + 1)]
    workers.progress.expect(len(asked))
    found = Sweep(_Simulated(scenarios), workers).map(asked)
    outcomes = [found[k * seeds : (k + 1) * seeds] for k in range(len(scenarios))]
    return outcomes[0], tuple(
        _prediction(change.name, identified, outcomes[0], outcome)
        for change, outcome in zip(changes, outcomes[1:], strict=True)
    )


def seeds_for(recorded: Measures, scenarios: int) -> int:
    """How often each scenario is simulated: large tests less often, as their figures vary less."""
    pods = max(1.0, recorded.pods * recorded.runs * scenarios)
    return int(min(MOST_SEEDS, max(FEWEST_SEEDS, _PODS // pods)))


class _Simulated:
    """Simulates a scenario with a seed; other processes can be given it."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self._scenarios = scenarios

    def __call__(self, asked: tuple[int, int]) -> Measures:
        place, seed = asked
        scenario = self._scenarios[place]
        return replay(replace(scenario.profile, resampled=True), scenario.test, seed)


def _prediction(name: str, of: Identified, today: Sequence[Measures], then: Sequence[Measures]) -> Prediction:
    within = log(1 + of.reproduction.within)
    names = _FIGURES[: -len(_OF_NODES)] if of.reproduction.nodes.off else _FIGURES
    figures = dict(_figures(names, of.recorded, today, then, within))
    tenants = {
        tenant: dict(_figures(_OF_TENANT, now, *_of_tenant(tenant, today, then), within))
        for tenant, now in of.recorded.tenants.items()
        if all(tenant in measures.tenants for measures in (*today, *then))
    }
    return Prediction(
        name, figures, _failed(of, today, then), binding(then), tenants=tenants,
        fairness=_fairness(of.recorded, today, then),
        most_per_node=(float(np.mean([measures.most_per_node for measures in then])), of.recorded.most_per_node),
    )  # fmt: skip


def _failed(of: Identified, today: Sequence[Measures], then: Sequence[Measures]) -> Figure:
    """The share of lost runs changes by a difference, as it may be 0; see `_figures` of its interval."""
    after, before = (np.array([measures.lost for measures in several]) for several in (then, today))
    centre, off = of.recorded.lost + float(after.mean() - before.mean()), of.simulated.lost - of.recorded.lost
    spread = sqrt(_of_seeds(after, before) ** 2 + off**2) if after.any() else 0.0
    return Figure(of.recorded.lost, *(min(1.0, max(0.0, each)) for each in (centre, centre - spread, centre + spread)))


def _of_seeds(after: Floats, before: Floats) -> float:
    """How far another test may be from the mean of several: both vary, and so does the mean."""
    variance = float(after.var(ddof=1) + before.var(ddof=1))
    return float(stdtrit(after.size - 1, _LEVEL)) * sqrt(variance * (1 + 1 / after.size))


def _of_tenant(
    tenant: str, today: Sequence[Measures], then: Sequence[Measures]
) -> tuple[Sequence[OfTenant], Sequence[OfTenant]]:
    return [measures.tenants[tenant] for measures in today], [measures.tenants[tenant] for measures in then]


def _fairness(recorded: Measures, today: Sequence[Measures], then: Sequence[Measures]) -> tuple[float, float] | None:
    """That of the tenants then, and as recorded."""
    before, after = (
        [measures.fairness for measures in several if measures.fairness is not None] for several in (today, then)
    )
    if recorded.fairness is None or not before or not after:
        return None
    return min(1.0, recorded.fairness * float(np.mean(after) / np.mean(before))), recorded.fairness


def _figures(
    names: Sequence[str], recorded: object, today: Sequence[object], then: Sequence[object], within: float
) -> Iterator[tuple[str, Figure]]:
    for name in names:
        now = getattr(recorded, name)
        before, after = ([getattr(each, name) for each in several] for several in (today, then))
        if now is None or None in before or None in after:
            continue
        apart = [np.log(np.maximum(each, 1e-9)) for each in (after, before)]
        spread = sqrt(_of_seeds(*apart) ** 2 + within**2 + (_Z * NOISE) ** 2)
        centre = float((apart[0] - apart[1]).mean())
        yield name, Figure(now, now * exp(centre), now * exp(centre - spread), now * exp(centre + spread))


RANKS = ("mean", "p50", "p95", "makespan", "cost", "fairness")


def ranked(predictions: Sequence[Prediction], by: str) -> tuple[Prediction, ...]:
    """The best first, by one of `RANKS`; what is not known of a change comes last."""

    def key(of: Prediction) -> float:
        if by == "fairness":
            return -of.fairness[0] if of.fairness is not None else inf
        figure = of.figures.get(by if by == "cost" else f"{by}_s")
        return figure.value if figure is not None else inf

    return tuple(sorted(predictions, key=key))


def binding(outcomes: Sequence[Measures]) -> str:
    """What limits the runs: what they wait for longest, if that is long at all."""
    mean = float(np.mean([outcome.mean_s for outcome in outcomes]))
    waits = {limit: float(np.mean([outcome.waits[limit] for outcome in outcomes])) for limit in outcomes[0].waits}
    worst = max(waits, key=lambda name: waits[name])
    return worst if waits[worst] >= _BINDS * mean else STEPS
