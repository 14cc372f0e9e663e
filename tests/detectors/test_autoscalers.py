"""What autoscalers say of pods that wait, in their own words, and what is made of it.

Sources: cluster-autoscaler's events of scale-ups and its reasons for skipping a node group (public source, and events
quoted in its issues); Karpenter's events of pods, NodeClaims and nodes (public source and documentation).
"""

from dataclasses import replace

import pytest

from harness.analysis.capacity.autoscaling import provisioning_times, requests
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors import diagnose
from harness.detectors.nodes import autoscaler_at_max, autoscaler_slow, nodes_exhausted
from harness.model.phases import RUNNING, SCHEDULING, UNSCHEDULABLE
from tests.support.injected.loads import steady
from tests.support.injected.nodes import autoscaled, spot
from tests.support.timelines import Story

GREW = ("Pod", "p", "TriggeredScaleUp", "pod triggered scale-up: [{steps 6->7 (max: 20)}]")
NOMINATED = ("Pod", "p", "Nominated", "Pod should schedule on: nodeclaim/default-tn8fg")
SKIPPED = "pod didn't trigger scale-up: "


def waiting(*events, ready=12.0):
    """Pods wait from 1 s to 40 s; a new node is ready at `ready`, and these events are observed."""
    story = autoscaled("", reason="Ignored", ready=ready)
    for second, event in enumerate(events, 2):
        story.event(float(second), *event)
    return story


AT_MAX = [
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}2 max node group size reached")),
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}1 node(s) had untolerated taint(s), 3 max node group size reached")),
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}1 max cluster cpu limit reached")),
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}1 max cluster cpu, memory limit reached")),
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}max total nodes in cluster reached")),
    (GREW, ("ConfigMap", "cluster-autoscaler-status", "MaxNodesTotalReached", "Max total nodes in cluster reached: 7")),
    (NOMINATED, ("Pod", "q", "FailedScheduling", "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=default)")),
    (NOMINATED, ("Pod", "q", "FailedScheduling", 'Failed to schedule pod, all available instance types exceed limits for nodepool: "default"')),
]  # fmt: skip
FAILING = [
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}1 in backoff after failed scale-up")),
    (GREW, ("ConfigMap", "cluster-autoscaler-status", "FailedToScaleUpGroup", "Scale-up failed for group steps: quota exceeded")),
    (NOMINATED, ("NodeClaim", "default-tn8fg", "InsufficientCapacityError", "NodeClaim default-tn8fg event: insufficient capacity")),
]  # fmt: skip
OTHERS = [
    (GREW, ("Pod", "q", "NotTriggerScaleUp", f"{SKIPPED}1 node(s) didn't match Pod's node affinity")),
    (NOMINATED,),
]


@pytest.mark.parametrize("events", AT_MAX, ids=lambda events: events[-1][-1][-40:])
def test_a_maximum_is_understood(events, tmp_path):
    found = [finding.name for finding in diagnose(waiting(*events).timeline(tmp_path)).findings]
    assert found[0] == "autoscaler-at-max", found


@pytest.mark.parametrize(("ready", "slow"), [(5.0, False), (16.0, True)])
def test_at_the_maximum_nodes_that_come_late_are_the_second_finding(ready, slow, tmp_path):
    found = [finding.name for finding in diagnose(waiting(*AT_MAX[0], ready=ready).timeline(tmp_path)).findings]
    assert found[0] == "autoscaler-at-max"
    assert ("autoscaler-slow" in found) is slow


@pytest.mark.parametrize("events", FAILING, ids=lambda events: events[-1][-1][-40:])
def test_a_machine_that_can_not_be_had_is_understood(events, tmp_path):
    findings = diagnose(waiting(*events).timeline(tmp_path)).findings
    assert findings[0].name == "autoscaler-failing", [each.name for each in findings]
    assert events[-1][-1] in findings[0].evidence[0].statement


CLAIM = "default-tn8fg"
NO_CAPACITY = "LaunchFailed: Error creating NodeClaim: all requested instance types were unavailable"


def test_a_claim_that_fails_is_a_machine_that_can_not_be_had_and_was_never_on_its_way(tmp_path):
    claimed = (("NodeClaim", CLAIM, "Created"), ("NodeClaim", CLAIM, "NodeClaimFailed", NO_CAPACITY))
    timeline = waiting(NOMINATED, *claimed).timeline(tmp_path)
    assert requests(timeline).size == 0
    first = diagnose(timeline).findings[0]
    assert (first.name, first.evidence[0].statement) == ("autoscaler-failing", f"autoscaler: “{NO_CAPACITY}”")
    assert first.commands == ("kubectl get nodepools,nodeclaims", "kubectl describe nodepools")


def test_a_claim_is_a_request_without_any_event_of_a_pod_and_is_counted_once(tmp_path):
    story = waiting(("NodeClaim", CLAIM, "Created"), ("NodeClaim", "default-x", "Created"), NOMINATED, ready=40.0)
    story.event(5.0, "NodeClaim", CLAIM, "NodeClaimFailed", "LaunchFailed: throttled")  # and then it came
    story.event(6.0, "NodeClaim", CLAIM, "Registered")
    timeline = story.timeline(tmp_path)
    assert requests(timeline).tolist() == [2.0, 3.0]
    assert provisioning_times(timeline).tolist() == [38.0]


@pytest.mark.parametrize("events", OTHERS, ids=lambda events: events[-1][-1][-40:])
def test_other_words_accuse_no_limit(events, tmp_path):
    found = {finding.name for finding in diagnose(waiting(*events).timeline(tmp_path)).findings}
    assert found.isdisjoint({"autoscaler-at-max", "autoscaler-failing"})


def test_karpenters_commands_are_shown_for_karpenter(tmp_path):
    (first, *_) = diagnose(waiting(*AT_MAX[-1]).timeline(tmp_path)).findings
    assert "NodePool" in first.fix
    assert first.commands == ("kubectl get nodepools,nodeclaims", "kubectl describe nodepools")
    (first, *_) = diagnose(waiting(*AT_MAX[0]).timeline(tmp_path)).findings
    assert "cluster-autoscaler-status" in first.commands[0]


def test_a_machine_is_on_its_way_from_its_first_nomination(tmp_path):
    story = steady(10)
    for at_s, name in ((20.0, "default-a"), (22.0, "default-a"), (25.0, "default-b")):
        story.event(at_s, "Pod", f"p{at_s}", "Nominated", f"Pod should schedule on: nodeclaim/{name}")
    story.event(26.0, "Pod", "p", "Nominated", "Pod should schedule on: node/steps-0")  # it exists
    story.node("new-0", 40.0, 62.0)  # the node object appears before it is ready
    story.node("new-1", 45.0, 70.0)
    timeline = story.timeline(tmp_path)
    assert requests(timeline).tolist() == [20.0, 25.0]
    assert provisioning_times(timeline).tolist() == [42.0, 45.0]
    slow = diagnose(waiting(NOMINATED, ready=40.0).timeline(tmp_path / "slow")).findings
    assert slow[0].name == "autoscaler-slow"


@pytest.mark.parametrize(
    "reason", ["PreemptScheduled", "SpotInterruption", "SpotInterrupted", "TerminatingOnInterruption"]
)
def test_a_node_that_its_cloud_announces_to_take_back_counts_as_spot(reason, tmp_path):
    story = spot()
    story.records = [
        type(each)(**{**{name: getattr(each, name) for name in each.__slots__}, "spot": False})
        if hasattr(each, "spot") else each
        for each in story.records
    ]  # fmt: skip
    for node in {each.name for each in story.records if getattr(each, "gone_at", None) is not None}:
        story.event(55.0, "Node", node, reason, "Spot interruption warning was triggered")
    (first, *_) = diagnose(story.timeline(tmp_path)).findings
    assert (first.name, first.confidence) == ("spot-evictions", 0.85)


@pytest.mark.parametrize(
    ("back", "elsewhere", "named"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_a_pool_whose_spot_machines_never_come_back_is_named_while_pods_wait_for_it(back, elsewhere, named, tmp_path):
    story = Story(intended=4)
    story.node("spot-0", -900, -890, gone=20.0, pool="spot", spot=True)
    story.node("node-0", -900, -890)
    if back:
        story.node("spot-1", 30.0, 40.0, pool="spot", spot=True)
    for seq in range(4):
        run = story.submit(seq, due=0.0)
        story.pod(run, "train-driver", "node-0", (RUNNING, 1.0, 2.0))
        if seq == 0:
            story.pod(run, "train", "node-0" if elsewhere else "spot-0", (RUNNING, 3.0, 10.0))
        else:
            story.pod(run, "train", "", (SCHEDULING, 25.0, 25.1), (UNSCHEDULABLE, 25.1, None))
        story.run(run, 0.0, 11.0 if seq == 0 else None)
    found = [each for each in diagnose(story.timeline(tmp_path)).findings if each.name == "spot-evictions"]
    assert bool(found) is named
    if named:
        assert (
            found[0].title
            == "The cloud reclaimed all machines of the pool spot, and none came back: 75% of the runs wait"
        )
        assert found[0].evidence[0].statement == "the last one of 1 was gone 20 s into the test"


@pytest.mark.parametrize(
    ("otherwise", "named"),
    [
        ({}, True),
        ({"at_max": ""}, False),
        ({"grew": False}, False),
        ({"provisioning": 0.25}, False),
    ],
)
def test_where_nodes_come_late_and_the_autoscaler_may_add_no_more_there_are_too_few(
    otherwise, named, monkeypatch, tmp_path
):
    """Its maximum alone is not to blame: with a higher one, too, pods wait until nodes are there."""
    timeline = waiting(*AT_MAX[0], ready=16.0).timeline(tmp_path)
    wait = replace(scheduling_wait(timeline), unschedulable=0.1, provisioning=0.5)
    for detector in (nodes_exhausted, autoscaler_at_max, autoscaler_slow):
        monkeypatch.setattr(detector, "scheduling_wait", lambda _: replace(wait, **otherwise))
    found = nodes_exhausted.detect(timeline)
    assert bool(found) is named
    assert autoscaler_at_max.detect(timeline) == []
    (slow,) = autoscaler_slow.detect(timeline)
    assert all(each.severity < slow.severity for each in found)
