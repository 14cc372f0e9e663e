"""Cross-validation of a capacity model: each size predicted from all others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.fit import fit
from harness.analysis.capacity.model import Observation
from harness.analysis.timeline import evenly

_DRAWS = 400
_MOST_SIZES = 40


@dataclass(frozen=True, slots=True)
class Check:
    """Leave-one-out: `coverage` is the share of tests within their 90 % interval, `error` the median relative error."""

    sizes: int
    tests: int
    coverage: float
    error: float

    @property
    def sentence(self) -> str:
        """The result as text."""
        return (
            f"{self.sizes} sizes, each predicted from the others: {self.coverage:.0%} of {self.tests} tests within "
            f"the 90% interval, median error {self.error:.1%}"
        )


def leave_one_out(observations: Sequence[Observation], random: np.random.Generator) -> Check | None:
    """Predict each size from the others, for at most `_MOST_SIZES` evenly chosen ones; none with a single size.

    Raises:
        ValueError: an observation has a size or duration that is not above 0.
    """
    sizes = sorted({(o.runs, o.nodes) for o in observations})
    if len(sizes) < 2:
        return None
    chosen = [sizes[k] for k in evenly(len(sizes), _MOST_SIZES).tolist()]
    inside, errors = [], []
    for runs, nodes in chosen:
        model = fit([o for o in observations if (o.runs, o.nodes) != (runs, nodes)], random, count=_DRAWS)
        low, middle, high = model.durations(runs, nodes, (0.05, 0.5, 0.95))[:, 0]
        took = np.array([o.duration_s for o in observations if (o.runs, o.nodes) == (runs, nodes)])
        inside.extend((low <= took) & (took <= high))
        errors.extend(abs(middle / took - 1))
    return Check(len(chosen), len(inside), float(np.mean(inside)), float(np.median(errors)))
