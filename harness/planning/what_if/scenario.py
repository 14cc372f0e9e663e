"""What is simulated: a platform, and the load on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.planning.identify import RecordedTest
from harness.simulator.profile import Profile


@dataclass(frozen=True, slots=True)
class Scenario:
    """A platform and what is sent to it."""

    profile: Profile
    test: RecordedTest


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a scenario, and how it is called."""

    name: str
    apply: "Apply"

    def __add__(self, other: "Change") -> "Change":
        """Both changes together."""
        return Change(f"{self.name} + {other.name}", lambda scenario: other.apply(self.apply(scenario)))


Apply = Callable[[Scenario], Scenario]


def with_profile(scenario: Scenario, *, change: Callable[[Profile], Profile]) -> Scenario:
    """The same load on a changed platform."""
    return replace(scenario, profile=change(scenario.profile))
