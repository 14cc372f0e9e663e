"""What changes of a platform are expected to bring, as predicted by a model that reproduces a recorded test."""

from collections.abc import Mapping
from dataclasses import dataclass, field

TOGETHER = "all of them"


@dataclass(frozen=True, slots=True)
class Figure:
    """A predicted value with its 90 % interval, and what was recorded; all in the same unit."""

    now: float
    value: float
    low: float
    high: float

    @property
    def change(self) -> tuple[float, float, float]:
        """Low, value and high as shares of what was recorded; 0 is no change."""
        if not self.now:
            return 0.0, 0.0, 0.0
        return self.low / self.now - 1, self.value / self.now - 1, self.high / self.now - 1

    @property
    def interval(self) -> str:
        """The change as text, such as ``−52 to −38 %``."""
        low, _, high = self.change
        return f"{100 * low:+.0f} to {100 * high:+.0f} %".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a change would bring.

    Attributes:
        name: of the change; a finding's for its fix.
        figures: p50_s, p95_s, mean_s, makespan_s, node_hours, cost, and seen_s, the mean until the platform reports a
            run's end; cost only where prices are known.
        failed: share of the runs that are lost.
        binds: what limits the runs then.
        simulated: the change that models a finding's fix; "" for other changes.
        tenants: by tenant, mean_s and p95_s of its runs.
        most_per_node: most pods on one node at once then, and as recorded.
        fairness: Jain's index of the tenants' speeds then, and as recorded; none where they can't be compared.
    """

    name: str
    figures: Mapping[str, Figure]
    failed: Figure
    binds: str
    simulated: str = ""
    tenants: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    fairness: tuple[float, float] | None = None
    most_per_node: tuple[float, float] = (0.0, 0.0)

    @property
    def unchanged(self) -> bool:
        """Whether the model does exactly the same: then it does not have what the change removes."""
        return self.failed.value == self.failed.now and all(
            figure.value == figure.now for figure in self.figures.values()
        )

    @property
    def saved(self) -> float:
        """The share of the runs' time that users would not wait any more; 0 where it would not get less."""
        seen = self.figures.get("seen_s")
        return max(0.0, -seen.change[1]) if seen is not None else 0.0


@dataclass(frozen=True, slots=True)
class Effects:
    """The expected effects of the findings' fixes.

    Attributes:
        model: how well the model reproduces the test, or why nothing is predicted: a sentence.
        fixes: by finding; none where nothing is predicted.
        together: of all fixes; none where there is one.
    """

    model: str
    fixes: Mapping[str, Prediction]
    together: Prediction | None = None
