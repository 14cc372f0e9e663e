"""A worker with a scripted master and a scripted platform: orders don't mix, and no record is lost with its master."""

import tempfile
import time
from array import array
from types import SimpleNamespace

import gevent
import orjson
import pytest

from harness.drive.session_messages import STOPPED
from harness.drive.workers import load_generator
from harness.drive.workers.delivery import CLOCK, CLOCK_IS, GO, KEPT, MASTER_LOST_S, MORE, ROWS, STOP
from harness.drive.workers.orders import WorkerEndpoint
from harness.model import Plan, Scenario
from harness.plan.assignment import Assignment
from harness.store.spools import leftovers, lines_from, spool_path
from harness.targets.credentials import Credentials
from harness.targets.target import RejectedError

FIRST, SECOND = "aaaa", "bbbb"
HOST = "http://127.0.0.1:9"
TOKENS = {HOST: "opensesame"}
LATER = 4e9  # seconds after 1970


class Platform:
    """Answers when it is told to, or refuses."""

    def __init__(self):
        self.asked, self.answers, self.refusal = [], gevent.event.Event(), None

    def submit(self, scenario, exchange):  # a target's signature
        self.asked.append(scenario.run_name)
        self.answers.wait()
        if self.refusal is not None:
            raise self.refusal
        return f"run-{scenario.run_name}"


class Master:
    """Locust's runner on the worker, and behind it a master that acknowledges what it receives, unless it is dead.

    One that is slow has written but the first record.
    """

    def __init__(self):
        self.handlers, self.streams, self.over, self.errors, self.clocks = {}, {}, {}, {}, []
        self.dead = self.slow = False
        hears = SimpleNamespace(add_listener=lambda hear: setattr(self, "heartbeat", hear))
        self.environment = SimpleNamespace(events=SimpleNamespace(heartbeat_received=hears))

    def register_message(self, kind, handler):
        self.handlers[kind] = handler

    def say(self, kind, **data):
        self.handlers[kind](msg=SimpleNamespace(data=data))

    def send_message(self, kind, data):
        if kind == CLOCK_IS:
            self.clocks.append(data)
        if kind != ROWS or self.dead:
            return
        stream = self.streams.setdefault(data["test"], bytearray())
        stream[data["at"] :] = data["lines"]
        self.over[data["test"]] = data["over"] or self.over.get(data["test"])
        self.errors[data["test"]] = data["error"]
        upto = stream.find(b"\n") + 1 if self.slow else len(stream)
        gevent.spawn(self.say, KEPT, test=data["test"], upto=upto, over=data["over"], unwanted=False)

    def beat(self):
        while True:
            if not self.dead:
                self.heartbeat()
            gevent.sleep(0.5)

    def order(self, test, dues=(), *, with_credentials=False, **schedule):
        plan = Plan("kfp", HOST, schedule or {"name": "burst"}, len(dues), 7, simulated=True, id=test)
        assignment = Assignment(
            "/runs/r", plan, [Scenario(test, test, {}, {})], array("d", dues), 0, with_credentials=with_credentials
        )
        self.handlers[GO](msg=SimpleNamespace(data=assignment.pack()))

    def rows(self, test):
        return rows_in(self.streams.get(test, b""))


def rows_in(lines):
    rows = [orjson.loads(line) for line in bytes(lines).splitlines()]
    return sorted((row["seq"], row["outcome"], row["error"]) for row in rows if "outcome" in row)


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A registered endpoint, its master and its platform."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    platform, master = Platform(), Master()
    monkeypatch.setattr(load_generator, "find", lambda _: SimpleNamespace(from_plan=lambda _: platform))
    endpoint = WorkerEndpoint(master, lambda host: Credentials(TOKENS[host]), lambda row: None)
    endpoint.register()
    heart = gevent.spawn(master.beat)
    yield endpoint, master, platform
    heart.kill()
    platform.answers.set()
    endpoint.close(1.0)


def until(true):
    with gevent.Timeout(30):
        while not true():
            gevent.sleep(0.01)


def test_an_order_is_over_when_the_master_has_every_record_and_its_spool_is_gone(worker):
    _, master, platform = worker
    platform.answers.set()
    master.order(FIRST, [0.0, 0.0])
    until(lambda: master.over.get(FIRST) and not spool_path(FIRST, 0).exists())
    assert master.rows(FIRST) == [(0, "accepted", None), (1, "accepted", None)]


def test_a_pause_of_the_whole_machine_is_no_silence_of_the_master(worker, monkeypatch):
    endpoint, master, platform = worker
    master.order(FIRST, [0.0, LATER])
    until(lambda: platform.asked)
    now_s = time.monotonic
    master.heartbeat = lambda: None  # what was sent before the pause is not read yet
    monkeypatch.setattr("harness.drive.workers.orders.time", SimpleNamespace(monotonic=lambda: now_s() + 60))
    platform.answers.set()
    until(lambda: master.rows(FIRST))
    assert master.rows(FIRST) == [(0, "accepted", None)]
    assert not endpoint._orders[FIRST]._stopped, "the other arrival is still to come"


def test_two_orders_at_one_worker_have_each_their_own_rows_queue_and_spool(worker):
    """Stop twice, Start: the first order still waits for its answers while the second is carried out."""
    _, master, platform = worker
    master.order(FIRST, [0.0, 0.0, LATER])
    until(lambda: len(platform.asked) == 2)
    master.say(STOP, test=FIRST, why="enough", at_once=False)
    master.order(SECOND, name="concurrency", model="closed")
    master.say(MORE, test=SECOND, dues=[(0, 0.0), (1, 0.0)], last=True)
    master.order(SECOND)  # a message that comes twice
    until(lambda: len(platform.asked) == 4)
    until(spool_path(FIRST, 0).exists)  # with the missed arrival in it
    platform.answers.set()
    until(lambda: master.over.get(FIRST) and master.over.get(SECOND))
    assert master.rows(FIRST) == [(0, "accepted", None), (1, "accepted", None), (2, "missed", "enough")]
    assert master.rows(SECOND) == [(0, "accepted", None), (1, "accepted", None)]


def test_open_requests_are_unanswered_when_the_test_ends_at_once(worker):
    _, master, platform = worker
    master.order(FIRST, [0.0, 0.0])
    until(lambda: len(platform.asked) == 2)
    master.say(STOP, test=FIRST, why="enough", at_once=True)
    until(lambda: master.over.get(FIRST))
    assert {error for _, _, error in master.rows(FIRST)} == {"no answer before the test was ended"}


def test_a_worker_that_ends_books_its_open_requests_and_hands_them_over(worker, capsys):
    endpoint, master, platform = worker
    master.order(FIRST, [0.0, LATER])
    until(lambda: platform.asked)
    endpoint.close(0.1)
    assert master.rows(FIRST) == [(0, "rejected", "no answer before the test was ended"), (1, "missed", STOPPED)]
    assert master.over[FIRST]
    assert capsys.readouterr().err == "", "nothing is left to recover"


def test_without_its_master_a_worker_stops_keeps_its_spool_and_names_it(worker, monkeypatch, capsys):
    endpoint, master, platform = worker
    master.order(FIRST, [0.0, LATER])
    until(lambda: platform.asked)
    master.dead = True
    endpoint._heard_s -= MASTER_LOST_S
    platform.answers.set()
    said = []
    until(lambda: said.append(capsys.readouterr().err) or "pipeswarm recover" in "".join(said))
    spool = spool_path(FIRST, 0)
    (accepted, missed) = rows_in(lines_from(spool, FIRST, 0, 0))
    assert accepted == (0, "accepted", None)
    assert missed[1:] == ("missed", "the worker had lost its master: no sign of life for 7 s")
    assert leftovers(FIRST) == [], "the worker still holds it"
    endpoint.close(0.1)
    assert spool.exists()
    said.append(capsys.readouterr().err)
    assert "".join(said).count("sending is stopped: the worker had lost its master") == 1
    assert "".join(said).count("pipeswarm recover") == 1
    master.dead = False
    master.heartbeat()
    until(lambda: master.over.get(FIRST) and not spool.exists())
    assert len(master.rows(FIRST)) == 2, "a master that comes back gets them"


def test_a_master_that_does_not_know_the_test_gets_nothing_and_the_spool_is_left_for_recover(worker, capsys):
    _, master, platform = worker
    master.dead = True
    platform.answers.set()
    master.order(FIRST, [0.0])
    until(lambda: platform.asked)
    master.say(KEPT, test=FIRST, upto=0, over=False, unwanted=True)
    until(lambda: leftovers(FIRST))
    assert rows_in(lines_from(spool_path(FIRST, 0), FIRST, 0, 0)) == [(0, "accepted", None)]
    assert f"pipeswarm recover /runs/r {spool_path(FIRST, 0)}" in capsys.readouterr().err


def test_an_assignment_it_can_t_carry_out_is_refused_in_the_name_of_its_test(worker, monkeypatch):
    _, master, _ = worker
    sent = []
    monkeypatch.setattr(master, "send_message", lambda kind, data: sent.append((kind, data)))
    assignment = Assignment("r", Plan("kfp", "h", {}, 0, 7, simulated=True, id=FIRST), [], array("d"), 0)
    master.handlers[GO](msg=SimpleNamespace(data={**assignment.pack(), "version": "0.0"}))
    master.handlers[GO](msg=SimpleNamespace(data={**assignment.pack(), "version": "0.0", "plan": {}}))
    error = sent[0][1]["error"]
    assert "this worker" in error
    empty = {"at": 0, "lines": b"", "over": True, "error": error}
    assert sent == [(ROWS, {"test": FIRST, **empty}), (ROWS, {"test": "", **empty})]


def test_a_closed_schedule_goes_on_after_the_master_has_all_records_so_far(worker, capsys):
    _, master, platform = worker
    platform.answers.set()
    master.order(FIRST, name="concurrency", model="closed")
    for seq in range(3):
        master.say(MORE, test=FIRST, dues=[(seq, 0.0)], last=seq == 2)
        until(lambda: len(master.rows(FIRST)) == seq + 1)  # noqa: B023  # called at once
    until(lambda: master.over[FIRST] and not spool_path(FIRST, 0).exists())
    assert {row[1:] for row in master.rows(FIRST)} == {("accepted", None)}
    assert (master.errors[FIRST], capsys.readouterr().err) == ("", "")


def test_records_that_the_master_has_not_written_stay_in_the_spool(worker):
    _, master, platform = worker
    master.slow = True
    platform.answers.set()
    master.order(FIRST, [0.0, 0.0])
    until(lambda: master.over.get(FIRST))
    gevent.sleep(0.1)  # for the answer to the last message
    assert spool_path(FIRST, 0).exists()
    master.slow = False
    master.say(KEPT, test=FIRST, upto=len(master.streams[FIRST]), over=True, unwanted=False)
    until(lambda: not spool_path(FIRST, 0).exists())


def test_a_test_that_is_over_may_be_ordered_again(worker):
    _, master, platform = worker
    platform.answers.set()
    for times in (1, 2):
        master.order(FIRST, [0.0])
        until(lambda: len(platform.asked) == times and not spool_path(FIRST, 0).exists())  # noqa: B023  # called at once


def test_why_a_worker_could_not_send_is_told_to_the_master(worker, monkeypatch):
    _, master, _ = worker
    monkeypatch.setattr(load_generator, "sends_per_s", lambda: 1 / 0)
    master.order(FIRST, [0.0])
    until(lambda: master.over.get(FIRST))
    assert "ZeroDivisionError" in master.errors[FIRST]


@pytest.mark.parametrize(
    ("given", "told"), [(True, "the token is wrong: ***"), (False, "the token is wrong: opensesame")]
)
def test_credentials_are_those_of_the_host_and_only_where_the_master_has_some_for_it(worker, given, told):
    """A secret that is known is not recorded."""
    _, master, platform = worker
    platform.refusal = RejectedError(401, "the token is wrong: opensesame")
    platform.answers.set()
    master.order(FIRST, [0.0], with_credentials=given)
    until(lambda: master.over.get(FIRST))
    assert master.rows(FIRST) == [(0, "rejected", told)]


def test_a_worker_that_ends_without_its_master_does_not_wait_for_answers(worker):
    endpoint, master, platform = worker
    master.order(FIRST, [0.0, LATER])
    until(lambda: platform.asked)
    master.dead = True
    endpoint._heard_s -= MASTER_LOST_S
    endpoint.close(600.0)
    missed, unanswered = sorted(rows_in(lines_from(spool_path(FIRST, 0), FIRST, 0, 0)), reverse=True)
    assert (missed[1:], unanswered[1:]) == (
        ("missed", STOPPED), ("rejected", "no answer before the test was ended"),
    )  # fmt: skip
    master.say(KEPT, test=FIRST, upto=0, over=False, unwanted=True)  # it ends now


def test_a_worker_says_what_time_it_is(worker):
    _, master, _ = worker
    before = time.time_ns()
    master.say(CLOCK, test=FIRST, sent=5)
    (answer,) = master.clocks
    assert (answer["test"], answer["sent"]) == (FIRST, 5)
    assert before - 10**9 < answer["here"] < time.time_ns() + 10**9
