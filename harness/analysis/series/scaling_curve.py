"""The fitted scaling law as a curve."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.scaling import Scaling
from harness.analysis.timeline import Floats

_POINTS = 60
_BEYOND = 1.25  # times the most nodes that were measured


@dataclass(frozen=True, slots=True, eq=False)
class ScalingCurve:
    """Runs per hour by number of nodes.

    Attributes:
        nodes: shape (n,).
        linear: what they would achieve if each did as much as one alone.
        fitted: by the fitted law.
        low: the lower end of its 90% band.
        high: the upper end.
    """

    nodes: Floats
    linear: Floats
    fitted: Floats
    low: Floats
    high: Floats


def scaling_curve(found: Scaling) -> ScalingCurve:
    """From one node to a quarter beyond what was measured."""
    x = np.linspace(1.0, _BEYOND * found.fitted_on[1], _POINTS)
    low, high = found.band(x)
    return ScalingCurve(x, found.curve.gamma * x, found.curve.at(x), low, high)
