"""How the records, and a served pod's status, show that a cloud took a machine back."""

import pytest

from harness.analysis.capacity.autoscaling import TAKEN_BACK
from harness.model import Event, Node, Scenario
from harness.simulator.engine.distributions import fixed
from harness.simulator.fast import Arrival
from harness.simulator.kube_objects.pod_status import render_status
from harness.simulator.kube_objects.snapshots import pod_snapshot
from harness.simulator.platform import Platform
from harness.simulator.profile import Eviction, Pool, Profile, Step
from harness.simulator.profile.prices import PriceSeries
from tests.support.platforms import UNCACHED, pool, profile, submit, upload
from tests.support.simulated import simulate

STEP = Step(duration=fixed(200.0), output=fixed(0.0), cpu=fixed(0.01), memory=fixed(1.0))


def settings(**eviction: object) -> Profile:
    """One spot machine, which is taken back after 100 s, and another one."""
    spot = Pool("spot", cpu=4.0, spot=True, initial=1, max=1, eviction=Eviction(at=(100.0,), **eviction))  # type: ignore[arg-type]
    return profile(spot, pool("steady", initial=1), step=STEP)


TOLERANT = (
    UNCACHED
    + b"""
---
platforms:
  kubernetes:
    deploymentSpec:
      executors:
        exec-prepare: {tolerations: [{operator: Exists}], nodeSelector: {labels: {agentpool: spot}}}
"""
)


@pytest.mark.parametrize(
    ("cloud", "reason"),
    [("aks", "DeletionByPodGC"), ("gke", "TerminationByKubelet"), ("eks", "EvictionByEvictionAPI")],
)
def test_a_lost_pods_event_says_who_ended_it(cloud: str, reason: str) -> None:
    arrivals = [Arrival(0.0, Scenario("0", "spot", {}, {}))]
    records = list(simulate(settings(cloud=cloud), TOLERANT, arrivals, drain_s=3600.0))
    events = [each for each in records if isinstance(each, Event)]
    ends = [each.reason for each in events if each.kind == "Pod" and each.reason != "FailedScheduling"]
    assert ends == [reason]
    assert [each.object for each in events if each.reason in TAKEN_BACK] == [
        each.name for each in records if isinstance(each, Node) and each.spot
    ]


def test_a_node_is_recorded_with_its_mean_price() -> None:
    """At 0.1 for 50 s and at 0.3 until the cluster drops it: off after 130 s, noticed after 170, deleted by 175."""
    arrivals = [Arrival(0.0, Scenario("0", "spot", {}, {}))]
    prices = PriceSeries((0.0, 50.0), (0.1, 0.3))
    records = list(simulate(settings(prices=prices), TOLERANT, arrivals, drain_s=3600.0))
    (spot,) = {each.price for each in records if isinstance(each, Node) and each.spot}
    assert spot == pytest.approx((50 * 0.1 + 125 * 0.3) / 175)


@pytest.mark.parametrize(
    ("cloud", "phase", "reason", "condition"),
    [
        ("gke", "Failed", "Terminated", "TerminationByKubelet"),
        ("eks", "Failed", None, "EvictionByEvictionAPI"),
    ],
)
def test_a_served_pods_status_has_the_disruption(cloud: str, phase: str, reason: str | None, condition: str) -> None:
    platform = Platform(settings(cloud=cloud))
    submit(platform, upload(platform, TOLERANT))
    platform.loop.run(50.0)
    (pod,) = [each for each in platform.cluster.pods.values() if each.role == "executor"]
    platform.loop.run(101.0)
    status = render_status(pod_snapshot(pod, ""), str)
    assert (status["phase"], status.get("reason")) == (phase, reason)
    (target,) = [each for each in status["conditions"] if each["type"] == "DisruptionTarget"]
    assert target["reason"] == condition
