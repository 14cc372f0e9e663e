"""When a poll of the runs will show something."""

import pytest

from harness.collectors.collector import Activity
from harness.collectors.runs.poll_hint import Expected, Load, expected

NOTHING, CHANGES, PERHAPS, ENDS = Expected
OTHERS, ARRIVING, ARRIVED, CLOSED = Load


@pytest.mark.parametrize(
    ("activity", "going", "load", "then"),
    [
        (Activity(), "", ARRIVING, NOTHING),  # nothing was submitted yet
        (Activity(), "", OTHERS, PERHAPS),  # others submit, and nobody knows when
        (Activity(kept={"a": True}, pods=3), "ab", OTHERS, PERHAPS),
        (Activity(), "ab", ARRIVING, CHANGES),
        (Activity(), "ab", ARRIVED, PERHAPS),  # without a cluster it can't be known
        (Activity(), "ab", CLOSED, PERHAPS),
        (Activity(pods=3, worked={"a"}), "ab", ARRIVED, PERHAPS),
        (Activity(pods=0, worked={"a"}), "ab", ARRIVED, ENDS),  # the last pods are over
        (Activity(pods=0, worked={"x"}), "ab", ARRIVED, PERHAPS),  # they have not begun, or it is another cluster
        (Activity(pods=0, worked={"a"}), "ab", ARRIVING, CHANGES),  # more arrivals are to come
        (Activity(pods=5, worked={"over"}, kept={}), "ab", ARRIVED, NOTHING),
        (Activity(pods=5, worked={"over"}, kept={"x": True}), "ab", ARRIVED, NOTHING),  # a run of another test
        (Activity(pods=5, worked={"over"}, kept={"a": True}), "ab", ARRIVED, CHANGES),
        (Activity(pods=0, worked={"a"}, kept={"a": True, "b": True}), "ab", ARRIVED, ENDS),
        (Activity(pods=0, worked={"a"}, kept={"a": True, "b": True}), "ab", ARRIVING, CHANGES),
        (Activity(pods=0, worked={"a"}, kept={}), "ab", ARRIVED, PERHAPS),  # a platform that does not label workflows
        (Activity(pods=0, worked={"a"}, kept={"over": True}), "ab", ARRIVED, NOTHING),  # one that does, and has not yet
        (Activity(pods=5, worked={"x"}, kept={}), "ab", ARRIVED, PERHAPS),  # as far as is known, another cluster
        (Activity(pods=5, worked={"over"}, kept={"a": True}), "ab", CLOSED, CHANGES),  # the next arrival was told
        (Activity(pods=5, worked={"over"}, kept={"over": True}), "ab", CLOSED, NOTHING),
        (Activity(pods=5, worked={"over"}, kept={}), "ab", CLOSED, PERHAPS),  # does the platform label workflows?
    ],
)  # fmt: skip
def test_what_a_poll_would_show(activity: Activity, going: str, load: Load, then: Expected) -> None:
    assert expected(activity, {*going, "over"}, set(going), load) is then
