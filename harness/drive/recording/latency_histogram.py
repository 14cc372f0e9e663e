"""Quantiles of the lag in constant memory, for any number of arrivals."""

import math
from collections import Counter

_MIN_S = 1e-5
_GROWTH = 1.05  # ratio of the widths of adjacent bins: a quantile is at most 5 % too high
_LOG_GROWTH = math.log(_GROWTH)


class LatencyHistogram:
    """A histogram with bins of equal relative width."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._worst_s = 0.0

    def add(self, lag_s: float) -> None:
        """Count one arrival with this lag in seconds."""
        self._worst_s = max(self._worst_s, lag_s)
        self._counts[math.ceil(math.log(lag_s / _MIN_S) / _LOG_GROWTH) if lag_s > _MIN_S else 0] += 1

    def quantile(self, level: float) -> float | None:
        """The lag in seconds that a share `level` of all arrivals does not exceed; none before the first arrival."""
        rank = math.ceil(level * self._counts.total())
        for place in sorted(self._counts):
            rank -= self._counts[place]
            if rank <= 0:
                return _MIN_S * _GROWTH**place
        return None

    def take_worst(self) -> float:
        """The longest lag in seconds since the last call."""
        worst_s, self._worst_s = self._worst_s, 0.0
        return worst_s
