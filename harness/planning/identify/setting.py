"""A setting of a platform that was read from a recorded test."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.simulator.engine.distributions import Amount, Empirical, fixed

_MOST = 500  # values of a distribution; more would only cost memory


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, its value, where it was read, and from how many observations (0: it is no statistic)."""

    name: str
    value: object
    source: str
    count: int = 0

    def __str__(self) -> str:
        value = _spread(self.value) if isinstance(self.value, Amount) else str(self.value)
        return f"{self.name}: {value} ({self.source}{f', {self.count:,} values' if self.count else ''})"


def _spread(amount: Amount) -> str:
    values = getattr(amount.distribution, "values", None)
    if values is None:
        return f"{amount.distribution.mean:.3g} s"
    median, p95 = np.quantile(values, (0.5, 0.95))
    return f"median {median:.3g} s, p95 {p95:.3g} s"


def measured_amount(values: Iterable[float]) -> Amount:
    """The distribution of what was measured, below 0 as 0: of many values, evenly spaced ones in their order."""
    found = np.sort(np.clip(np.asarray(list(values), dtype=np.float64), 0.0, None))
    if not found.size:
        return fixed(0.0)
    if found.size > _MOST:
        found = np.quantile(found, (np.arange(_MOST) + 0.5) / _MOST)
    return fixed(float(found[0])) if found[0] == found[-1] else Amount(Empirical(tuple(found.tolist())))
