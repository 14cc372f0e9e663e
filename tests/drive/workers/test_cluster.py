"""The master's routing: records of its test, of one that is over, of an earlier master's, and of nobody's."""

import json
import tempfile
from types import SimpleNamespace

import gevent
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.drive.workers import cluster as module
from harness.drive.workers.cluster import Cluster
from harness.drive.workers.delivery import CLOCK_IS, KEPT, ROWS
from harness.drive.workers.load_generator import LedgerClosedError, UnwritableError
from harness.model import Event, Outcome, Plan, Submission
from harness.model.errors import ExitCode
from harness.store import RunFolder
from harness.store.claims import Claim
from harness.store.folder import encode
from harness.store.spools import Origin, Spool, leftovers, spool_path
from tests.support.mutations import WEIRD

TEST = "0123abcd"


class Runner:
    def __init__(self):
        self.clients = {"a": SimpleNamespace(id="a", state="ready")}
        self.handlers, self.sent = {}, []

    def register_message(self, kind, handler):
        self.handlers[kind] = handler

    def send_message(self, kind, data, client):
        self.sent.append((kind, client, data))

    def rows(self, test, lines, *, over=False, sender="a"):
        self.say(ROWS, {"test": test, "at": 0, "lines": lines, "over": over, "error": ""}, sender)

    def say(self, kind, data, sender="a"):
        self.handlers[kind](msg=SimpleNamespace(type=kind, node_id=sender, data=data))

    def kept(self):
        return [(data["upto"], data["over"], data["unwanted"]) for kind, _, data in self.sent if kind == KEPT]


class Books:
    def __init__(self, error=None):
        self.lines, self.error = [], error

    def book_lines(self, lines):
        if self.error is not None:
            raise self.error
        self.lines.append(lines)
        return lines.count(b"outcome")


def row(seq):
    return encode(Submission(seq, "s", "n", 1, 2, 3, Outcome.ACCEPTED, f"r{seq}", 0, 200, None))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = RunFolder.create(tmp_path / "runs", "r")
    folder.write_plan(Plan("kfp", "h", {"name": "burst"}, 2, 7, simulated=True, id=TEST))
    return folder


@pytest.fixture
def reported(monkeypatch):
    """The folders whose report was written again."""
    reported = []
    monkeypatch.setattr(module.processes, "report", lambda path: reported.append(path) or (ExitCode.OK, ""))
    return reported


def recorded(folder):
    return [row.seq for row in folder.records(Submission)]


def test_rows_go_to_the_test_they_name(folder, reported):
    runner, books = Runner(), Books()
    cluster = Cluster(runner, folder.path.parent)
    cluster.generator(TEST, folder, books)
    runner.rows(TEST, row(0))
    runner.say(CLOCK_IS, {"test": TEST, "sent": 1, "here": 2})
    assert books.lines == [row(0)]
    assert recorded(folder) == []


def test_rows_of_a_test_that_is_over_are_added_to_its_folder_and_its_report_is_written_again(folder, reported):
    runner = Runner()
    cluster = Cluster(runner, folder.path.parent)
    cluster.generator(TEST, folder, Books(LedgerClosedError()))
    runner.rows(TEST, row(0))
    runner.rows(TEST, row(0))
    assert reported == []
    runner.rows(TEST, row(0) + row(1), over=True)
    gevent.sleep(0)
    assert recorded(folder) == [0, 1]
    assert runner.kept() == [(len(row(0)), False, False)] * 2 + [(len(row(0) + row(1)), True, False)]
    assert reported == [folder.path]
    assert {event.message[:24] for event in folder.records(Event)} == {"1 arrivals of worker a w"}


@pytest.mark.fault("none")
def test_while_a_folder_is_in_use_or_can_t_be_written_the_worker_keeps_its_rows(folder, reported):
    for error in (LedgerClosedError(), UnwritableError()):
        runner = Runner()
        Cluster(runner, folder.path.parent).generator(TEST, folder, Books(error))
        with Claim(folder.path):
            runner.rows(TEST, row(0))
    assert runner.kept() == []
    assert recorded(folder) == []


@pytest.mark.attack("Answers and messages of the network")
@pytest.mark.parametrize(
    ("test", "sender", "kept"),
    [("ffff", "a", [(0, False, True)]), (TEST, "stranger", [])],
    ids=["other test", "stranger"],
)
def test_rows_that_are_not_of_a_tests_own_workers_are_left_to_their_sender(folder, reported, test, sender, kept):
    runner = Runner()
    Cluster(runner, folder.path.parent).generator(TEST, folder, Books(LedgerClosedError()))
    runner.rows(test, row(0), over=True, sender=sender)
    assert runner.kept() == kept
    assert recorded(folder) == []


@pytest.mark.fault("none")
def test_a_new_master_adds_the_spools_of_dead_workers_and_leaves_the_others(folder, reported, capsys):
    held = Spool(spool_path(TEST, 2), Origin(TEST, "r", 2))
    held.append(row(5))
    for test, worker in ((TEST, 0), (TEST, 1), ("ffff", 0)):
        spool = Spool(spool_path(test, worker), Origin(test, "r", worker))
        spool.append(row(worker))
        spool.close()
    Cluster(Runner(), folder.path.parent).recover_leftovers()
    gevent.sleep(0)
    assert sorted(recorded(folder)) == [0, 1]
    assert leftovers() == [spool_path("ffff", 0)]
    assert set(reported) == {folder.path}
    assert capsys.readouterr().err.count("1 arrivals recovered") == 2


def test_a_spool_that_can_t_be_added_stays_and_is_named(folder, reported, capsys):
    spool = Spool(spool_path(TEST, 0), Origin(TEST, "r", 0))
    spool.append(row(0))
    spool.close()
    with Claim(folder.path):
        Cluster(Runner(), folder.path.parent).recover_leftovers()
    assert spool.path.exists()
    assert f"the spool {spool.path} stays" in capsys.readouterr().err


@pytest.mark.attack("Answers and messages of the network")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from([ROWS, CLOCK_IS]), data=st.data())
def test_a_malformed_message_of_a_worker_is_refused_and_nothing_of_it_is_booked(folder, capsys, kind, data):
    honest = {
        ROWS: {"test": TEST, "at": 0, "lines": row(0) + row(1), "over": False, "error": ""},
        CLOCK_IS: {"test": TEST, "sent": 1, "here": 2},
    }[kind]
    name = data.draw(st.sampled_from(list(honest)))
    forged = data.draw(st.one_of(
        st.sampled_from([None, [], 7, "x"]),
        st.sampled_from([*WEIRD, -1, 1.5, b"{}", b'{"outcome":1}\n', row(0)[:-9], b"[" * 100_000]).map(
            lambda value: {**honest, name: value}
        ),
        st.just({each: value for each, value in honest.items() if each != name}),
    ))  # fmt: skip
    runner, books = Runner(), Books()
    Cluster(runner, folder.path.parent).generator(TEST, folder, books)
    for _ in range(3):
        runner.say(kind, forged)
    assert all(json.loads(line)["seq"] in {0, 1} for lines in books.lines for line in lines.splitlines())
    assert capsys.readouterr().err.count("1 message of worker a ignored") <= 1
