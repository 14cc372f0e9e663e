"""A worker with a scripted master and a scripted platform: orders don't mix, and no record is lost with its master."""

import tempfile
from array import array
from types import SimpleNamespace

import gevent
import orjson
import pytest

from harness.drive import load_generator
from harness.drive.cluster_messages import GO, KEPT, MORE, ROWS, STOP
from harness.drive.delivery import MASTER_LOST_S
from harness.drive.worker_orders import WorkerEndpoint
from harness.model import Plan, Scenario
from harness.plan.assignment import Assignment
from harness.store.spools import leftovers, lines_from, spool_path
from harness.targets.credentials import Credentials

FIRST, SECOND = "aaaa", "bbbb"
LATER = 4e9  # seconds after 1970


class Platform:
    """Answers when it is told to."""

    def __init__(self):
        self.asked, self.answers = [], gevent.event.Event()

    def submit(self, scenario, exchange):  # a target's signature
        self.asked.append(scenario.run_name)
        self.answers.wait()
        return f"run-{scenario.run_name}"


class Master:
    """Locust's runner on the worker, and behind it a master that acknowledges what it receives, unless it is dead."""

    def __init__(self):
        self.handlers, self.streams, self.over, self.dead = {}, {}, {}, False
        hears = SimpleNamespace(add_listener=lambda hear: setattr(self, "heartbeat", hear))
        self.environment = SimpleNamespace(events=SimpleNamespace(heartbeat_received=hears))

    def register_message(self, kind, handler):
        self.handlers[kind] = handler

    def say(self, kind, **data):
        self.handlers[kind](msg=SimpleNamespace(data=data))

    def send_message(self, kind, data):
        if kind != ROWS or self.dead:
            return
        stream = self.streams.setdefault(data["test"], bytearray())
        stream[data["at"] :] = data["lines"]
        self.over[data["test"]] = data["over"] or self.over.get(data["test"])
        gevent.spawn(self.say, KEPT, test=data["test"], upto=len(stream), over=data["over"], unwanted=False)

    def order(self, test, dues=(), **schedule):
        plan = Plan("kfp", "http://127.0.0.1:9", schedule or {"name": "burst"}, len(dues), 7, simulated=True, id=test)
        scenarios = [Scenario(test, test, {}, {})]
        self.handlers[GO](msg=SimpleNamespace(data=Assignment("r", plan, scenarios, array("d", dues), 0).pack()))

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
    endpoint = WorkerEndpoint(master, lambda host: Credentials(), lambda row: None)
    endpoint.register()
    yield endpoint, master, platform
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


def test_a_worker_that_ends_books_its_open_requests_and_hands_them_over(worker):
    endpoint, master, platform = worker
    master.order(FIRST, [0.0, LATER])
    until(lambda: platform.asked)
    endpoint.close(0.1)
    until(lambda: [outcome for _, outcome, _ in master.rows(FIRST)] == ["rejected", "missed"])


def test_without_its_master_a_worker_stops_keeps_its_spool_and_names_it(worker, monkeypatch, capsys):
    endpoint, master, platform = worker
    master.order(FIRST, [0.0, LATER])
    until(lambda: platform.asked)
    master.dead = True
    endpoint._heard_s -= MASTER_LOST_S
    platform.answers.set()
    until(lambda: "pipeswarm recover" in capsys.readouterr().err)
    spool = spool_path(FIRST, 0)
    (accepted, missed) = rows_in(lines_from(spool, FIRST, 0, 0))
    assert accepted == (0, "accepted", None)
    assert missed[1:] == ("missed", "the worker had lost its master: no sign of life for 7 s")
    assert leftovers(FIRST) == [], "the worker still holds it"
    endpoint.close(0.1)
    assert spool.exists()
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
    assert f"pipeswarm recover runs/r {spool_path(FIRST, 0)}" in capsys.readouterr().err


def test_an_assignment_it_can_t_carry_out_is_refused_in_the_name_of_its_test(worker, monkeypatch):
    _, master, _ = worker
    sent = []
    monkeypatch.setattr(master, "send_message", lambda kind, data: sent.append((kind, data)))
    assignment = Assignment("r", Plan("kfp", "h", {}, 0, 7, simulated=True, id=FIRST), [], array("d"), 0)
    master.handlers[GO](msg=SimpleNamespace(data={**assignment.pack(), "version": "0.0"}))
    ((kind, data),) = sent
    assert (kind, data["test"], data["over"]) == (ROWS, FIRST, True)
    assert "this worker" in data["error"]
