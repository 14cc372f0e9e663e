from types import SimpleNamespace

import gevent
import gevent.event
import pytest

from harness.drive.dispatch.loop import Clock, Dispatcher, most_at_once
from harness.model import Outcome, Scenario
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import COMPUTING, RUN
from harness.model.scenario import Arrival
from harness.model.trace_ids import TRACEPARENT, traceparent
from harness.targets.completed_run import CompletedRun
from harness.targets.target import RejectedError


class Platform:
    """A target whose answers a test decides."""

    def submit(self, scenario, exchange):
        answer = exchange(HttpRequest("POST", "/", scenario.id.encode()))
        if answer.status != 200:
            raise RejectedError(answer.status, answer.body.decode())
        return f"run-{scenario.id}"


def arrivals(count, clock, spacing_s=0.001):
    t0_at = clock.now()
    return [
        Arrival(k, t0_at + round(k * spacing_s * 1e9), Scenario(str(k), "s", {}, {}, f"tenant-{k % 2}"))
        for k in range(count)
    ]


def dispatch(count, exchange, **more):
    rows = []
    clock = Clock()
    dispatcher = Dispatcher(
        Platform(),
        exchange,
        rows.append,
        worker=0,
        max_in_flight=more.pop("max_in_flight", 1000),
        clock=clock,
        source="platform",
        trace=more.pop("trace", ""),
    )
    more.pop("before", lambda _: None)(dispatcher)
    dispatcher.run(arrivals(count, clock, **more))
    assert sorted(row.seq for row in rows) == list(range(count)), "each arrival is booked exactly once"
    return sorted(rows, key=lambda row: row.seq)


def answer(_):
    return HttpAnswer(200, b"")


def test_an_accepted_arrival_has_its_run():
    for row in dispatch(20, answer):
        assert (row.outcome, row.run, row.run_name) == (Outcome.ACCEPTED, f"run-{row.seq}", f"{row.seq}-s")
        assert row.due_at <= row.sent_at <= row.answered_at


@pytest.mark.parametrize(("at_once", "outcome"), [(1000, Outcome.ACCEPTED), (0, Outcome.MISSED)])
def test_every_row_names_the_tenant_of_its_scenario(at_once, outcome):
    rows = dispatch(4, answer, max_in_flight=at_once)
    assert [(row.tenant, row.outcome) for row in rows] == [(f"tenant-{k % 2}", outcome) for k in range(4)]


def test_a_stalled_platform_delays_no_arrival():
    """It is silent until the last of ten arrivals is there: all are sent when they are due."""
    last = gevent.event.Event()

    def stall(request):
        if request.body == b"9":
            last.set()
        assert last.wait(20), "an answer was waited for"
        return answer(request)

    rows = dispatch(10, stall, spacing_s=0.01)
    assert rows[-1].sent_at < rows[0].answered_at
    assert (rows[0].answered_at - rows[0].due_at) / 1e9 >= 0.09


@pytest.mark.parametrize(("spacing_s", "turns"), [(1.0, True), (0.02, True), (0.006, True), (0.004, False)])
def test_after_a_long_wait_it_spins_until_the_arrival_is_due(spacing_s, turns):
    """A timer wakes late, by the more the longer the core has slept; where arrivals are close that would cost a core."""

    class Told(Clock):
        """Time passes in the sleeps alone, and a little in each look at it."""

        at, slept = 10**18, ()

        def now(self):
            self.at += 100_000
            return self.at

        def sleep(self, seconds):
            self.slept = (*self.slept, seconds)
            self.at += round(seconds * 1e9)

    clock, rows = Told(), []
    means = {"worker": 0, "max_in_flight": 9, "clock": clock, "source": "platform"}
    Dispatcher(Platform(), answer, rows.append, **means).run(arrivals(3, clock, spacing_s))
    assert (0.0 in clock.slept) is turns
    assert all(row.sent_at >= row.due_at for row in rows)


def test_a_refused_submission_is_rejected_with_status_and_message():
    (row,) = dispatch(1, lambda _: HttpAnswer(503, b"overloaded"))
    assert (row.outcome, row.status, row.error, row.run) == (Outcome.REJECTED, 503, "overloaded", None)
    assert row.answered_at is not None


def test_a_submission_without_a_response_is_rejected_without_status_or_answer_time():
    def silence(_):
        raise TargetUnreachableError("timed out")

    (row,) = dispatch(1, silence)
    assert (row.outcome, row.status, row.answered_at) == (Outcome.REJECTED, None, None)
    assert row.sent_at is not None


@pytest.mark.parametrize(("sends", "outcome"), [(True, Outcome.REJECTED), (False, Outcome.MISSED)])
def test_a_bug_in_the_targets_code_loses_no_arrival(monkeypatch, capsys, sends, outcome):
    def submit(_, scenario, exchange):
        if sends:
            exchange(HttpRequest("POST", "/"))
        raise KeyError(scenario.id)

    monkeypatch.setattr(Platform, "submit", submit)
    rows = dispatch(3, answer)
    assert {(row.outcome, row.error) for row in rows} == {(outcome, f"KeyError: '{row.seq}'") for row in rows}
    assert all((row.sent_at is not None) is sends for row in rows)
    assert "KeyError" in capsys.readouterr().err, "its author sees where it was"


def test_arrivals_beyond_the_in_flight_limit_are_missed_not_delayed():
    rows = dispatch(10, answer, max_in_flight=3, spacing_s=0.0)  # before the first is answered all are due
    outcomes = [row.outcome for row in rows]
    assert outcomes == [Outcome.ACCEPTED] * 3 + [Outcome.MISSED] * 7
    assert all(row.sent_at is None and row.error for row in rows[3:])


def test_a_stop_books_the_remaining_arrivals_as_missed_at_once():
    rows = dispatch(5, answer, spacing_s=60.0, before=lambda d: gevent.spawn_later(0.05, d.stop))
    assert [row.outcome for row in rows] == [Outcome.ACCEPTED] + [Outcome.MISSED] * 4


def test_a_stop_at_once_books_open_requests_as_unanswered():
    """Two are sent and never answered, one has its answer, the last is not due yet."""
    asked = []

    def silence(request):
        asked.append(request.body)
        if request.body != b"0":
            gevent.sleep(1000)
        return answer(request)

    def stop(dispatcher):
        def when_sent():
            while len(asked) < 3:
                gevent.sleep(0.001)
            dispatcher.stop("enough", at_once=True)

        gevent.spawn(when_sent)

    first, *open_ones = dispatch(3, silence, before=stop)
    assert first.outcome is Outcome.ACCEPTED
    for row in open_ones:
        assert (row.outcome, row.run, row.status, row.answered_at) == (Outcome.REJECTED, None, None, None)
        assert row.sent_at is not None
        assert row.error == "no answer before the test was ended"


def test_an_arrival_that_has_not_left_when_all_is_ended_is_missed():
    """Arrivals due at once are all started before the first of them runs."""
    asked = []

    def ended(request):
        asked.append(request.body)
        dispatchers[0].stop("enough", at_once=True)
        gevent.sleep(1000)

    dispatchers = []
    rows = dispatch(4, ended, spacing_s=0.0, before=dispatchers.append)
    assert asked == [b"0"]
    assert [row.outcome for row in rows] == [Outcome.REJECTED] + [Outcome.MISSED] * 3
    assert {row.error for row in rows[1:]} == {"enough"}


@pytest.mark.parametrize(
    ("offsets", "most"), [([], 0), ([0.0] * 5, 5), ([0.0, 0.05, 0.1, 0.15, 0.3], 3), ([0, 1, 2], 1)]
)
def test_most_at_once_counts_the_densest_window(offsets, most):
    assert most_at_once(offsets) == most


def test_a_run_that_ends_with_its_response_is_booked_with_its_phases_and_end():
    class Synchronous:
        def submit(self, scenario, exchange):
            exchange(HttpRequest("POST", "/"))
            return CompletedRun(f"run-{scenario.id}", "FAILED", "boom", "t", ((COMPUTING, 0.001),))

    records = []
    clock = Clock()
    dispatcher = Dispatcher(
        Synchronous(), answer, records.append, worker=0, max_in_flight=10, clock=clock, source="service"
    )
    dispatcher.run(arrivals(1, clock))
    row, *rest = records
    assert (row.outcome, row.run, row.status, row.error) == (Outcome.ACCEPTED, "run-0", 200, None)
    *spans, end = rest
    assert (end.kind, end.object, end.reason, end.message, end.at) == (
        "Run",
        "run-0",
        "FAILED",
        "boom",
        row.answered_at,
    )
    assert {span.phase for span in spans} >= {RUN, COMPUTING}
    assert min(span.started_at for span in spans) == row.sent_at
    assert max(span.ended_at for span in spans) == row.answered_at


def test_a_clock_runs_on_where_the_wall_clock_steps_and_tells_each_step_once(monkeypatch):
    wall = SimpleNamespace(time_ns=lambda: wall.at, monotonic_ns=lambda: wall.ticks, at=10**18, ticks=5 * 10**9)
    monkeypatch.setattr("harness.drive.dispatch.loop.time", wall)
    clock = Clock(ahead_ns=2 * 10**9)
    assert (clock.now(), clock.stepped_s()) == (10**18 - 2 * 10**9, 0.0)
    wall.at, wall.ticks = wall.at + 31 * 10**9, wall.ticks + 10**9
    assert clock.now() == 10**18 - 10**9
    assert [clock.stepped_s(), clock.stepped_s()] == [pytest.approx(30.0), 0.0]
    wall.at -= 30 * 10**9
    assert clock.stepped_s() == pytest.approx(-30.0)
    wall.at += 4 * 10**8
    assert clock.stepped_s() == 0.0


@pytest.mark.parametrize("trace", ["", "the test"])
def test_requests_name_the_trace_of_their_arrival_where_that_is_asked_for(trace):
    seen = {}

    def exchange(request):
        seen[request.body] = dict(request.headers)
        return answer(request)

    dispatch(3, exchange, trace=trace)
    expected = [{TRACEPARENT: traceparent("the test", seq)} if trace else {} for seq in range(3)]
    assert [seen[str(seq).encode()] for seq in range(3)] == expected
