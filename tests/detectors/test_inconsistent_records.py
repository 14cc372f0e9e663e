"""Counts and timestamps of runs contradict each other only by more than the rounding of the timestamps explains."""

import math

import pytest

from harness.detectors import diagnose
from harness.model.phases import RUNS_IN_FLIGHT
from tests.support.timelines import Story


def counted(rate, lasts, in_flight):
    """Runs of `lasts` seconds, `rate` a second, stamped in whole seconds; the listing counts `in_flight`."""
    story = Story(intended=40 * rate)
    for k in range(40 * rate):
        begun = k / rate
        story.run(story.submit(k, due=begun), math.floor(begun), math.floor(begun + lasts))
    for second in range(2, 40, 2):
        story.sample(second + 0.5, RUNS_IN_FLIGHT, in_flight)
    return story


@pytest.mark.parametrize(
    ("rate", "lasts", "in_flight", "contradict"),
    [
        (20, 0.6, 12.0, False),  # 20 x 0.6
        (20, 0.6, 25.0, False),  # each run's stamps may be a second off
        (20, 0.6, 45.0, True),
        (1, 12.0, 12.0, False),
        (1, 12.0, 20.0, True),  # a second's arrivals are one run here
    ],
)
def test_the_rounding_of_timestamps_is_no_contradiction(tmp_path, rate, lasts, in_flight, contradict):
    names = [each.name for each in diagnose(counted(rate, lasts, in_flight).timeline(tmp_path)).findings]
    assert ("inconsistent-records" in names) == contradict
