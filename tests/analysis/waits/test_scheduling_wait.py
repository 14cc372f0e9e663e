"""What new nodes and quicker pulls would save of a wait for nodes."""

import pytest

from harness.analysis.waits.holders import Holders
from harness.analysis.waits.scheduling_wait import SchedulingWait


def wait(unschedulable=0.0, provisioning=0.0, at_max="", pulls=0.0, pulling=0.0, queued=0.0, storing=0.0):
    return SchedulingWait(
        unschedulable, provisioning, (), scaled=True, at_max=at_max, grew=True, refused="",
        holders=Holders(pulling, storing, queued), pulls=pulls, coming_s=60.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "saved"),
    [
        ({"provisioning": 0.4}, 0.4),
        ({"unschedulable": 0.4}, 0.0),  # no node was on its way
        ({"provisioning": 0.4, "pulling": 0.9}, 0.4),  # what pods on other nodes pull does not matter
        ({"provisioning": 0.4, "pulls": 1.0}, 0.0),  # pods would pull as long as they wait now
        ({"provisioning": 0.4, "pulls": 0.25}, 0.3),
        ({"provisioning": 0.4, "storing": 0.5}, 0.2),  # the nodes are busy storing
        ({"provisioning": 0.4, "at_max": "max size reached"}, 0.34),  # a part is for nodes that can't be added
    ],
)
def test_new_nodes_save_the_wait_that_neither_pulls_nor_storing_take_instead(given, saved):
    assert wait(**given).for_provisioning == pytest.approx(saved)


@pytest.mark.parametrize(
    ("given", "pulled"),
    [
        ({"unschedulable": 0.4, "queued": 0.5}, 0.2),
        ({"unschedulable": 0.4, "pulling": 0.5}, 0.0),  # nobody waits for these pulls
        ({"provisioning": 0.4, "queued": 0.5}, 0.1),  # a half of them, before the new node comes
        ({"provisioning": 0.4, "queued": 0.5, "pulls": 1.0}, 0.2),  # and on a new node, pods pull again
    ],
)
def test_a_wait_for_nodes_is_for_pulls_as_far_as_pods_on_the_nodes_pull(given, pulled):
    assert wait(**given).for_pulls == pytest.approx(pulled)
