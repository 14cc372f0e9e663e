"""Tables of what autoscalers say and of nodes that come, against what was decided, asked for and provisioned."""

import pytest

from harness.analysis.capacity.autoscaling import ScaleUp, provisioning, provisioning_times, requests, scale_ups
from tests.support.timelines import Story


def told(*events, nodes=(), until=1000.0):
    """Events as (second, kind, object, reason, message), and nodes as (created, ready)."""
    story = Story(intended=1)
    for when, *event in events:
        story.event(when, *event)
    for k, (created, ready) in enumerate(nodes):
        story.node(f"n{k}", created, ready)
    story.run(story.submit(0), 0.0, until)
    return story


def grows(when, message, reason="TriggeredScaleUp"):
    return when, "Pod", f"p{when:g}", reason, f"pod triggered scale-up: [{message}]"


def nominated(when, claim):
    return when, "Pod", f"p{when:g}", "Nominated", f"Pod should schedule on: nodeclaim/{claim}"


def claim(when, name, reason):
    return when, "NodeClaim", name, reason, ""


def test_a_decision_is_reported_for_each_pod_and_counts_once_from_its_first_report(tmp_path):
    found = scale_ups(told(
        grows(9.0, "{train 3->5 (max: 12)}"),
        grows(4.0, "{train 3->5 (max: 12)} {gpu 0->1 (max: 4)}"),
        grows(5.0, "{train 3->5 (max: 12)}"),
        grows(20.0, "{train 5->6 (max: 12)}"),
        grows(1.0, "{train 1->3 (max: 12)}", reason="Ignored"),
        (30.0, "Pod", "p", "TriggeredScaleUp", "as it likes"),
    ).timeline(tmp_path))  # fmt: skip
    assert found == (
        ScaleUp(4.0, "train", 3, 5, 12), ScaleUp(4.0, "gpu", 0, 1, 4), ScaleUp(20.0, "train", 5, 6, 12),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("events", "asked"),
    [
        ([grows(4.0, "{train 3->5 (max: 12)} {gpu 0->1 (max: 4)}"), grows(2.0, "{x 0->1 (max: 1)}")], [2.0, 4.0, 4.0, 4.0]),
        ([nominated(7.0, "a-1"), nominated(3.0, "a-1"), nominated(5.0, "b.2")], [3.0, 5.0]),
        ([(3.0, "Pod", "p", "Nominated", "Pod should schedule on: node/n1")], []),
        ([claim(2.0, "a", "Created"), nominated(3.0, "a"), nominated(4.0, "b")], [2.0, 4.0]),
        ([nominated(1.0, "a"), claim(2.0, "a", "Created")], [2.0]),
        ([claim(2.0, "a", "Created"), claim(3.0, "a", "NodeClaimFailed"), claim(2.5, "b", "Created")], [2.5]),
        ([claim(2.0, "a", "Created"), claim(3.0, "a", "NodeClaimFailed"), claim(4.0, "a", "Registered")], [2.0]),
        ([claim(2.0, "a", "Registered")], []),
        ([grows(9.0, "{train 0->1 (max: 1)}"), claim(2.0, "a", "Created")], [2.0, 9.0]),
        ([], []),
    ],
)  # fmt: skip
def test_each_machine_is_asked_for_once(events, asked, tmp_path):
    assert requests(told(*events).timeline(tmp_path)).tolist() == asked


TWO = [grows(10.0, "{train 0->2 (max: 9)}")]


@pytest.mark.parametrize(
    ("events", "nodes", "intervals"),
    [
        (TWO, [(15.0, 40.0), (20.0, 50.0)], [(10.0, 50.0)]),
        (TWO, [(50.0, 80.0), (20.0, 30.0)], [(10.0, 80.0)]),
        (
            [grows(10.0, "{a 0->1 (max: 9)}"), grows(60.0, "{a 1->2 (max: 9)}")],
            [(65.0, 90.0), (20.0, 30.0)],
            [(10.0, 30.0), (60.0, 90.0)],
        ),
        (TWO, [(-60.0, -10.0), (15.0, 40.0), (20.0, 50.0)], [(10.0, 50.0)]),  # one was there before the test
        (TWO, [(0.0, 30.0), (15.0, 40.0), (20.0, 50.0)], [(10.0, 50.0)]),  # or as it began
        ([], [(15.0, 40.0)], [(15.0, 40.0)]),  # nothing was observed of its request
        ([grows(30.0, "{a 0->1 (max: 9)}")], [(15.0, 40.0)], [(15.0, 40.0)]),  # nor of this one's
        ([], [(15.0, None)], [(15.0, 1000.0)]),  # it never gets ready
        (TWO, [(15.0, 40.0)], [(10.0, 1000.0)]),  # the second never comes
        ([], [], []),
    ],
)
def test_a_node_is_provisioned_from_its_request_until_it_is_ready(events, nodes, intervals, tmp_path):
    low, high = provisioning(told(*events, nodes=nodes).timeline(tmp_path))
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == intervals


def test_a_machine_that_does_not_come_is_waited_for_to_the_end_but_for_half_an_hour_at_most(tmp_path):
    low, high = provisioning(told(*TWO, until=5000.0).timeline(tmp_path))
    assert (low.tolist(), high.tolist()) == ([10.0], [1810.0])
    low, high = provisioning(told(grows(0.25, "{a 0->1 (max: 9)}"), until=0.5).timeline(tmp_path / "short"))
    assert (low.tolist(), high.tolist()) == ([0.25], [0.5])


def test_virtual_nodes_are_not_provisioned(tmp_path):
    story = told()
    story.node("aci", 5.0, 50.0, virtual=True)
    assert provisioning(story.timeline(tmp_path))[0].size == 0


@pytest.mark.parametrize(
    ("events", "nodes", "times"),
    [
        (TWO, [(20.0, 50.0), (15.0, 40.0)], [30.0, 40.0]),
        (TWO, [(-60.0, -10.0), (20.0, 50.0)], [40.0]),
        (TWO, [(0.0, 30.0), (20.0, 50.0)], [40.0]),
        (TWO, [(15.0, None), (20.0, 50.0)], [40.0]),
        (TWO, [(15.0, 40.0), (20.0, 50.0), (25.0, 70.0)], [30.0, 40.0]),
        ([], [(15.0, 40.0)], []),
    ],
)
def test_provisioning_took_from_the_request_until_ready(events, nodes, times, tmp_path):
    assert provisioning_times(told(*events, nodes=nodes).timeline(tmp_path)).tolist() == times
