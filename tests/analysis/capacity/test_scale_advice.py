import pytest

from harness.analysis.capacity.scale_advice import scale_advice
from harness.model.phases import REQUESTED_CPU_CORES, RUNNING, UNSCHEDULABLE
from tests.support.timelines import Story


def worked_off(lanes: int = 2, runs: int = 8, work: float = 300.0) -> Story:
    """Runs of one pod with 4 cores, at once, on nodes of 4 cores that each come a minute after they were asked for."""
    story = Story(intended=runs)
    for lane in range(lanes):
        story.node(f"n{lane}", 1.0, 61.0)
        story.event(
            1.0, "Pod", "p", "TriggeredScaleUp", f"pod triggered scale-up: [{{train {lane}->{lane + 1} (max: 9)}}]"
        )
    for seq in range(runs):
        run, start = story.submit(seq), 61.0 + work * (seq // lanes)
        story.pod(run, "train", f"n{seq % lanes}", (UNSCHEDULABLE, 0.1, start), (RUNNING, start, start + work))
        story.run(run, 0.0, start + work)
    story.sample(0.0, REQUESTED_CPU_CORES, 4.0, task="train")
    return story


def test_beyond_the_maximum_a_node_would_work_for_less_than_one_run(tmp_path):
    found = scale_advice(worked_off().timeline(tmp_path))
    assert found.coming_s == pytest.approx(60.0)
    assert found.maximum == 8  # all at once: each node works for one run, five times as long as it takes to come
    assert found.minimum == 2  # two runs are asked for to the last
    assert (found.early, found.keep_s) == (0, None)


def test_stretches_that_end_before_they_start_need_no_negative_nodes(tmp_path):
    story = worked_off(runs=1)
    for seq in range(1, 4):
        run = story.submit(seq)
        story.pod(run, "train", "n0", (RUNNING, 160.0, 80.0))
        story.run(run, 0.0, 160.0)
    assert scale_advice(story.timeline(tmp_path)).minimum == 0


def test_short_runs_are_not_worth_a_node_each(tmp_path):
    found = scale_advice(worked_off(work=15.0).timeline(tmp_path))
    assert found.maximum == 2  # 8 runs of 15 s are two nodes' work for the minute that a node takes to come


@pytest.mark.parametrize(
    ("again", "taken", "early"), [(300.0, False, 1), (300.0, True, 0), (900.0, False, 0), (600.0, False, 1)]
)
def test_a_node_that_is_soon_needed_again_was_removed_too_early(again, taken, early, tmp_path):
    story = worked_off()
    story.node("short", -60.0, 0.0, gone=100.0)
    story.node("again", 100.0 + again, 160.0 + again)
    if taken:
        story.event(99.0, "Node", "short", "PreemptScheduled")
    found = scale_advice(story.timeline(tmp_path))
    assert found.early == early
    assert found.keep_s == (pytest.approx(again + 600.0) if early else None)


def test_a_node_that_was_removed_for_good_was_not_removed_too_early(tmp_path):
    story = worked_off()
    story.node("spare", -60.0, 0.0, gone=100.0)
    found = scale_advice(story.timeline(tmp_path))
    assert (found.early, found.keep_s) == (0, None)


def test_without_requests_there_is_no_advice(tmp_path):
    story = worked_off()
    story.records = [record for record in story.records if type(record).__name__ != "Sample"]
    assert scale_advice(story.timeline(tmp_path)) is None
