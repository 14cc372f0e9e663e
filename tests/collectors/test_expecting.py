"""When a poll of the runs will show something."""

import pytest

from harness.collectors.collector import Activity
from harness.collectors.expecting import Expected, expected

NOTHING, CHANGES, ENDS = Expected


@pytest.mark.parametrize(
    ("activity", "going", "over", "intended", "closed", "then"),
    [
        (Activity(), "", 0, 9, False, NOTHING),  # nothing was submitted yet
        (Activity(), "", 0, 0, False, CHANGES),  # others submit, and nobody knows when
        (Activity(), "ab", 0, 9, False, CHANGES),  # without a cluster it can't be known
        (Activity(pods=3), "ab", 7, 9, False, CHANGES),
        (Activity(pods=0), "ab", 7, 9, False, ENDS),  # the last pods are over
        (Activity(pods=0), "ab", 3, 9, False, CHANGES),  # more arrivals are to come
        (Activity(pods=5, kept=set()), "ab", 7, 9, False, NOTHING),
        (Activity(pods=5, kept={"x"}), "ab", 7, 9, False, NOTHING),  # a run of another test
        (Activity(pods=5, kept={"a"}), "ab", 7, 9, False, CHANGES),
        (Activity(pods=0, kept={"a", "b"}), "ab", 7, 9, False, ENDS),
        (Activity(pods=0, kept={"a", "b"}), "ab", 3, 9, False, CHANGES),
        (Activity(pods=0, kept=set()), "ab", 7, 9, False, CHANGES),  # a platform that does not label workflows
        (Activity(pods=5, kept={"a"}), "ab", 3, 9, True, ENDS),  # the next arrival waits for it
        (Activity(pods=5, kept={"a"}), "ab", 3, 0, True, ENDS),
        (Activity(pods=5, kept={"a"}), "ab", 3, 0, False, CHANGES),
    ],
)
def test_what_a_poll_would_show(
    activity: Activity, going: str, over: int, intended: int, closed: bool, then: Expected
) -> None:
    assert expected(activity, set(going), listed=True, over=over, intended=intended, closed=closed) is then


def test_before_the_first_listing_a_cluster_without_pods_has_not_begun() -> None:
    assert expected(Activity(pods=0), {"a"}, listed=False, over=0, intended=1, closed=False) is CHANGES
