"""Sleeps by a timer of the kernel, and by the event loop's where there is none."""

import time
from pathlib import Path

import gevent
import pytest

from harness.drive.dispatch import fine_timer
from harness.drive.dispatch.fine_timer import FineTimer

OPEN = Path("/proc/self/fd")


class NoTimers:
    """The C library of another system."""


@pytest.fixture(params=["kernel", "loop"])
def timer(request, monkeypatch):
    if request.param == "loop":
        monkeypatch.setattr(fine_timer.ctypes, "CDLL", lambda *_, **__: NoTimers())
    made = FineTimer()
    yield made
    made.close()


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-10, 0.004, 0.0123])
def test_it_sleeps_no_less_than_asked_and_lets_others_go_on(timer, seconds):
    others = gevent.spawn(lambda: "done")
    for _ in range(2):
        began_s = time.monotonic()
        timer.sleep(seconds)
        assert time.monotonic() - began_s >= seconds
    assert others.ready()


def test_a_sleeper_can_be_interrupted_and_sleep_again(timer):
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.01):
        timer.sleep(60.0)
    timer.sleep(0.001)


def test_its_descriptor_is_given_back(timer):
    before = len(list(OPEN.iterdir()))
    more = FineTimer()
    more.sleep(0.001)
    more.close()
    more.close()
    assert len(list(OPEN.iterdir())) == before
