"""What the cluster hints that a poll of the runs will show."""

import pytest

from harness.collectors.collector import Activity
from harness.collectors.runs.poll_policy import Load, PollHint, poll_hint

NOTHING, CHANGES, POSSIBLE_END, END = PollHint
EXTERNAL, ARRIVING, ARRIVED, CLOSED = Load


@pytest.mark.parametrize(
    ("activity", "going", "load", "hint"),
    [
        (Activity(), "", ARRIVING, NOTHING),  # nothing was submitted yet
        (Activity(), "", EXTERNAL, POSSIBLE_END),  # others submit, and nobody knows when
        (Activity(persisted={"a": True}, pods=3), "ab", EXTERNAL, POSSIBLE_END),
        (Activity(), "ab", ARRIVING, CHANGES),
        (Activity(), "ab", ARRIVED, POSSIBLE_END),  # without a cluster it can't be known
        (Activity(), "ab", CLOSED, POSSIBLE_END),
        (Activity(pods=3, worked={"a"}), "ab", ARRIVED, POSSIBLE_END),
        (Activity(pods=0, worked={"a"}), "ab", ARRIVED, END),  # the last pods are over
        (Activity(pods=0, worked={"x"}), "ab", ARRIVED, POSSIBLE_END),  # they have not begun, or it is another cluster
        (Activity(pods=0, worked={"a"}), "ab", ARRIVING, CHANGES),  # more arrivals are to come
        (Activity(pods=5, worked={"over"}, persisted={}), "ab", ARRIVED, NOTHING),
        (Activity(pods=5, worked={"over"}, persisted={"x": True}), "ab", ARRIVED, NOTHING),  # a run of another test
        (Activity(pods=5, worked={"over"}, persisted={"a": True}), "ab", ARRIVED, CHANGES),
        (Activity(pods=0, worked={"a"}, persisted={"a": True, "b": True}), "ab", ARRIVED, END),
        (Activity(pods=0, worked={"a"}, persisted={"a": True, "b": True}), "ab", ARRIVING, CHANGES),
        (Activity(pods=0, worked={"a"}, persisted={}), "ab", ARRIVED, POSSIBLE_END),  # a platform that does not label workflows
        (Activity(pods=0, worked={"a"}, persisted={"over": True}), "ab", ARRIVED, NOTHING),  # one that does, and has not yet
        (Activity(pods=5, worked={"x"}, persisted={}), "ab", ARRIVED, POSSIBLE_END),  # as far as is known, another cluster
        (Activity(pods=5, worked={"over"}, persisted={"a": True}), "ab", CLOSED, CHANGES),  # the next arrival was told
        (Activity(pods=5, worked={"over"}, persisted={"over": True}), "ab", CLOSED, NOTHING),
        (Activity(pods=5, worked={"over"}, persisted={}), "ab", CLOSED, POSSIBLE_END),  # does the platform label workflows?
    ],
)  # fmt: skip
def test_what_a_poll_would_show(activity: Activity, going: str, load: Load, hint: PollHint) -> None:
    runs = {*going, "over"}
    worked, labelled = (not runs.isdisjoint(shown or ()) for shown in (activity.worked, activity.persisted))
    assert poll_hint(activity, going=set(going), load=load, worked=worked, labelled=labelled) is hint
