import pytest

from harness.drive.recording.end_rate import EndRate


def after(*looks):
    """The rate at the last of `looks`: seconds after t0, and how many runs had ended."""
    rate = EndRate()
    return [rate.per_s(*look) for look in looks][-1]


def test_nothing_has_ended_yet():
    assert after((0.5, 0), (90.0, 0)) is None


def test_in_the_first_minute_it_is_the_mean_since_the_first_end():
    assert after((10.0, 1), (20.0, 1), (40.0, 8)) == pytest.approx(7 / 30)
    assert after((0.01, 2)) == 2.0


@pytest.mark.parametrize("lasts_s", [1, 30, 55, 100, 300])
@pytest.mark.parametrize("since_s", [5, 20, 59, 60, 61, 90])
def test_even_arrivals_end_at_their_own_rate_from_the_first_end_on(lasts_s, since_s):
    """Ten a second, each of which lasts as long: before the first end there was nothing that could have ended."""
    looks = [(float(k), 10 * max(0, k - lasts_s + 1)) for k in range(1, lasts_s + since_s + 1)]
    assert after(*looks) == pytest.approx(10.0)


def test_later_it_is_that_of_the_last_minute_whatever_was_before():
    """Ten a second for a minute, then one."""
    fast = [(float(k), 10 * k) for k in range(1, 61)]
    slow = [(60.0 + k, 600 + k) for k in range(1, 91)]
    assert after(*fast, *slow[:60]) == pytest.approx(1.0)
    assert after(*fast, *slow) == pytest.approx(1.0)
    assert after(*fast, *slow[:30]) == pytest.approx((30 + 300) / 60)


def test_ends_that_are_seen_rarely_count_since_the_look_before():
    """Listed every two minutes: 40 ended by the first listing, 20 more by the second."""
    looks = [(120.0, 40), (150.0, 40), (180.0, 40), (200.0, 40), (240.0, 60)]
    assert after(*looks) == pytest.approx(20 / 60)
    assert after(*looks, (310.0, 60)) == pytest.approx(20 / (310 - 120))


def test_ends_of_a_single_moment_count_since_the_first_arrival():
    assert after((120.0, 40), (310.0, 40)) == pytest.approx(40 / 310)


def test_a_test_in_which_nothing_ends_any_more_gets_slower():
    still = [(60.0, 1), (61.0, 2), *((float(k), 2) for k in range(62, 400, 2))]
    assert after(*still[:-100]) > after(*still) > 0
