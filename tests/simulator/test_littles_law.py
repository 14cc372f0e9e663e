"""Little's law on whole simulated runs: what was counted while it happened against what is recorded of each pod.

The area under the number of pods in the cluster, added up at every change by somebody who looks at nothing but the
clock, is the sum of the times that the records give each pod: L = λ W over any run that begins and ends empty.
"""

from typing import Any

import pytest

from harness.model import Scenario, Span
from harness.model.phases import RUN
from harness.simulator import fast
from harness.simulator.cluster import Change, Pod
from harness.simulator.fast import Arrival, simulate
from harness.simulator.faults import FAULTS, parse_faults
from harness.simulator.profile_file import built_in, load_profile
from tests.simulator.platforms import UNCACHED

PIPELINES = [name for name in built_in() if not name.startswith("hetida")]


class Counting(fast._Notes):
    """Adds up the pods in the cluster over time."""

    def __init__(self) -> None:
        super().__init__()
        self.area, self.inside, self.before = 0.0, set[str](), 0.0
        made.append(self)

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        assert self.platform is not None
        now = self.platform.loop.now
        self.area += len(self.inside) * (now - self.before)
        self.before = now
        if change is Change.CREATED:
            self.inside.add(pod.name)
        elif change in {Change.OVER, Change.GONE}:
            self.inside.discard(pod.name)
        super().pod_changed(pod, change, detail)


made: list[Counting] = []


@pytest.mark.parametrize("fault", FAULTS)
def test_with_every_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holds("demo", fault, monkeypatch)


@pytest.mark.parametrize("name", PIPELINES)
def test_on_every_built_in_platform(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(name, "none", monkeypatch)


def holds(name: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_Notes", Counting)
    made.clear()
    scenarios = [Scenario(f"s{k}", "littles-law", {}, {}) for k in range(30)]
    arrivals = [Arrival(0.7 * k, each) for k, each in enumerate(scenarios)]
    records: list[Any] = list(simulate(load_profile(name), UNCACHED, arrivals, faults=parse_faults([fault]), seed=4))
    spans = [each for each in records if isinstance(each, Span) and each.phase != RUN]
    (counting,) = made
    assert not counting.inside
    assert all(each.ended_at is not None for each in spans)
    recorded = sum((each.ended_at or 0) - each.started_at for each in spans) / 1e9
    assert recorded > 0
    assert counting.area == pytest.approx(recorded, rel=1e-6)
