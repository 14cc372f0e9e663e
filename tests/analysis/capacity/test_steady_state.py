import pytest

from harness.analysis.capacity.progress import steady_state
from harness.analysis.cost.cost import cost, pending
from harness.model.phases import RUNNING, UNSCHEDULABLE
from tests.support.stories import stairs
from tests.support.timelines import Story


def test_each_number_of_nodes_gets_its_own_throughput(tmp_path):
    found = steady_state(stairs(lambda n: 120.0 * n).timeline(tmp_path))
    assert found.nodes.tolist() == [1, 2, 3, 4, 6, 8]
    assert found.per_hour == pytest.approx(120.0 * found.nodes, rel=0.06)
    assert found.settle_s == pytest.approx(30.0)
    assert (found.end_s - found.start_s).tolist() == pytest.approx([570.0] * 6, abs=60)


def test_partly_idle_nodes_do_not_count(tmp_path):
    story = Story(intended=40)
    story.node("n", -10, -5)
    for seq in range(40):
        run = story.submit(seq, due=10.0 * seq)
        story.pod(run, "a", "n", (RUNNING, 10.0 * seq, 10.0 * seq + 5))
        story.run(run, 10.0 * seq, 10.0 * seq + 6)
    assert steady_state(story.timeline(tmp_path)).nodes.size == 0


def test_cost_and_usage_by_hand(tmp_path):
    story = Story(intended=2)
    story.node("a", -100, -50, cpu=4.0, price=1.0)
    story.node("b", 600, 900, gone=1800, cpu=8.0, gpu=2.0, price=3.0)
    for seq, (node, start, end) in enumerate((("a", 0, 1800), ("b", 900, 1500))):
        run = story.submit(seq)
        story.pod(run, "x", node, (UNSCHEDULABLE, start - 4.0, start), (RUNNING, start, end))
        story.pod(
            run, "y", node, (RUNNING, start + 10, end - 10)
        )  # beside it: the hours are the node's, not the steps'
        story.run(run, 0.0, 3600.0)
    timeline = story.timeline(tmp_path)
    found = cost(timeline)
    assert found is not None
    assert found.node_hours == pytest.approx(1.0 + 1200 / 3600)
    assert found.busy_hours == pytest.approx((1800 + 600) / 3600)
    assert found.cpu_hours == pytest.approx(4.0 + 8 / 3)
    assert found.gpu_hours == pytest.approx(2 / 3)
    assert found.cost == pytest.approx(1.0 + 1.0)
    assert (found.warm, found.coming_hours) == (1, pytest.approx(300 / 3600))
    waited = pending(timeline)
    assert waited is not None
    assert waited.within == {2.0: 0.5, 5.0: 1.0, 60.0: 1.0}
    assert waited.waited.count == 4


def test_without_prices_there_is_no_cost(tmp_path):
    story = Story(intended=1)
    story.node("a", -10, -5)
    story.run(story.submit(0), 0.0, 5.0)
    found = cost(story.timeline(tmp_path))
    assert found is not None
    assert found.cost is None
