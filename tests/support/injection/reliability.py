"""Stated confidence against the truth: the table, and the shifts that correct it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.optimize import brentq

from harness.detectors.confidence import shifted
from tests.support.injection.judging import Named, Verdict

_ENOUGH = 20  # findings of one name, for a shift


@dataclass(frozen=True)
class Tenth:
    """Findings whose confidence is in one tenth: their number, mean confidence, and share of true ones."""

    low: float
    count: int
    stated: float
    right: float

    @property
    def off(self) -> float:
        """How far the stated confidence is from the truth."""
        return self.right - self.stated


def reliability(verdicts: Iterable[Verdict]) -> list[Tenth]:
    """Of all findings that name a bottleneck, by tenths of their confidence; empty tenths are left out."""
    tenths: dict[int, list[tuple[float, bool]]] = {}
    for verdict in verdicts:
        for each in verdict.named:
            tenths.setdefault(min(9, int(10 * each.confidence)), []).append((each.confidence, each.right))
    return [
        Tenth(k / 10, len(found), sum(c for c, _ in found) / len(found), sum(r for _, r in found) / len(found))
        for k, found in sorted(tenths.items())
    ]


def fitted(found: Iterable[Named]) -> dict[str, float]:
    """By finding, the most probable shift of its log odds, with a normal prior of deviation 1.

    Fewer than twenty findings tell nothing, and shift nothing.
    """
    cases: dict[str, list[Named]] = {}
    for each in found:
        cases.setdefault(each.name, []).append(each)
    return {name: brentq(_slope, -20.0, 20.0, args=(of,)) for name, of in cases.items() if len(of) >= _ENOUGH}


def _slope(shift: float, of: Sequence[Named]) -> float:
    """The derivative of the log posterior density."""
    return sum(each.right - shifted(each.confidence, shift) for each in of) - shift
