"""Stated confidence against the truth, by tenths."""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.injection.judging import Verdict


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
