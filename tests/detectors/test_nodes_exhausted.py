"""Full nodes are sure only where the scheduler said that they are."""

import pytest

from harness.detectors import diagnose
from tests.support.timelines import burst


@pytest.mark.parametrize("said", [True, False])
def test_full_nodes_of_which_the_scheduler_said_nothing_are_half_sure_and_may_be_something_else(said, tmp_path):
    story = burst(100)
    if said:
        message = "0/4 nodes are available: 4 Insufficient cpu. preemption: 0/4 nodes are available."
        story.event(10.0, "Pod", "train-9", "FailedScheduling", message)
    first = diagnose(story.timeline(tmp_path)).findings[0]
    assert first.name == "nodes-exhausted"
    assert (first.confidence > 0.8) is said
    assert any("taints, claims or affinity" in fact.statement for fact in first.evidence) is not said
