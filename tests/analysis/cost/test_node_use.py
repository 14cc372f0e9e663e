import pytest

from harness.analysis.cost.requested import node_use
from harness.model.phases import NODE_CPU_CORES, RUNNING
from tests.support.timelines import Story


def test_cpu_use_is_a_share_of_allocatable_cores(tmp_path):
    story = Story(intended=1)
    story.node("a", -10, -5, cpu=4.0)
    story.node("system", -10, -5, cpu=2.0, pool="system")
    story.pod(story.submit(0), "train", "a", (RUNNING, 1.0, 2.0))
    for name in ("a", "system", "of another cluster"):
        story.sample(3.0, NODE_CPU_CORES, 3.0, node=name)
    (use,) = node_use(story.timeline(tmp_path)).itertuples(index=False)
    assert (use.at_s, use.node, use.share) == (pytest.approx(3.0), "a", pytest.approx(0.75))


def test_nothing_measured_is_no_use(tmp_path):
    assert len(node_use(Story().timeline(tmp_path))) == 0
