import tempfile
from array import array
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import gevent
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.drive.workers import load_generator
from harness.drive.workers.cluster import DistributedGenerator, _ClockOffset
from harness.drive.workers.delivery import CLOCK, CLOCK_IS, GO, KEPT, MORE, ROWS, STOP
from harness.drive.workers.load_generator import UnwritableError
from harness.model import ConfigError, Outcome, PipeswarmError, Plan, Scenario, Submission
from harness.model.phases import GENERATOR_CPU
from harness.model.records import Sample
from harness.plan.assignment import Assignment
from harness.store.folder import encode
from harness.store.spools import Origin, Spool, spool_path
from harness.targets.credentials import Credentials
from harness.targets.target import RejectedError

SCENARIOS = [Scenario(str(k), "s", {"rows": k}, {}) for k in range(3)]
PLAN = Plan("kfp", "http://h", {"name": "burst"}, 3, 7, simulated=True, target_options={"experiment": "e"})


def assignment(offsets=(0.0, 0.5, 0.5)):
    return Assignment("run", PLAN, SCENARIOS, array("d", offsets), 10**18)


@given(st.lists(st.floats(0, 100), max_size=60).map(sorted), st.integers(1, 7))
def test_stripes_hold_every_arrival_exactly_once(offsets, count):
    whole = assignment(offsets)
    stripes = [list(whole.stripe(index, count).arrivals()) for index in range(count)]
    together = sorted((a for one in stripes for a in one), key=lambda a: a.seq)
    assert together == list(whole.arrivals())
    assert [a.due_at for a in together] == [10**18 + round(o * 1e9) for o in offsets]
    assert len({a.scenario.run_name for a in together}) == len(offsets), "run names are distinct"
    assert max(map(len, stripes)) - min(map(len, stripes)) <= 1


def test_an_assignment_survives_locusts_messages():
    sent = assignment().stripe(1, 2)
    received = Assignment.unpack(msgpack.loads(msgpack.dumps(sent.pack())))
    assert list(received.arrivals()) == list(sent.arrivals())
    assert received.plan.limits == PLAN.limits
    assert received.plan.target_options == PLAN.target_options


def test_an_assignment_of_another_version_is_refused():
    with pytest.raises(ConfigError, match=r"the master is Pipeswarm 0\.0"):
        Assignment.unpack({**assignment().pack(), "version": "0.0"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "0" * 64}, "kfp differs between"),
        ({"t0_at": 5}, "differs from the one that was sent"),
        ({"offsets": b""}, "sent"),
    ],
)
def test_an_assignment_that_differs_from_what_was_sent_is_refused(change, said):
    with pytest.raises(ConfigError, match=said):
        Assignment.unpack({**assignment().pack(), **change})


class Echo:
    """A platform that repeats in its error what it was sent."""

    def submit(self, scenario, exchange):  # a target's signature
        raise RejectedError(400, f"bad key {scenario.values['key']}; token t0ken-of-mine")


def test_hidden_values_are_redacted_from_the_platforms_errors(monkeypatch):
    monkeypatch.setattr(load_generator, "find", lambda _: SimpleNamespace(from_plan=lambda _: Echo()))
    scenarios = [Scenario("1", "s", {"key": "s3cret-key"}, {"key": "s3cret-key"})]
    plan = replace(PLAN, redact=("key",))
    hidden = Assignment("run", plan, scenarios, array("d", [0.0]), 0, hidden=("s3cret-key",))
    rows = []
    load_generator.Worker(hidden, Credentials("t0ken-of-mine"), rows.append).run()
    (row,) = [row for row in rows if isinstance(row, Submission)]
    assert row.error == "bad key ***; token ***"


class Runner:
    """The part of the master's runner that a generator uses."""

    def __init__(self, *ids):
        self.clients = {id_: SimpleNamespace(id=id_, state="ready") for id_ in ids}
        self.sent = []

    def send_message(self, kind, data, client):
        self.sent.append((kind, client, data))


def row(seq):
    return encode(Submission(seq, "s", "n", 0, 0, 0, Outcome.ACCEPTED, f"r{seq}", 0, 200, None))


class Books:
    """What the generator tells its test; a full disk takes nothing."""

    def __init__(self):
        self.lines, self.lost, self.late, self.full = [], [], [], False

    def book_lines(self, lines):
        if self.full:
            raise UnwritableError
        if b"outcome" in lines:
            self.lines.append(lines)
        return lines.count(b"outcome")

    def worker_lost(self, *who):
        self.lost.append(who)

    def rows_late(self, *who):
        self.late.append(who)


TEST = "0123abcd"


@pytest.fixture
def spooled(tmp_path, monkeypatch):
    """Writes a worker's spool; returns the spool, which is locked as long as it is not closed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def spool(worker, lines, start=0, dead=True):
        spool = Spool(spool_path(TEST, worker), Origin(TEST, "run", worker, start))
        spool.append(lines)
        if dead:
            spool.close()
        return spool

    return spool


def generating(*ids):
    runner, books = Runner(*ids), Books()
    generator = DistributedGenerator(TEST, runner, books)
    generator.start(assignment())
    return generator, runner, books


def rows(client, at, lines, *, over=False, error=""):
    data = {"test": TEST, "at": at, "lines": lines, "over": over, "error": error}
    return SimpleNamespace(node_id=client, type=ROWS, data=data)


def told(runner, kind, client):
    return [data for sent, who, data in runner.sent if (sent, who) == (kind, client)]


def test_each_worker_gets_its_own_stripe(spooled):
    _, runner, _ = generating("a", "b")
    stripes = [Assignment.unpack(data) for kind, _, data in runner.sent if kind == GO]
    assert [(o.index, o.count, list(o.offsets)) for o in stripes] == [(0, 2, [0.0, 0.5]), (1, 2, [0.5])]


def test_it_is_finished_when_every_worker_has_delivered_everything(spooled):
    generator, runner, books = generating("a", "b")
    generator.receive(rows("a", 0, row(0)))
    generator.receive(rows("a", len(row(0)), b"", over=True))
    assert not generator.finished()
    generator.receive(rows("b", 0, b"", over=True))
    assert generator.finished()
    assert (books.lines, books.lost) == ([row(0)], [])
    assert [(data["upto"], data["over"]) for data in told(runner, KEPT, "a")] == [
        (len(row(0)), False),
        (len(row(0)), True),
    ]


def test_rows_that_are_sent_again_are_booked_once_and_those_after_a_gap_not_at_all(spooled):
    generator, runner, books = generating("a")
    first, second = row(0), row(1)
    generator.receive(rows("a", len(first), second, over=True))  # the first message was lost
    assert not generator.finished()
    generator.receive(rows("a", 0, first))
    generator.receive(rows("a", 0, first + second, over=True))
    assert books.lines == [first, second]
    assert [data["upto"] for data in told(runner, KEPT, "a")] == [0, len(first), len(first + second)]
    assert generator.finished()


def test_what_could_not_be_written_is_not_acknowledged(spooled):
    generator, runner, books = generating("a")
    books.full = True
    with pytest.raises(UnwritableError):
        generator.receive(rows("a", 0, row(0), over=True))
    assert told(runner, KEPT, "a") == []
    assert not generator.finished()


def test_a_dead_workers_spool_is_read_from_where_its_messages_ended(spooled):
    generator, runner, books = generating("a", "b")
    generator.receive(rows("b", 0, row(1)))
    spool = spooled(1, row(1) + row(3) + row(5)[:10])
    runner.clients["b"].state = "missing"
    generator.receive(rows("a", 0, b"", over=True))
    assert generator.finished()
    assert (books.lines, books.lost, books.late) == ([row(1), row(3)], [(1, "b", 0)], [])
    assert not spool.path.exists()


def test_of_a_spool_that_began_anew_nothing_is_booked_twice(spooled):
    generator, runner, books = generating("a")
    generator.receive(rows("a", 0, row(1) + row(3)))
    spooled(0, row(3) + row(5), start=len(row(1)))
    runner.clients["a"].state = "missing"
    generator.finished()
    assert books.lines == [row(1) + row(3), row(5)]


def test_a_worker_that_comes_back_is_told_to_stop_and_its_late_rows_are_booked_once(spooled):
    generator, runner, books = generating("a", "b")
    first, second, third = row(1), row(3), row(5)
    generator.receive(rows("b", 0, first))
    spool = spooled(1, first + second, dead=False)
    runner.clients["b"].state = "missing"
    generator.finished()
    assert books.lines == [first, second], "its spool is here"
    assert spool.path.exists(), "it lives: the spool is its own"
    runner.clients["b"].state = "running"
    generator.receive(rows("b", len(first), second + third))
    assert "given up" in told(runner, STOP, "b")[-1]["why"]
    generator.receive(rows("b", len(first + second + third), b"", over=True))
    assert books.lines == [first, second, third]
    assert books.lost == [(1, "b", 0)]
    assert books.late == [(1, "b", 1)]
    assert told(runner, KEPT, "b")[-1] == {
        "test": TEST,
        "upto": len(first + second + third),
        "over": True,
        "unwanted": False,
    }


def test_the_spool_of_a_dead_worker_stays_while_the_run_folder_takes_nothing(spooled):
    generator, runner, books = generating("a")
    spool, books.full = spooled(0, row(0)), True
    runner.clients["a"].state = "missing"
    generator.finished()
    assert spool.path.exists()
    assert books.lost == [(0, "a", 0)]


def test_a_spool_of_another_test_is_left_alone(spooled, tmp_path):
    generator, runner, books = generating("a")
    path = spool_path(TEST, 0)
    Spool(path, Origin("ffff", "run", 0)).append(row(0))
    runner.clients["a"].state = "missing"
    assert generator.finished()
    assert books.lines == []
    assert path.exists()


def test_a_worker_that_locust_dropped_is_lost_too(spooled):
    generator, runner, books = generating("a")
    del runner.clients["a"]
    assert generator.finished()
    assert books.lost == [(0, "a", 0)]


def test_a_worker_that_refuses_ends_the_test(spooled):
    generator, _, _ = generating("a")
    generator.receive(rows("a", 0, b"", over=True, error="another version"))
    with pytest.raises(PipeswarmError, match="another version"):
        generator.finished()


def test_stopping_tells_every_busy_worker(spooled):
    generator, runner, _ = generating("a", "b")
    generator.receive(rows("a", 0, b"", over=True))
    generator.stop("enough")
    generator.stop("enough", at_once=True)
    assert told(runner, STOP, "a") == []
    assert [(data["why"], data["at_once"]) for data in told(runner, STOP, "b")] == [("enough", False), ("enough", True)]


def test_rows_of_an_unknown_worker_are_not_booked(spooled):
    generator, _, books = generating("a")
    generator.receive(rows("stranger", 0, row(0)))
    assert books.lines == []


def test_a_worker_that_connects_later_gets_nothing(spooled):
    generator, runner, books = generating("a")
    runner.clients["late"] = SimpleNamespace(id="late", state="ready")
    generator.send([(0, 0.0), (1, 0.1)], last=True)
    generator.stop("enough")
    assert {client for _, client, _ in runner.sent} == {"a"}
    generator.receive(rows("late", 0, row(0)))
    assert books.lines == []


def test_without_a_worker_there_is_an_error(spooled):
    with pytest.raises(PipeswarmError, match="no worker is connected"):
        generating()


def test_a_worker_is_told_how_far_its_clock_is_ahead(spooled):
    """A worker whose clock is five seconds ahead and whose answers take a while: the quickest answer counts."""
    runner = Runner("a")
    generator = DistributedGenerator(TEST, runner, Books())

    def answer(kind, data, client):
        runner.sent.append((kind, client, data))
        if kind == CLOCK:
            ahead = {**data, "here": data["sent"] + 5 * 10**9}
            generator.receive(SimpleNamespace(node_id=client, type=CLOCK_IS, data=ahead))

    runner.send_message = answer
    assert generator.sync_clocks()[0] == pytest.approx(5.0, abs=0.1)
    generator.start(assignment())
    (sent,) = [Assignment.unpack(data) for kind, _, data in runner.sent if kind == GO]
    assert sent.ahead_ns / 1e9 == pytest.approx(5.0, abs=0.1)
    generator.stop("enough")


@pytest.mark.parametrize("order", [(90, 10, 90, 90, 90), (10, 90, 90, 90, 90), (90, 90, 90, 90, 10)])
def test_of_several_clock_answers_the_quickest_counts_wherever_it_comes(order):
    """All of a round trip's delay is on the way there: the answer is wrong by half of it."""
    clock = _ClockOffset()
    for trip in order:
        clock.update(sent_at=1000, there_at=1000 + 5 * 10**9 + trip, received_at=1000 + trip)
    assert (clock.answers, clock.round_trip_ns, clock.ahead_ns) == (5, 10, 5 * 10**9 + 5)


def test_closed_arrivals_are_dealt_in_turn_and_counted_as_lost_with_their_worker(spooled):
    generator, runner, books = generating("a", "b")
    generator.send([(0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3)])
    dealt = {client: [seq for seq, _ in data["dues"]] for kind, client, data in runner.sent if kind == MORE}
    assert dealt == {"a": [0, 2], "b": [1, 3]}
    generator.receive(rows("a", 0, row(0)))
    runner.clients["a"].state = "missing"
    generator.finished()
    assert books.lost == [(0, "a", 1)]
    generator.send([(4, 0.4), (5, 0.5)], last=True)
    assert [data for kind, client, data in runner.sent if kind == MORE][-1]["dues"] == [(4, 0.4), (5, 0.5)]


@pytest.mark.parametrize(
    ("offsets", "lead_s"), [([], 1.0), (range(0, 100, 10), 1.003), ([0.0] * 400, 2.2), ([0.0] * 9000, 4.0)]
)
def test_a_burst_is_announced_early_enough_to_open_its_connections(offsets, lead_s):
    assert load_generator.lead_s(offsets) == pytest.approx(lead_s)


def test_the_cpu_use_of_a_process_is_recorded(monkeypatch):
    used, passed = count(0.0, 0.25), count(0.0, 1.0)
    clock = SimpleNamespace(process_time=lambda: next(used), monotonic=lambda: next(passed), time_ns=lambda: 7)
    monkeypatch.setattr(load_generator, "time", clock)
    monkeypatch.setattr(load_generator, "_CPU_EVERY_S", 0.001)
    samples = []
    watching = gevent.spawn(load_generator.watch_cpu, "3", samples.append)
    while not samples:
        gevent.sleep(0.001)
    watching.kill()
    assert samples[0] == Sample(GENERATOR_CPU, 7, 0.25, {"worker": "3"})
