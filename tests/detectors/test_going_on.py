"""Findings while a test goes on: none of what young runs overstate before enough runs have ended."""

import pytest

from harness.analysis.timeline import Timeline
from harness.detectors import diagnose
from harness.store.tables import load
from tests.support.injected import executed, steady
from tests.support.injection.live import until
from tests.support.timelines import at


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


@pytest.mark.parametrize(
    ("count", "second", "found"), [(60, 25.0, False), (60, 40.0, True), (400, 90.0, False), (400, 120.0, True)]
)
def test_slow_loads_of_the_first_answers_are_no_finding_yet(count, second, found, tmp_path):
    """Half of all executions must have ended, or a hundred; they come one a second."""
    live = diagnose(so_far(executed(count, loading=lambda _: 1.5), second, tmp_path), going_on=True)
    assert ("adapter-slow" in {each.name for each in live.findings}) is found
    reasons = {each.name: each.reason for each in live.not_judged}
    assert (f"of {count} ended so far" in reasons.get("adapter-slow", "")) is not found


def test_an_instant_shows_what_had_begun_by_then_and_no_later_end(tmp_path):
    timeline = so_far(steady(), 30.0, tmp_path)
    assert len(timeline.runs) == 15
    assert 0 < timeline.is_open.sum() < 15
    assert timeline.end_s <= 30.0
    assert timeline.pods["start_s"].max() <= 30.0
    assert timeline.pods["end_s"].isna().any()
