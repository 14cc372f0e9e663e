"""Little's law on whole simulated runs: what was counted while it happened against what is recorded of each one.

The area under a number of pods, runs or nodes, added up at every change from nothing but the clock,
is the sum of the times that the records give each of them: L = λ W over any stretch that begins empty.
"""

from collections.abc import Callable
from typing import Any

import pytest

from harness.model import Node, Outcome, Sample, Scenario, Span, Submission
from harness.model.phases import RUN, RUNS_IN_FLIGHT
from harness.simulator import cluster
from harness.simulator.cluster import Change, Pod
from harness.simulator.fast import Arrival, simulation
from harness.simulator.fast.recorder import Recorder
from harness.simulator.faults import FAULTS, parse_faults
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.profile.file import built_in, load_profile
from harness.simulator.workflows.workflow import Workflow
from tests.support.platforms import UNCACHED
from tests.support.simulated import simulate

PIPELINES = [name for name in built_in() if not name.startswith("hetida")]


class Area:
    """Under the number of those who are inside."""

    def __init__(self) -> None:
        self.inside, self.before, self._sum = set[str](), 0.0, 0.0

    def until(self, now: float) -> float:
        self._sum += len(self.inside) * (now - self.before)
        self.before = now
        return self._sum

    def take_back(self, seconds: float) -> None:
        """Somebody has been counted for so long after leaving."""
        self._sum -= seconds

    def change(self, now: float, who: str, *, enters: bool) -> None:
        self.until(now)
        (self.inside.add if enters else self.inside.discard)(who)


class Counted(Platform):
    """Counts its runs from their submission, its pods, and its nodes."""

    def __init__(self, profile: Profile, seed: int, listener: Recorder) -> None:
        self.pods, self.runs, self.nodes = Area(), Area(), Area()
        self.recorder = listener
        super().__init__(profile, seed, self)
        self.start_run, self.server.start_run = self.server.start_run, self.counted_run  # type: ignore[method-assign]
        self.workflow_watchers.append(self.workflow_changed)
        made.append(self)

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        if change in {Change.CREATED, Change.OVER, Change.GONE}:
            self.pods.change(self.loop.now, pod.name, enters=change is Change.CREATED)
        self.recorder.pod_changed(pod, change, detail)

    def node_changed(self, node: cluster.Node, reason: str = "", message: str = "") -> None:
        self.nodes.change(self.loop.now, node.name, enters=node.gone is None)
        self.recorder.node_changed(node, reason, message)

    def counted_run(self, run: Run, answered: Callable[[Run | RpcError], None]) -> None:
        def count(answer: Run | RpcError) -> None:
            if isinstance(answer, RpcError):
                self.runs.change(self.loop.now, run.id, enters=False)
            answered(answer)

        self.runs.change(self.loop.now, run.id, enters=True)
        self.start_run(run, count)

    def workflow_changed(self, workflow: Workflow) -> None:
        if workflow.finished is not None and workflow.run_id in self.runs.inside:
            self.runs.change(self.loop.now, workflow.run_id, enters=False)
            # The controller stamps the end, and then waits for its client to tell of it.
            self.runs.take_back(self.loop.now - workflow.finished)


made: list[Counted] = []


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"image-missing"}))  # whose pods wait for good
def test_with_every_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holds("demo", fault, monkeypatch)


@pytest.mark.parametrize("name", PIPELINES)
def test_on_every_built_in_platform(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(name, "none", monkeypatch)


def holds(name: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "Platform", Counted)
    made.clear()
    profile = load_profile(name)
    tenant = profile.tenants[0].namespace if profile.tenants else ""
    scenarios = [Scenario(f"s{k}", "littles-law", {}, {}, tenant=tenant) for k in range(30)]
    arrivals = [Arrival(0.7 * k, each) for k, each in enumerate(scenarios)]
    records: list[Any] = list(simulate(profile, UNCACHED, arrivals, faults=parse_faults([fault]), seed=4))
    (counted,) = made
    assert not counted.pods.inside
    assert not counted.runs.inside
    last = max(each.at for each in records if isinstance(each, Sample) and each.metric == RUNS_IN_FLIGHT)
    found = {
        "pods": (
            counted.pods,
            sum(lengths([each for each in records if isinstance(each, Span) and each.phase != RUN])),
        ),
        "runs": (counted.runs, sum(settled(records))),
        "nodes": (counted.nodes, sum(lifetimes([each for each in records if isinstance(each, Node)], last))),
    }
    for what, (area, recorded) in found.items():
        assert recorded > 0, what
        assert area.until(last / 1e9) == pytest.approx(recorded / 1e9, rel=1e-6), what


def lengths(spans: list[Any]) -> list[int]:
    assert all(each.ended_at is not None for each in spans)
    return [each.ended_at - each.started_at for each in spans]


def settled(records: list[Any]) -> list[int]:
    """From each submission until it was refused, or its run was over."""
    runs = {
        each.run: each.ended_at - each.started_at for each in records if isinstance(each, Span) and each.phase == RUN
    }
    rows = [each for each in records if isinstance(each, Submission)]
    refused = [each.answered_at - each.sent_at for each in rows if each.outcome is Outcome.REJECTED]
    assert len(runs) + len(refused) == len(rows)
    return [*runs.values(), *refused]


def lifetimes(nodes: list[Node], last: int) -> list[int]:
    """Until it was gone, or the simulation ended; the first ones are there from its beginning."""
    began = min(each.created_at for each in nodes)
    return [(began + last if each.gone_at is None else each.gone_at) - each.created_at for each in nodes]
