"""Latencies count from the due time, and unfinished runs are censored."""

import numpy as np
import pytest

from harness.analysis.latency import duration, latencies
from harness.model import Outcome
from tests.support.timelines import Story


def test_each_latency_has_its_own_ends(tmp_path):
    """Due at 10 s and 20 s; sent 1 s and 3 s, answered 3 s and 9 s, over 5 s and 13 s after."""
    story = Story(intended=2)
    for seq, (due, lag, service, over) in enumerate(((10.0, 1.0, 2.0, 15.0), (20.0, 3.0, 6.0, 33.0))):
        story.run(story.submit(seq, due=due, lag=lag, service=service), due + lag, over)
    found = latencies(story.timeline(tmp_path))
    ends = [(each.least, each.most) for each in (found.lag, found.latency, found.service, found.duration)]
    assert np.array(ends) == pytest.approx(np.array([(1.0, 3.0), (3.0, 9.0), (2.0, 6.0), (5.0, 13.0)]))


def test_rejected_arrivals_have_latencies_and_no_duration_and_unfinished_runs_a_lower_bound(tmp_path):
    story = Story(intended=4)
    story.run(story.submit(0), 0.0, 5.0)
    story.submit(1, due=1.0)
    story.submit(2, due=2.0, service=4.0, outcome=Outcome.REJECTED, status=503, error="busy")
    story.submit(3, due=3.0, lag=None, outcome=Outcome.MISSED, status=None, error="stopped")
    story.event(21.0, "Test", "test", "DrainTimedOut")
    timeline = story.timeline(tmp_path)
    found = latencies(timeline)
    assert (found.lag.count, found.latency.count, found.service.count) == (3, 3, 3)
    assert found.service.most == pytest.approx(4.0)
    assert (found.duration.count, found.duration.censored, found.duration.at(0.99).at_least) == (2, 1, 20.0)
    assert duration(timeline)[:2].tolist() == [5.0, 20.0]
    assert np.isnan(duration(timeline)[2:]).all()
