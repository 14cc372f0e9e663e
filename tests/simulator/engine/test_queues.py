"""Stations against the formulas of queueing theory."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.engine.distributions import Exponential, Fixed, Lognormal
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing, TokenBucket


def test_events_run_in_order_of_time_and_then_of_scheduling() -> None:
    loop, seen = EventLoop(), []
    loop.at(2.0, seen.append, "late")
    loop.at(1.0, seen.append, "first")
    loop.at(1.0, seen.append, "second")
    loop.run(1.5)
    assert (seen, loop.now, loop.next_at) == (["first", "second"], 1.5, 2.0)
    loop.run()
    assert (seen[-1], loop.now) == ("late", 2.0)


def test_an_event_scheduled_for_the_past_runs_now() -> None:
    loop, seen = EventLoop(), []
    loop.at(5.0, lambda: loop.at(1.0, lambda: seen.append(loop.now)))
    loop.run()
    assert seen == [5.0]


@pytest.mark.parametrize(
    ("arrivals", "waits"),
    [
        ([0.0] * 12, [0.0] * 10 + [0.2, 0.4]),  # the burst, then one every 1/5 s
        ([0.0] * 11 + [10.0], [0.0] * 10 + [0.2, 0.0]),  # it fills up again
        ([0.0, 0.1, 0.2], [0.0, 0.0, 0.0]),
    ],
)
def test_a_token_bucket_of_five_a_second_and_burst_ten(arrivals: list[float], waits: list[float]) -> None:
    bucket = TokenBucket(5.0, 10)
    assert [bucket.take(at) - at for at in arrivals] == pytest.approx(waits)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.floats(0.5, 20), st.integers(1, 10))
def test_a_token_bucket_never_gives_more_than_burst_plus_rate_times_time(
    gaps: list[float], rate: float, burst: int
) -> None:
    bucket, now, granted = TokenBucket(rate, burst), 0.0, []
    for gap in gaps:
        now += gap
        granted.append(bucket.take(now))
    assert granted == sorted(granted)  # first come, first served
    for index, start in enumerate(granted):
        for later, end in enumerate(granted[index:], index):
            assert later - index + 1 <= burst + rate * (end - start) + 1e-6


@pytest.mark.parametrize("service", [Exponential(0.7), Fixed(0.7), Lognormal(0.4, 1.97)], ids=["M", "D", "lognormal"])
def test_processor_sharing_needs_only_the_mean_of_the_service_time(service: object) -> None:
    """M/G/1-PS: the mean time in the system is E[S] / (1 - rho), whatever the distribution (Kleinrock II, 4.4)."""
    loop, random, spent = EventLoop(), Random(5), []
    station = ProcessorSharing(loop, 1.0)

    def arrive(left: int) -> None:
        begun = loop.now
        station.add(service.sample(random), 1.0, lambda: spent.append(loop.now - begun))  # type: ignore[attr-defined]
        if left:
            loop.after(random.expovariate(1.0), arrive, left - 1)

    arrive(60_000)
    loop.run()
    mean = service.mean  # type: ignore[attr-defined]
    assert sum(spent) / len(spent) == pytest.approx(mean / (1 - mean), rel=0.06)


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 5), st.floats(0.1, 3)), min_size=1, max_size=25),
    st.floats(0.5, 4),
)
def test_shared_capacity_does_all_work_and_never_more_than_it_can(
    jobs: list[tuple[float, float, float]], capacity: float
) -> None:
    loop, ends = EventLoop(), {}
    station = ProcessorSharing(loop, capacity)
    for number, (at, alone_s, demand) in enumerate(jobs):
        loop.at(at, lambda n=number, a=alone_s, d=demand: station.add(a, d, lambda: ends.setdefault(n, loop.now)))
    loop.run()
    assert len(ends) == len(jobs)
    assert station.jobs == 0
    assert station.demand == 0
    assert station.work == pytest.approx(sum(alone_s * demand for _, alone_s, demand in jobs))
    for number, (at, alone_s, _) in enumerate(jobs):
        assert ends[number] >= at + alone_s - 1e-6
    # Work is conserved: with every demand at least the capacity, the station works at full capacity while busy.
    if all(demand >= capacity for _, _, demand in jobs):
        free_at = 0.0
        for at, alone_s, demand in sorted(jobs):
            free_at = max(free_at, at) + alone_s * demand / capacity
        assert max(ends.values()) == pytest.approx(free_at, abs=1e-5)


def test_a_removed_job_frees_its_share() -> None:
    loop, ends = EventLoop(), []
    station = ProcessorSharing(loop, 1.0)
    station.add(1.0, 1.0, lambda: ends.append(loop.now))
    other = station.add(10.0, 1.0, lambda: ends.append(-1.0))
    loop.run(1.0)
    assert station.work_of(other) == pytest.approx(0.5)
    station.remove(other)
    loop.run()
    assert ends == [pytest.approx(1.5)]
    assert station.work == pytest.approx(1.5)


def test_less_capacity_slows_down_running_jobs() -> None:
    loop, ends = EventLoop(), []
    station = ProcessorSharing(loop, 2.0)
    station.add(4.0, 2.0, lambda: ends.append(loop.now))
    loop.run(2.0)
    station.capacity = 0.5
    loop.run()
    assert ends == [pytest.approx(2.0 + 2.0 * 4)]
