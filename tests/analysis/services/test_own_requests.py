"""The observer's own requests, as they were counted."""

import pytest

from harness.analysis.services.own_requests import own_requests
from harness.model.phases import OBSERVER_REQUESTS
from tests.support.timelines import Story

LIST, PODS = "kfp GET /apis/v2beta1/runs", "kubernetes WATCH /api/v1/pods"


def test_the_platforms_share_is_of_what_load_and_observer_sent_to_it(tmp_path):
    story = Story(intended=8)
    for seq in range(8):
        story.run(story.submit(seq), 0.0, 5.0)
    for when, lists, watches in ((1, 1, 2), (11, 2, 4)):
        story.sample(when, OBSERVER_REQUESTS, lists, endpoint=LIST)
        story.sample(when, OBSERVER_REQUESTS, watches, endpoint=PODS)
    found = own_requests(story.timeline(tmp_path))
    assert found is not None
    assert found.by_endpoint == {LIST: 2, PODS: 4}
    assert (found.platform, found.share) == (2, pytest.approx(0.2))


def test_a_restarted_observer_counts_from_zero_and_no_request_is_lost(tmp_path):
    story = Story(intended=1)
    story.submit(0)
    for when, count in ((1, 3), (11, 7), (21, 2), (31, 5)):
        story.sample(when, OBSERVER_REQUESTS, count, endpoint=LIST)
    found = own_requests(story.timeline(tmp_path))
    assert found is not None
    assert found.by_endpoint == {LIST: 12}


def test_without_an_observer_there_are_no_own_requests(tmp_path):
    story = Story(intended=1)
    story.submit(0)
    assert own_requests(story.timeline(tmp_path)) is None
