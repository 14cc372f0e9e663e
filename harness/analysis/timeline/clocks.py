"""The offset between the platform's clock and the harness's."""

import numpy as np
from numpy.typing import NDArray

RESOLUTION_S = 1.0  # platforms' timestamps are whole seconds, rounded down
TOLERANCE_S = 0.5


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
