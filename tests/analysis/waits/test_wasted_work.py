import pytest

from harness.analysis.waits.wasted_work import wasted_work
from harness.model.phases import RUNNING
from tests.support.timelines import Story


def test_work_of_failed_and_lost_pods_is_wasted(tmp_path):
    story = Story(intended=2)
    story.node("spot", -60.0, 0.0, gone=40.0, spot=True)
    story.node("stays", -60.0, 0.0)
    for seq, node in enumerate(("spot", "stays")):
        run = story.submit(seq)
        story.pod(run, "first", node, (RUNNING, 10.0, 40.0))  # one goes with its node, the other fails
        story.pod(run, "second", "stays", (RUNNING, 50.0, 150.0))
        story.run(run, 0.0, 150.0)
    story.event(40.0, "Pod", "run-0001-first", "Error", "exit code 1", run="run-0001")
    found = wasted_work(story.timeline(tmp_path))
    assert (found.pods, found.lost_s, found.worked_s) == (2, pytest.approx(60.0), pytest.approx(260.0))
    assert found.amplification == pytest.approx(260 / 200)


def test_without_failures_no_work_is_wasted(tmp_path):
    story = Story(intended=1)
    run = story.submit(0)
    story.pod(run, "train", "n", (RUNNING, 1.0, 5.0))
    story.run(run, 0.0, 6.0)
    found = wasted_work(story.timeline(tmp_path))
    assert (found.pods, found.lost_s, found.amplification) == (0, 0.0, 1.0)
