"""Hours on a simulated clock: the real dispatcher and ledger, at 10/s for one, at 20/s for six, a platform that stalls."""

import os
import random
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import gevent
import numpy as np
import orjson
import pytest

from harness.drive.dispatch.loop import Clock, Dispatcher
from harness.drive.recording.ledger import Ledger
from harness.drive.session.status_reporter import History
from harness.model import Event, Outcome, Plan, Scenario, Submission
from harness.model.http import HttpAnswer
from harness.model.live.state import LiveLoad
from harness.model.phases import SUCCEEDED
from harness.model.schedules import Constant
from harness.plan.assignment import Assignment
from harness.store import RunFolder

T0_AT = 1_700_000_000 * 10**9
RATE, HOUR_S = 10.0, 3600.0
ARRIVALS, STALLED = 36_000, 60


@dataclass
class SimulatedClock:
    """Time that passes when somebody sleeps, always a little longer than asked for, and while requests are made."""

    at: int = T0_AT - 10**9
    late: random.Random = field(default_factory=lambda: random.Random(7))

    def now(self):
        return self.at

    def sleep(self, seconds):
        gevent.sleep(0)  # what is ready happens now
        self.at += round(seconds * 1e9) + int(self.late.random() * 1.5e6)

    def pass_by(self, ns):
        self.at += ns


class Platform:
    """Answers at once, except for six seconds, of which it answers everything at the end."""

    def __init__(self, clock, stalls_s):
        self._clock = clock
        self._stalls_s = stalls_s
        self._ready = gevent.event.Event()
        self.waiting = 0

    def exchange(self, _):
        self._clock.pass_by(40_000)
        since_s = (self._clock.now() - T0_AT) / 1e9 - self._stalls_s
        if 0 <= since_s < 6:
            self.waiting += 1
            self._ready.wait()
        elif since_s >= 6:
            self._ready.set()
        return HttpAnswer(200, b"")

    def submit(self, scenario, exchange):
        exchange(None)
        return scenario.run_name


@dataclass
class Hour:
    rows: list
    ledger: Ledger
    platform: Platform
    most_in_flight: int

    def lags_ms(self):
        return np.array([(row.sent_at - row.due_at) / 1e6 for row in self.rows])


def hours(place, rate, seconds, look=lambda folder, ledger: None):
    """A load of that long; `look` is called every five minutes of it."""
    clock = SimulatedClock()
    platform = Platform(clock, seconds / 2)
    offsets = array("d", Constant(rate, seconds).offsets(7))
    folder = RunFolder.create(place, "hours")
    plan = Plan("jobs", "http://h", {}, len(offsets), 7, simulated=False)
    order = Assignment("hours", plan, [Scenario(str(k), "s", {}, {}) for k in range(500)], offsets, T0_AT)
    most = 0
    with folder.recorder() as recorder:
        ledger = Ledger(recorder, len(offsets))

        def record(one):
            nonlocal most
            ledger.book(one)
            ledger.end(Event(one.answered_at, "Run", one.run, SUCCEEDED))
            if (one.seq + 1) % (rate * 300) == 0:
                look(folder, ledger)
            most = max(most, dispatcher.in_flight)

        dispatcher = Dispatcher(
            platform, platform.exchange, record, worker=0, max_in_flight=1000, clock=clock, source="jobs"
        )
        dispatcher.run(order.arrivals())
    return folder, ledger, platform, most


@pytest.fixture(scope="module")
def hour(tmp_path_factory):
    folder, ledger, platform, most = hours(tmp_path_factory.mktemp("hour"), RATE, HOUR_S)
    return Hour(sorted(folder.records(Submission), key=lambda row: row.seq), ledger, platform, most)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_six_hours_at_20_a_second_take_constant_memory_and_linear_space(tmp_path):
    """432,000 arrivals, each in the ledger once."""
    memory, sizes, views, history = [], [], [], History()

    def look(folder, ledger):
        counts = ledger.counts
        history.add(LiveLoad("sending", counts=counts), {}, now_s=300.0 * len(sizes))
        memory.append(resident_mib())
        sizes.append(sum(each.stat().st_size for each in folder.path.glob("*.jsonl")))
        views.append(len(orjson.dumps(LiveLoad("sending", counts=counts).to_mapping())))

    folder, ledger, _, _ = hours(tmp_path, 20.0, 6 * HOUR_S, look)
    seen = np.zeros(432_000, dtype=np.uint8)
    for row in folder.records(Submission):
        seen[row.seq] += 1
        assert row.outcome is Outcome.ACCEPTED
    assert (seen == 1).all()
    assert (ledger.counts.intended, ledger.counts.done, ledger.counts.in_flight) == (432_000, 432_000, 0)
    assert len(sizes) == 72
    assert max(memory[6:]) < 1.1 * memory[6], memory
    assert np.diff(sizes) == pytest.approx(sizes[0], rel=0.05), "as much space in the last five minutes as in the first"
    assert max(views) - min(views) < 50
    assert len(history.columns()["at_s"]) <= 720


def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_every_arrival_of_the_hour_is_in_the_ledger_once(hour):
    assert [row.seq for row in hour.rows] == list(range(ARRIVALS))
    assert {row.outcome for row in hour.rows} == {Outcome.ACCEPTED}
    counts = hour.ledger.counts
    assert (counts.intended, counts.done, counts.in_flight) == (ARRIVALS, ARRIVALS, 0)


def test_an_hour_drifts_less_than_a_millisecond(hour):
    """Each sleep is too long by up to 1.5 ms: a dispatcher that sleeps from arrival to arrival ends half a minute late."""
    lags = hour.lags_ms()
    minute = round(60 * RATE)
    assert abs(lags[-minute:].mean() - lags[:minute].mean()) < 0.1
    slope_ms = np.polyfit(np.arange(lags.size) / lags.size, lags, 1)[0]
    assert abs(slope_ms) < 0.1, "lag does not grow over the hour"
    assert lags.max() < 3.0
    assert abs((hour.rows[-1].sent_at - hour.rows[0].sent_at) / 1e6 - (HOUR_S - 1 / RATE) * 1e3) < 2.0


def test_a_stall_of_six_seconds_delays_no_arrival_and_latency_counts_from_the_due_time(hour):
    due = np.array([(row.due_at - T0_AT) / 1e9 - HOUR_S / 2 for row in hour.rows])
    inside = (due >= 0) & (due < 6)
    assert inside.sum() == STALLED
    assert hour.lags_ms()[inside].max() < 3.0
    assert hour.platform.waiting == pytest.approx(STALLED, abs=1)
    latencies_s = np.array([(row.answered_at - row.due_at) / 1e9 for row in hour.rows])
    np.testing.assert_allclose(latencies_s[inside], 6 - due[inside], atol=1.5 / RATE)


def test_memory_does_not_grow_with_the_test(hour):
    assert hour.most_in_flight == pytest.approx(STALLED + 1, abs=2), "the stall's, and nothing else"
    assert not hour.ledger._open
    assert not hour.ledger._ended_first


def test_the_clock_ignores_jumps_of_the_wall_clock(monkeypatch):
    clock = Clock()
    before = clock.now()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert 0 <= clock.now() - before < 10**9


def test_a_clock_that_is_ahead_is_corrected(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 10**18)
    monkeypatch.setattr("time.monotonic_ns", lambda: 7)
    assert Clock().now() - Clock(ahead_ns=5 * 10**9).now() == 5 * 10**9
