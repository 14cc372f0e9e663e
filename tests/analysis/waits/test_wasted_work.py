from dataclasses import replace

import pytest

from harness.analysis.waits.wasted_work import lost_with_node, wasted_work
from harness.model.phases import FAILED, RUNNING, SUCCEEDED
from tests.support.timelines import Story, at


def test_work_of_failed_and_lost_pods_is_wasted(tmp_path):
    story = Story(intended=2)
    story.node("spot", -60.0, 0.0, gone=40.0, spot=True)
    story.node("stays", -60.0, 0.0)
    for seq, node in enumerate(("spot", "stays")):
        run = story.submit(seq)
        pod = story.pod(run, "train", node, (RUNNING, 10.0, 40.0))  # one goes with its node, the other fails
        again = replace(story.records[-1], step=f"{pod}-2", node="stays", started_at=at(50.0), ended_at=at(150.0))
        story.records.append(again)
        story.run(run, 0.0, 150.0)
    story.event(40.0, "Pod", "run-0001-train", "Error", "exit code 1", run="run-0001")
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


@pytest.mark.parametrize(
    ("state", "again", "reason", "lost"),
    [
        (SUCCEEDED, False, "", 0),  # its task's only pod: without it, the run would not have succeeded
        (SUCCEEDED, True, "", 1),
        (FAILED, False, "", 1),
        (SUCCEEDED, False, "DeletionByPodGC", 1),
    ],
)
@pytest.mark.parametrize("ended", [40.0, 55.0, None])
def test_a_pod_that_outlived_its_node_is_lost_unless_it_must_have_succeeded(
    state, again, reason, lost, ended, tmp_path
):
    story = Story(intended=1)
    story.node("spot", -60.0, 0.0, gone=40.0, spot=True)
    run = story.submit(0)
    pod = story.pod(run, "train", "spot", (RUNNING, 10.0, ended))
    if again:
        story.records.append(replace(story.records[-1], step=f"{pod}-2", started_at=at(60.0), ended_at=at(90.0)))
    if reason:
        story.event(41.0, "Pod", pod, reason, run=run)
    story.run(run, 0.0, 100.0, state)
    assert lost_with_node(story.timeline(tmp_path)).size == lost
