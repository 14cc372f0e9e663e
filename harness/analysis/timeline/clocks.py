"""The offset between the platform's clock and the harness's."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RESOLUTION_S = 1.0  # platforms' timestamps are whole seconds, rounded down
TOLERANCE_S = 0.5
_LEAST_RUNS = 3  # before and after a step


def ahead(sent: NDArray[np.float64], answered: NDArray[np.float64], created: NDArray[np.float64]) -> float:
    """Seconds by which the platform's clock is at least ahead (negative: behind); 0 when the clocks may agree.

    A run is created between the sending of its submission and the answer, so each run bounds the offset from both
    sides. Quantiles instead of extremes, since a platform may create single runs late, by a retry of its own.
    """
    known = np.isfinite(sent) & np.isfinite(answered) & np.isfinite(created)
    if not known.any():
        return 0.0
    least = float(np.quantile((created - answered)[known], 0.9))
    most = float(np.quantile((created + RESOLUTION_S - sent)[known], 0.1))
    if least > TOLERANCE_S:
        return least
    return most if most < -TOLERANCE_S else 0.0


def step(sent: NDArray[np.float64], answered: NDArray[np.float64], created: NDArray[np.float64]) -> float:
    """Seconds by which the platform's clock was set, against the harness's, between two runs; 0 when it may not have.

    The offset before and the offset after are each bounded as in `ahead`; both bounds must exclude each other. The runs
    are parted where the means of both parts differ most (Hawkins, J. Amer. Statist. Assoc. 72, 1977).
    """
    known = np.isfinite(sent) & np.isfinite(answered) & np.isfinite(created)
    order = np.argsort(sent[known], kind="stable")
    least, most = (created - answered)[known][order], (created + RESOLUTION_S - sent)[known][order]
    count = order.size
    if count < 2 * _LEAST_RUNS:
        return 0.0
    middle = (least + most) / 2
    before = np.arange(_LEAST_RUNS, count - _LEAST_RUNS + 1)
    excess = np.cumsum(middle - middle.mean())[before - 1]
    at = int(before[np.argmax(np.abs(excess) / np.sqrt(before * (count - before)))])
    up = float(np.quantile(least[at:], 0.9) - np.quantile(most[:at], 0.1))
    down = float(np.quantile(least[:at], 0.9) - np.quantile(most[at:], 0.1))
    if max(up, down) <= TOLERANCE_S:
        return 0.0
    return float(np.median(middle[at:]) - np.median(middle[:at]))


def set_back(
    skew_s: float,
    runs: pd.DataFrame,
    pods: Iterable[pd.DataFrame],
    tasks: pd.DataFrame,
    events: pd.DataFrame,
    nodes: pd.DataFrame,
) -> None:
    """Move the platform's timestamps to the harness's clock, in place."""
    for frame, names in (
        (runs, ("created_s", "over_s", "said_s")),
        *((pod, ("start_s", "end_s")) for pod in pods),
        (tasks, ("start_s",)),
        (nodes, ("created_s", "ready_s", "gone_s")),
    ):
        for name in names:
            frame[name] -= skew_s
    events["at_s"] -= np.where(events["source"] == "kubernetes", skew_s, 0.0)
