from array import array
from types import SimpleNamespace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.drive import crew
from harness.drive.crew import GO, STOP, Order, RemoteCrew
from harness.model import ConfigError, Outcome, PipeswarmError, Plan, Scenario, Submission
from harness.store.folder import encode

SCENARIOS = [Scenario(str(k), "s", {"rows": k}, {}) for k in range(3)]
PLAN = Plan("kfp", "http://h", {"name": "burst"}, 3, 7, simulated=True, target_options={"experiment": "e"})


def order(offsets=(0.0, 0.5, 0.5)):
    return Order("run", PLAN, SCENARIOS, array("d", offsets), 10**18)


@given(st.lists(st.floats(0, 100), max_size=60).map(sorted), st.integers(1, 7))
def test_stripes_hold_every_arrival_exactly_once(offsets, count):
    whole = order(offsets)
    stripes = [list(whole.stripe(index, count).arrivals()) for index in range(count)]
    together = sorted((a for one in stripes for a in one), key=lambda a: a.seq)
    assert together == list(whole.arrivals())
    assert [a.due_at for a in together] == [10**18 + round(o * 1e9) for o in offsets]
    assert len({a.scenario.run_name for a in together}) == len(offsets), "run names are distinct"
    assert max(map(len, stripes)) - min(map(len, stripes)) <= 1


def test_an_order_survives_locusts_messages():
    sent = order().stripe(1, 2)
    received = Order.unpack(msgpack.loads(msgpack.dumps(sent.pack())))
    assert list(received.arrivals()) == list(sent.arrivals())
    assert received.plan.limits == PLAN.limits
    assert received.plan.target_options == PLAN.target_options


def test_an_order_of_another_version_is_refused():
    with pytest.raises(ConfigError, match=r"the master is Pipeswarm 0\.0"):
        Order.unpack({**order().pack(), "version": "0.0"})


class Runner:
    """The master's runner as far as a crew knows it."""

    def __init__(self, *ids):
        nodes = {id_: SimpleNamespace(id=id_, state="ready") for id_ in ids}
        self.clients = type("Clients", (dict,), {"ready": list(nodes.values()), "running": []})(nodes)
        self.sent = []

    def send_message(self, kind, data, client):
        self.sent.append((kind, client, data))


def row(seq):
    return encode(Submission(seq, "s", "n", 0, 0, 0, Outcome.ACCEPTED, f"r{seq}", 0, 200, None))


@pytest.fixture
def spooled(tmp_path, monkeypatch):
    monkeypatch.setattr(crew.tempfile, "gettempdir", lambda: str(tmp_path))
    return lambda index: crew.spool("run", index)


def staffed(*ids):
    booked, lost = [], []
    runner = Runner(*ids)
    remote = RemoteCrew(runner, booked.append, lambda *who: lost.append(who))
    remote.start(order())
    return remote, runner, booked, lost


def message(client, **data):
    return SimpleNamespace(node_id=client, data=data)


def test_each_worker_gets_its_own_stripe(spooled):
    _, runner, _, _ = staffed("a", "b")
    stripes = [Order.unpack(data) for kind, _, data in runner.sent if kind == GO]
    assert [(o.index, o.count, list(o.offsets)) for o in stripes] == [(0, 2, [0.0, 0.5]), (1, 2, [0.5])]


def test_the_crew_is_finished_when_every_worker_says_so(spooled):
    remote, _, booked, lost = staffed("a", "b")
    remote.on_rows(message("a", lines=row(0)))
    remote.on_done(message("a", error=""))
    assert not remote.finished()
    remote.on_done(message("b", error=""))
    assert remote.finished()
    assert (booked, lost) == ([row(0)], [])


def test_a_dead_workers_spool_is_read_from_where_its_messages_ended(spooled):
    remote, runner, booked, lost = staffed("a", "b")
    remote.on_rows(message("b", lines=row(1)))
    spooled(1).write_bytes(row(1) + row(3) + row(5)[:10])
    runner.clients["b"].state = "missing"
    remote.on_done(message("a", error=""))
    assert remote.finished()
    assert (booked, lost) == ([row(1), row(3)], [(1, "b")])
    assert not spooled(1).exists()


def test_a_worker_that_locust_forgot_is_lost_too(spooled):
    remote, runner, _, lost = staffed("a")
    del runner.clients["a"]
    assert remote.finished()
    assert lost == [(0, "a")]


def test_a_worker_that_refuses_ends_the_test(spooled):
    remote, _, _, _ = staffed("a")
    remote.on_done(message("a", error="another version"))
    with pytest.raises(PipeswarmError, match="another version"):
        remote.finished()


def test_stopping_tells_every_busy_worker(spooled):
    remote, runner, _, _ = staffed("a", "b")
    remote.on_done(message("a", error=""))
    remote.stop()
    assert [client for kind, client, _ in runner.sent if kind == STOP] == ["b"]


def test_rows_of_a_stranger_are_not_booked(spooled):
    remote, _, booked, _ = staffed("a")
    remote.on_rows(message("stranger", lines=row(0)))
    assert booked == []
