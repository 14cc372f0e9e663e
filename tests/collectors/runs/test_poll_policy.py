"""What listing the runs may cost, and the maximum delay until an end is seen."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.collectors.runs.poll_policy import PollHint, PollPolicy, PollState, budget

OPEN = PollPolicy(share=0.05, min_s=1.0, calm_s=5.0, max_s=60.0)
CLOSED = PollPolicy(share=0.05, min_s=1.0, calm_s=1.0, max_s=5.0)


def state(own: int = 0, sent: int = 0, hint: PollHint = PollHint.POSSIBLE_END, **more: Any) -> PollState:
    return PollState(own=own, sent=sent, hint=hint, **more)


@given(st.integers(0, 100_000), st.floats(0.001, 0.5))
def test_the_budget_is_a_share_of_all_requests_together(sent: int, share: float) -> None:
    own = budget(sent, share)
    assert own == pytest.approx(share * (own + sent))


@given(
    st.sampled_from([OPEN, CLOSED]),
    st.lists(
        st.tuples(st.integers(0, 300), st.floats(0, 1000), st.sampled_from(PollHint), st.booleans(), st.booleans()),
        max_size=300,
    ),
)
def test_whatever_happens_polls_stay_within_budget_and_floor(
    policy: PollPolicy, steps: list[tuple[int, float, PollHint, bool, bool]]
) -> None:
    own = sent = 0
    awaited_s = 0.0
    for more, passed_s, hint, awaited, wanted in steps:
        sent += more
        awaited_s += passed_s
        now = state(own, sent, hint, awaited_s=awaited_s if awaited else None)
        if wanted and policy.affords(now):
            own += 1
        assert own <= budget(sent, 0.05) + policy.floor(awaited_s)


@pytest.mark.parametrize(("awaited_s", "requests"), [(3, 0), (4, 1), (6, 2), (40, 6), (120, 9), (600, 17), (3600, 67)])
def test_the_floor(awaited_s: float, requests: int) -> None:
    assert OPEN.floor(awaited_s) == requests


def unaided(policy: PollPolicy, sent: int, length_s: float) -> tuple[int, float]:
    """The polls spent on an end after `length_s` without a hint, and the delay until it is seen."""
    own, last_s, now_s = 0, 0.0, 0.0
    while True:
        now_s += 0.5
        now = state(own, sent, awaited_s=now_s)
        if now_s - last_s >= policy.wait_s(now) and policy.affords(now):
            own, last_s = own + 1, now_s
            if now_s >= length_s:
                return own, now_s - length_s


@given(st.integers(0, 2000), st.floats(1, 1200))
def test_an_end_without_a_hint_is_seen_at_most_half_the_wait_and_a_minute_late(sent: int, length_s: float) -> None:
    polls, late_s = unaided(OPEN, sent, length_s)
    assert late_s <= min(max(0.5 * length_s, 4.0), 60.0) + 1.0
    assert polls <= budget(sent, 0.05) + OPEN.floor(length_s + late_s)


@given(st.floats(10, 300))
def test_in_the_closed_model_an_end_is_seen_within_five_seconds(length_s: float) -> None:
    assert unaided(CLOSED, 0, length_s)[1] <= 5.5


def test_while_arrivals_are_due_half_of_the_budget_is_reserved_for_their_ends() -> None:
    assert OPEN.wait_s(state(0, 200, PollHint.CHANGES)) == 5.0
    assert OPEN.wait_s(state(0, 200, PollHint.NOTHING)) == 15.0
    assert OPEN.wait_s(state(6, 200, PollHint.CHANGES)) == math.inf


def test_it_polls_when_the_last_run_is_forecast_to_end() -> None:
    soon = state(10, 1000, awaited_s=100.0, left_s=3.0)
    assert OPEN.wait_s(soon) == 3.0
    assert OPEN.wait_s(state(10, 1000, awaited_s=100.0, left_s=0.2)) == 1.0
    assert OPEN.wait_s(state(100, 1000, awaited_s=100.0, left_s=0.2)) == pytest.approx(100 / 3)


def test_a_hinted_end_is_polled_for_at_once_and_then_at_growing_intervals() -> None:
    waits = [OPEN.wait_s(state(0, 200, PollHint.END, hinted_s=s, awaited_s=s)) for s in (0.0, 1.0, 4.0, 60.0, 999.0)]
    assert waits == pytest.approx([1.0, 1.0, 4 / 3, 20.0, 60.0])


def test_while_the_cluster_hints_nothing_it_polls_now_and_then_in_case_the_cluster_is_wrong() -> None:
    assert OPEN.wait_s(state(0, 20, PollHint.NOTHING, awaited_s=30.0)) == 300.0
    assert OPEN.wait_s(state(0, 20, PollHint.NOTHING, awaited_s=3600.0)) == pytest.approx(1200.0)


@pytest.mark.parametrize(("sent", "read", "own", "affordable"), [
    (0, 0, 9, True), (40, 1, 3, False), (200, 1, 5, True), (200, 2, 5, False), (200, 1, 10, False),
])  # fmt: skip
def test_the_tasks_of_one_run_are_always_affordable_and_more_within_a_quarter(
    sent: int, read: int, own: int, affordable: bool
) -> None:
    assert OPEN.affords_tasks(own=own, sent=sent, read=read) is affordable
