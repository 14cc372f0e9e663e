import numpy as np
import pytest

from harness.analysis.waits.startup_delay import startup_delay
from harness.detectors.controller import parallelism_cap
from harness.model.phases import RUNNING
from tests.support.timelines import Story


def story_of(first, *, length=10.0):
    """Runs that are all submitted at once, each with one pod from `first` on."""
    story = Story(intended=len(first))
    for seq, start in enumerate(first):
        run = story.submit(seq)
        story.pod(run, "train", "node-0", (RUNNING, start, start + length))
        story.run(run, 0.0, start + length)
    return story


def test_the_number_active_at_once_is_typical_of_the_time_others_waited(tmp_path):
    found = startup_delay(story_of([1.0, 1.0, 11.0, 11.0, 21.0, 21.0]).timeline(tmp_path))
    assert found.most == 2
    assert (found.plateau, found.queued_s) == (1.0, pytest.approx(20.0))
    assert found.unhindered_s == pytest.approx(1.0 - 0.021)
    np.testing.assert_allclose(found.before, [0.979, 0.979, 10.979, 10.979, 20.979, 20.979])
    np.testing.assert_allclose(found.between, 0.0, atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_idle_time_while_all_wait_is_not_a_cap(tmp_path):
    """A platform that stands still for a minute and a half, after the first run was over."""
    timeline = story_of([0.1, *[100.0] * 5], length=1.0).timeline(tmp_path)
    found = startup_delay(timeline)
    assert (found.most, found.unhindered_s) == (0, 0.0)
    assert parallelism_cap.detect(timeline) == []


def test_behind_a_limit_on_active_runs_every_second_that_they_take_keeps_others_waiting(tmp_path):
    found = startup_delay(story_of([1.0, 1.0, 11.0, 11.0, 21.0, 21.0]).timeline(tmp_path))
    assert found.capped
    assert found.late_s == pytest.approx(15.979)
    # The others wait for 2 × 10 s and 2 × 20 s longer than the first two; the six runs take 126 s.
    assert found.queue == pytest.approx(60 / 126)
