"""Requests that are made before they are due: sent at their time, and booked once, whatever happens meanwhile."""

import gevent
import gevent.event
import pytest

from harness.drive.dispatch import lookahead
from harness.drive.dispatch.loop import Clock, Dispatcher
from harness.drive.http.client import Message
from harness.model import Outcome, Scenario
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.scenario import Arrival
from harness.targets.target import RejectedError

SOON_S = 0.05


class Client:
    """Makes requests ahead, and remembers what happened in which order."""

    def __init__(self):
        self.told = []
        self.answers = gevent.event.Event()
        self.answers.set()

    def render(self, request):
        self.told.append(("rendered", request.body))
        return Message(request.body, request.method)

    def write(self, message):
        self.told.append(("written", message.content))

    def finish(self, message):
        self.answers.wait()
        self.told.append(("finished", message.content))
        return HttpAnswer(200, b"")

    def __call__(self, request):
        self.told.append(("sent", request.body))
        return HttpAnswer(200, b"")

    def of(self, what):
        return [content for name, content in self.told if name == what]


class Platform:
    submits_ahead = True

    def submit(self, scenario, exchange):
        answer = exchange(HttpRequest("POST", "/", scenario.id.encode()))
        if answer.status != 200:
            raise RejectedError(answer.status, "")
        return f"run-{scenario.id}"


def dispatch(count, client, *, due_s=SOON_S, apart_s=0.0, most=1000, target=None, meanwhile=None, in_advance=True):
    """The rows of so many arrivals, by seq; `meanwhile` runs beside, with the dispatcher."""
    rows, clock = [], Clock()
    dispatcher = Dispatcher(
        target or Platform(), client, rows.append, worker=0, max_in_flight=most, clock=clock, source="platform"
    )
    t0_at = clock.now() + round(due_s * 1e9)
    arrivals = [Arrival(k, t0_at + round(k * apart_s * 1e9), Scenario(str(k), "s", {}, {})) for k in range(count)]
    beside = gevent.spawn(meanwhile, dispatcher) if meanwhile else None
    with gevent.Timeout(60):
        dispatcher.run(iter(arrivals), in_advance=in_advance)
    clock.close()
    if beside:
        beside.get()
    assert sorted(row.seq for row in rows) == list(range(count)), "each arrival is booked exactly once"
    return sorted(rows, key=lambda row: row.seq)


def test_of_a_burst_every_request_is_made_first_then_all_are_written_and_then_answers_are_read():
    client = Client()
    rows = dispatch(100, client)
    bodies = {str(k).encode() for k in range(100)}
    assert [name for name, _ in client.told] == ["rendered"] * 100 + ["written"] * 100 + ["finished"] * 100
    assert set(client.of("rendered")) == set(client.of("finished")) == bodies
    assert client.of("written") == [str(k).encode() for k in range(100)]
    assert all(row.outcome is Outcome.ACCEPTED for row in rows)
    assert all(row.due_at <= row.sent_at <= row.answered_at for row in rows)


def test_nothing_is_written_before_it_is_due_nor_made_more_than_a_second_early():
    client = Client()
    seen = []

    def look(_):
        gevent.sleep(0.2)
        seen.append(list(client.told))

    dispatch(3, client, due_s=0.5, apart_s=0.9, meanwhile=look)
    assert seen == [[("rendered", b"0")]]  # the next one is due in 1.2 s
    assert client.of("written") == [b"0", b"1", b"2"]


@pytest.mark.parametrize("at_once", [False, True])
def test_what_waits_for_its_time_when_the_test_is_stopped_is_missed_and_never_written(at_once):
    client = Client()

    def stop(dispatcher):
        gevent.sleep(0.1)
        dispatcher.stop("enough", at_once=at_once)

    rows = dispatch(5, client, due_s=0.5, meanwhile=stop)
    assert client.of("rendered")
    assert not client.of("written")
    assert {(row.outcome, row.error, row.sent_at) for row in rows} == {(Outcome.MISSED, "enough", None)}


def test_what_was_written_and_not_answered_when_the_test_ends_at_once_is_unanswered():
    client = Client()
    client.answers.clear()

    def stop(dispatcher):
        while len(client.of("written")) < 5:
            gevent.sleep(0.01)
        dispatcher.stop("enough", at_once=True)

    rows = dispatch(5, client, meanwhile=stop)
    assert {(row.outcome, row.status, row.answered_at) for row in rows} == {(Outcome.REJECTED, None, None)}
    assert all(row.sent_at is not None and "no answer" in row.error for row in rows)


def test_a_stop_between_the_write_and_the_wake_up_loses_nothing():
    """The dispatcher is stopped by its own record of a missed arrival, before any written one could go on."""
    client, rows, clock = Client(), [], Clock()
    client.answers.clear()

    def record(row):
        rows.append(row)
        dispatcher.stop("enough", at_once=True)

    dispatcher = Dispatcher(Platform(), client, record, worker=0, max_in_flight=3, clock=clock, source="platform")
    t0_at = clock.now() + 50_000_000
    with gevent.Timeout(60):
        dispatcher.run([Arrival(k, t0_at, Scenario(str(k), "s", {}, {})) for k in range(5)], in_advance=True)
    clock.close()
    outcomes = [row.outcome for row in sorted(rows, key=lambda row: row.seq)]
    assert outcomes == [Outcome.REJECTED] * 3 + [Outcome.MISSED] * 2


def test_arrivals_beyond_the_limit_in_flight_are_missed_and_never_written():
    client = Client()
    client.answers.clear()
    gevent.spawn_later(0.3, client.answers.set)
    rows = dispatch(10, client, most=3)
    assert [row.outcome for row in rows] == [Outcome.ACCEPTED] * 3 + [Outcome.MISSED] * 7
    assert client.of("written") == [b"0", b"1", b"2"]


class Broken(Platform):
    def submit(self, scenario, exchange):
        if scenario.id == "1":
            raise KeyError(scenario.id)
        if scenario.id == "2":
            raise RejectedError(422, "never asked")
        return super().submit(scenario, exchange)


def test_what_goes_wrong_in_advance_is_booked_when_it_was_due(capsys):
    rows = dispatch(3, Client(), target=Broken())
    assert [row.outcome for row in rows] == [Outcome.ACCEPTED, Outcome.MISSED, Outcome.REJECTED]
    assert rows[2].answered_at >= rows[2].due_at
    assert "KeyError" in capsys.readouterr().err


class Twice(Platform):
    def submit(self, scenario, exchange):
        super().submit(scenario, exchange)
        exchange(HttpRequest("PUT", "/", b"again"))
        return "run"


def test_a_second_request_is_sent_at_once():
    client = Client()
    dispatch(1, client, target=Twice())
    assert client.told == [("rendered", b"0"), ("written", b"0"), ("finished", b"0"), ("sent", b"again")]


class Plain:
    submit = Platform.submit


@pytest.mark.parametrize(("target", "in_advance"), [(Plain(), True), (Platform(), False)])
def test_without_the_capability_or_the_knowledge_nothing_is_made_in_advance(target, in_advance):
    client = Client()
    dispatch(3, client, target=target, in_advance=in_advance)
    assert client.told == [("sent", b"0"), ("sent", b"1"), ("sent", b"2")]


@pytest.mark.parametrize(("bound", "value"), [("_MOST_REQUESTS", 7), ("_MOST_BYTES", 10), ("_UNKNOWN", 2**22)])
def test_the_number_and_the_bytes_of_what_waits_are_bounded(bound, value, monkeypatch):
    monkeypatch.setattr(lookahead, bound, value)
    client, seen = Client(), []

    def look(_):
        gevent.sleep(0.02)  # after the first time that the dispatcher fills up
        seen.append(len(client.told))

    rows = dispatch(40, client, due_s=0.3, apart_s=0.002, meanwhile=look)
    assert seen[0] < 12
    assert all(row.outcome is Outcome.ACCEPTED for row in rows)
