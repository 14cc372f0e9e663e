"""Rejections of a load by its own records, those of others by the API server's metrics."""

import pytest

from harness.detectors import diagnose
from harness.detectors.controller import api_errors
from tests.support.injected.loads import REFUSING, watched


def test_where_no_load_was_sent_the_api_servers_metrics_show_what_it_rejected(tmp_path):
    found = diagnose(watched({**REFUSING, ("GetRun", "NotFound"): 50.0}).timeline(tmp_path)).findings
    (finding,) = (each for each in found if each.name == "api-errors")
    assert finding.title == "KFP's API server rejected 10.0% of the requests to create runs"
    assert finding.evidence[0].statement == "gRPC codes: Internal (8.0%), Unavailable (2.0%)"
    assert finding.evidence[0].value == pytest.approx(10.0)


def test_requests_that_clients_made_wrongly_are_theirs_to_mend(tmp_path):
    (finding,) = api_errors.detect(watched({**REFUSING, ("CreateRun", "InvalidArgument"): 0.5}).timeline(tmp_path))
    assert "what the clients send" in finding.fix


@pytest.mark.parametrize(
    "story",
    [
        watched({("CreateRun", "OK"): 1.0, ("GetRun", "NotFound"): 50.0}),
        watched({("GetRun", "NotFound"): 50.0}),
        watched({}),
        watched(REFUSING, intended=40),  # its own records know better
    ],
    ids=["all answered", "nothing created", "no metrics", "a load"],
)
def test_else_there_is_nothing_to_say(tmp_path, story):
    assert api_errors.detect(story.timeline(tmp_path)) == []
