import heapq
import random

from hypothesis import given
from hypothesis import strategies as st

from harness.drive.session.concurrency_limiter import ConcurrencyLimiter
from harness.model import Concurrency, Level


def test_slots_open_at_the_spawn_rate_and_whenever_a_run_ends():
    slots = ConcurrencyLimiter(Concurrency((Level(3, 60.0),), 2.0))
    assert slots.due(0.0) == [0.0]
    assert slots.due(1.0) == [0.5, 1.0]
    assert slots.due(30.0) == []
    slots.free(2, 30.5)
    assert slots.due(30.6) == [30.5, 30.5]
    assert slots.issued == 5


def test_it_ends_after_its_runs():
    slots = ConcurrencyLimiter(Concurrency((Level(10),), 1000.0, runs=4))
    assert len(slots.due(1.0)) == 4
    assert slots.over(1.0)
    slots.free(4, 2.0)
    assert slots.due(3.0) == []


def test_it_ends_after_its_time():
    slots = ConcurrencyLimiter(Concurrency((Level(1, 10.0),)))
    slots.due(0.0)
    assert not slots.over(9.9)
    slots.free(1, 10.0)
    assert slots.over(10.0)
    assert slots.due(11.0) == []


def test_a_lower_level_is_reached_as_runs_end():
    slots = ConcurrencyLimiter(Concurrency((Level(3, 10.0), Level(1, 50.0)), 100.0))
    assert len(slots.due(1.0)) == 3
    assert slots.due(12.0) == []
    slots.free(1, 13.0)
    slots.free(1, 14.0)
    assert slots.due(15.0) == [], "two slots are gone"
    slots.free(1, 16.0)
    assert slots.due(17.0) == [16.0]


levels = st.lists(st.builds(Level, st.integers(1, 9), st.floats(0.5, 20)), min_size=1, max_size=4).map(tuple)


@given(levels, st.floats(0.2, 20), st.none() | st.integers(1, 40), st.integers(0, 99))
def test_never_more_in_flight_than_the_highest_level_and_never_idle_below_it(levels, spawn_rate, runs, seed):
    """A platform that takes a random time for each run, followed in steps of 50 ms."""
    schedule = Concurrency(levels, spawn_rate, runs)
    slots, draw, ends, issued = ConcurrencyLimiter(schedule), random.Random(seed), [], 0
    for step in range(2000):
        now_s = step * 0.05
        while ends and ends[0] <= now_s:
            heapq.heappop(ends)
            slots.free(1, now_s)
        due = slots.due(now_s)
        assert all(due_s <= now_s for due_s in due)
        issued += len(due)
        for _ in due:
            heapq.heappush(ends, now_s + draw.expovariate(1.0))
        assert len(ends) <= schedule.most_in_flight
        if not slots.over(now_s) and len(levels) == 1:
            assert len(ends) == sum(change for at_s, change in schedule.changes() if at_s <= now_s)
        if slots.over(now_s):
            break
    assert issued == slots.issued
    assert runs is None or issued <= runs


def test_a_stage_is_due_when_all_runs_of_the_former_are_over():
    slots = ConcurrencyLimiter(Concurrency((), runs=6, stages=(2, 3, 1)))
    assert slots.due(1.0) == [0.0, 0.0]
    slots.free(1, 4.0)
    assert slots.due(5.0) == [], "one is still in flight"
    slots.free(1, 6.0)
    assert slots.due(5.9) == []
    assert slots.due(7.0) == [6.0, 6.0, 6.0]
    slots.free(3, 8.0)
    assert not slots.over(8.0)
    assert slots.due(8.0) == [8.0]
    slots.free(1, 9.0)
    assert slots.over(9.0)
    assert slots.due(10.0) == []


def test_the_limit_on_runs_holds_for_stages():
    slots = ConcurrencyLimiter(Concurrency((), runs=4, stages=(2, 2)), limit=3)
    slots.due(0.0)
    slots.free(2, 1.0)
    assert slots.due(2.0) == [1.0]
    assert slots.over(2.0)


def test_a_slot_that_gets_free_when_the_time_is_up_stays_free_in_short_tests_too():
    slots = ConcurrencyLimiter(Concurrency((Level(1, 0.5),)))
    assert slots.due(0.0) == [0.0]
    slots.free(1, 0.5)
    assert slots.due(1.0) == []


def test_a_look_at_which_nothing_ended_does_not_delay_the_next_stage():
    slots = ConcurrencyLimiter(Concurrency((), runs=2, stages=(1, 1)))
    slots.due(0.0)
    slots.free(1, 3.0)
    slots.free(0, 5.0)
    assert slots.due(5.0) == [3.0]
