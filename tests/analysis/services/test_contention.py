"""Cores that executions share are estimated from their computing times alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.services.contention import NONE, Contention, shared


def on_cores(came, work, cores):
    """When each ends, if `cores` are shared evenly by all that compute: simulated from event to event."""
    came, left = np.asarray(came, dtype=float), np.array(work, dtype=float)
    ends, now = np.full(left.size, np.nan), 0.0
    while np.isnan(ends).any():
        here = (came <= now) & np.isnan(ends)
        speed = min(1.0, cores / max(int(here.sum()), 1))
        next_end = now + left[here].min() / speed if here.any() else np.inf
        next_start = came[came > now].min(initial=np.inf)
        until = min(next_end, next_start)
        left[here] -= speed * (until - now)
        now = until
        if next_end <= next_start:
            done = np.flatnonzero(here)[np.argmin(left[here])]
            ends[done] = now
    return ends


def drawn(seed, count=120, sigma=0.5, load=1.5):
    """Arrivals and work for about `load` cores."""
    random = np.random.default_rng(seed)
    work = random.lognormal(0.0, sigma, count)
    return np.sort(random.uniform(0.0, work.sum() / load, count)), work


def test_the_simulated_sharing_is_that_of_two_jobs_on_a_core():
    """The second comes at 1 s: both run at half speed from then on; the first has 1 s of work left, the second 3 s."""
    assert on_cores([0.0, 1.0], [2.0, 3.0], 1.0) == pytest.approx([3.0, 5.0])


@pytest.mark.parametrize("cores", [1.0, 2.0, 4.0, 8.0])
def test_the_cores_and_what_their_lack_costs_are_found(cores):
    """As exactly as some hundred executions can tell: the median of several tests is right."""
    estimates = []
    for seed in range(7):
        came, work = drawn(seed, load=1.3 * cores)
        ends = on_cores(came, work, cores)
        found = shared(came, ends)
        assert found.p < 1e-6
        assert found.lost == pytest.approx(1 - work.sum() / (ends - came).sum(), abs=0.07)
        estimates.append(found.cores)
    assert np.median(estimates) == pytest.approx(cores, rel=0.15)


def test_with_cores_for_all_it_looks_like_a_lack_as_seldom_as_p_says():
    found = np.array([shared(came, came + work).p for came, work in (drawn(seed, load=4.0) for seed in range(400))])
    assert 0.02 < np.mean(found < 0.05) < 0.09
    assert not np.any(found < 1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_the_unit_of_time_does_not_matter(scale):
    came, work = drawn(1, load=3.0)
    ends = on_cores(came, work, 2.0)
    one, other = shared(came, ends), shared(scale * came, scale * ends)
    assert (other.cores, other.lost) == pytest.approx((one.cores, one.lost))
    assert other.p == pytest.approx(one.p, rel=1e-3)


def test_executions_that_never_overlap_share_nothing():
    came = np.arange(40.0)
    assert shared(came, came + 0.9) == NONE


def test_few_say_nothing():
    came, work = drawn(2, count=19, load=3.0)
    assert shared(came, on_cores(came, work, 1.0)) == NONE
    assert shared(np.empty(0), np.empty(0)) == NONE


def test_those_that_have_not_ended_or_took_no_time_do_not_count():
    came, work = drawn(3, load=3.0)
    ends = on_cores(came, work, 2.0)
    more = shared(np.append(came, [5.0, np.nan, 7.0]), np.append(ends, [np.nan, 9.0, 7.0]))
    assert more == shared(came, ends)


@given(
    st.lists(st.tuples(st.floats(0.0, 1e5), st.floats(0.0, 1e4)), min_size=0, max_size=60),
)
def test_whatever_was_recorded_it_is_a_probability_and_a_share(intervals):
    start = np.array([begin for begin, _ in intervals])
    found = shared(start, start + np.array([length for _, length in intervals]))
    assert 0 <= found.p <= 1
    assert -1e-9 <= found.lost < 1
    assert found.cores >= 1


@pytest.mark.parametrize(
    ("cores", "p", "likely"), [(12.0, 3e-3, True), (12.0, 7e-3, False), (3.0, 3e-3, False), (3.0, 5e-4, True)]
)
def test_weaker_signs_suffice_where_many_compute_at_once(cores, p, likely):
    assert Contention(cores, 0.3, p).likely is likely
