"""The test to run next: the one after which a capacity answer would be known best, for what it costs."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from harness.analysis.capacity.model import CapacityModel
from harness.analysis.timeline import Floats

_FACTORS = (0.25, 0.5, 1.0, 2.0)  # of the largest tested size: what is known to work, or nearly
_MAX_RATIO = 1.1  # of the best remaining deviation: among these the cheapest test is proposed


@dataclass(frozen=True, slots=True)
class NextTest:
    """One test.

    Attributes:
        runs: of a burst.
        nodes: on which it runs.
        takes_s: about how long.
        now: relative standard deviation of the answer's duration.
        then: the same, expected after the test.
    """

    runs: int
    nodes: int
    takes_s: float
    now: float
    then: float


def next_test(model: CapacityModel, runs: float, nodes: float) -> NextTest:
    """The test that best predicts the duration of `runs` runs on `nodes` nodes.

    Candidates are judged by the draws: what remains of the variance of the logarithm of the duration when that of the
    candidate is known (linear regression), noise of the candidate included. Draws explain the time that more nodes do
    not shorten both ways where tests can't distinguish them.
    """
    draws = list(model.draws)
    if model.fitted_on.one_load:
        draws = [d.explained(model.fitted_on.runs[0], shared=s) for d in draws for s in (False, True)]
    most = model.fitted_on.runs[1], model.fitted_on.nodes[1]
    sizes = sorted({(max(1, round(most[0] * a)), max(1, round(most[1] * b))) for a, b in product(_FACTORS, _FACTORS)})
    at = np.array([(runs, nodes), *sizes], dtype=np.float64).T
    expected = np.concatenate([d.coefficients @ d.law.features(*at).T for d in draws])
    seen = np.concatenate([d.durations(*at) for d in draws])
    asked = np.log(expected[:, 0])
    now = float(asked.std())
    left = [now * float(np.sqrt(1 - _correlation(asked, np.log(seen[:, k])) ** 2)) for k in range(1, at.shape[1])]
    takes = np.median(seen, axis=0)[1:]
    enough = [k for k, each in enumerate(left) if each <= _MAX_RATIO * min(left)]
    chosen = min(enough, key=lambda k: float(takes[k]) * sizes[k][1])
    return NextTest(*sizes[chosen], float(takes[chosen]), now, left[chosen])


def _correlation(one: Floats, other: Floats) -> float:
    spread = float(one.std() * other.std())
    return float(np.mean((one - one.mean()) * (other - other.mean()))) / spread if spread > 0 else 0.0
