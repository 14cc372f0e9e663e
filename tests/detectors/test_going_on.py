"""Findings while a test goes on: none of what young runs overstate before enough runs have ended."""

import pytest

from harness.analysis.timeline import Timeline
from harness.detectors import diagnose
from harness.model.phases import PULLING, SCHEDULING
from harness.store.tables import load
from tests.support.injected.loads import executed, steady
from tests.support.injection.live import until
from tests.support.timelines import Story, at


def so_far(story, second, place):
    folder = story.write(place)
    return Timeline.from_frames(folder.read_plan(), until(load(folder), at(second)))


@pytest.mark.parametrize(("second", "found"), [(12.0, False), (150.0, True)])
def test_pulls_of_young_runs_are_no_finding_yet(second, found, tmp_path):
    timeline = so_far(steady(pull=9.0), second, tmp_path)
    assert "image-pull" in {each.name for each in diagnose(timeline).findings}
    live = diagnose(timeline, going_on=True)
    assert ("image-pull" in {each.name for each in live.findings}) is found
    reasons = {each.name: each.reason for each in live.not_judged}
    assert ("ended so far" in reasons.get("image-pull", "")) is not found


@pytest.mark.parametrize(("pull", "found"), [(3.0, False), (6.0, True)])
def test_what_costs_little_so_far_may_not_last(pull, found, tmp_path):
    """Two pulls of a run of 41 s beside them."""
    timeline = so_far(steady(pull=pull, work=20.0), 150.0, tmp_path)
    assert "image-pull" in {each.name for each in diagnose(timeline).findings}
    live = diagnose(timeline, going_on=True)
    assert ("image-pull" in {each.name for each in live.findings}) is found
    reasons = {each.name: each.reason for each in live.not_judged}
    assert ("too little so far" in reasons.get("image-pull", "")) is not found


def test_pulls_that_never_end_are_a_finding_once_the_test_is_over(tmp_path):
    """No pull has ended: all of them last until now."""
    story = Story(intended=20)
    for seq in range(20):
        run = story.submit(seq, due=float(seq))
        begun = seq + 1.0
        story.pod(run, "train", "node-0", (SCHEDULING, seq + 0.5, begun), (PULLING, begun, None))
        story.run(run, float(seq), None)
    story.event(600.0, "Test", "run", "Ended")
    found = {each.name: each for each in diagnose(story.timeline(tmp_path)).findings}
    assert found["image-pull"].confidence > 0.8


@pytest.mark.parametrize(
    ("count", "second", "found"), [(60, 50.0, False), (60, 57.0, True), (1200, 900.0, False), (1200, 1010.0, True)]
)
def test_slow_loads_of_the_first_answers_are_no_finding_yet(count, second, found, tmp_path):
    """Nine of ten executions must have ended, or a thousand; they come one a second."""
    live = diagnose(so_far(executed(count, loading=lambda _: 1.5), second, tmp_path), going_on=True)
    assert ("adapter-slow" in {each.name for each in live.findings}) is found
    reasons = {each.name: each.reason for each in live.not_judged}
    assert (f"of {count:,} ended so far" in reasons.get("adapter-slow", "")) is not found


@pytest.mark.parametrize("listed", [True, False])
def test_the_lag_is_not_compared_with_answers_while_no_run_has_ended(listed, tmp_path):
    """Twenty milliseconds are as long as an answer takes, and nothing beside a run of minutes."""
    story = Story(intended=100)
    for seq in range(100):
        lag = 0.02 if seq % 20 == 0 else 0.001
        run = story.submit(seq, due=0.1 * seq, lag=lag, service=0.024)
        if listed:
            story.run(run, 0.1 * seq, 0.1 * seq + 300.0)
    early = so_far(story, 60.0, tmp_path)
    assert len(early.runs) == 100
    assert not early.is_over.any()
    assert "generator-lag" not in {each.name for each in diagnose(early, going_on=True).findings}


def test_an_instant_shows_what_had_begun_by_then_and_no_later_end(tmp_path):
    timeline = so_far(steady(), 30.0, tmp_path)
    assert len(timeline.runs) == 15
    assert 0 < timeline.is_open.sum() < 15
    assert timeline.end_s <= 30.0
    assert timeline.pods["start_s"].max() <= 30.0
    assert timeline.pods["end_s"].isna().any()
