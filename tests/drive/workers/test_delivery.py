"""What a worker does with its records, as tables: the spool is a real file, time is passed in."""

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.drive.workers import delivery as module
from harness.drive.workers.delivery import MASTER_LOST_S, Batch, Delivery
from harness.store.spools import Origin, Spool, lines_from, spool_path

TEST = "0123abcd"
ONE, TWO, THREE = b'{"n": 1}\n', b'{"n": 22}\n', b'{"n": 333}\n'


class Disk:
    """A spool on a disk that can be full."""

    def __init__(self, spool):
        self.spool, self.full = spool, False
        self.path = spool.path

    def __getattr__(self, name):
        return getattr(self.spool, name)

    def append(self, lines):
        if self.full:
            raise OSError(28, "No space left on device")
        self.spool.append(lines)

    def kept(self, position=0):
        return lines_from(self.path, TEST, 0, position)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Disk(Spool(spool_path(TEST, 0), Origin(TEST, "run", 0)))


def test_each_record_is_in_the_spool_at_once_and_goes_to_the_master_once(disk):
    delivery = Delivery(disk, 0.0)
    assert delivery.look(0.5, 0.1) == (None, "")
    delivery.add(ONE)
    delivery.add(TWO)
    assert disk.kept() == ONE + TWO
    assert delivery.look(1.0, 0.1) == (Batch(0, ONE + TWO), "")
    assert delivery.look(1.5, 0.1) == (None, "")
    delivery.add(THREE)
    assert delivery.look(2.0, 0.1) == (Batch(len(ONE + TWO), THREE), "")
    delivery.acknowledge(len(ONE), 2.1)
    delivery.acknowledge(len(ONE + TWO + THREE), 2.2)
    assert delivery.complete
    delivery.acknowledge(len(ONE), 2.3)  # an old message
    delivery.acknowledge(10_000, 2.3)
    assert (delivery.complete, delivery.acknowledged) == (True, len(ONE + TWO + THREE))


def test_what_the_master_does_not_acknowledge_is_sent_again(disk):
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    delivery.look(0.0, 0.1)
    delivery.add(TWO)
    delivery.look(0.5, 0.1)
    assert delivery.look(4.9, 0.1) == (None, "")
    assert delivery.look(5.0, 0.1) == (Batch(0, ONE + TWO), "")
    delivery.acknowledge(len(ONE), 6.0)
    assert delivery.look(10.9, 0.1) == (None, "")
    assert delivery.look(11.0, 0.1) == (Batch(len(ONE), TWO), "")


def test_the_last_batch_may_be_empty_and_is_sent_until_it_is_answered(disk):
    delivery = Delivery(disk, 0.0)
    assert delivery.look(1.0, 0.1, over=True) == (Batch(0, b""), "")
    assert delivery.look(2.0, 0.1, over=True) == (None, "")
    assert delivery.look(6.0, 0.1, over=True) == (Batch(0, b""), "")


@pytest.mark.parametrize(("silent_s", "sends", "stops"), [(3.0, True, False), (3.1, False, False), (7.0, False, True)])
def test_a_silent_master_gets_nothing_and_after_seven_seconds_it_is_lost(disk, silent_s, sends, stops):
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    batch, why = delivery.look(1.0, silent_s)
    assert (batch is not None, why.startswith("the worker had lost its master")) == (sends, stops)


def test_a_lost_master_is_tried_now_and_then(disk):
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    sent = [now for now in range(20) if delivery.look(float(now), MASTER_LOST_S + now)[0]]
    assert sent == [5, 10, 15]


@pytest.mark.fault("none")
def test_while_the_spool_s_disk_is_full_records_go_to_the_master_and_nothing_is_stopped(disk):
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    disk.full = True
    delivery.add(TWO)
    assert delivery.look(0.5, 0.1) == (Batch(0, ONE + TWO), "")
    delivery.acknowledge(len(ONE + TWO), 0.6)
    delivery.add(THREE)
    assert delivery.look(1.1, 0.1) == (Batch(len(ONE + TWO), THREE), "")
    disk.full = False
    assert delivery.look(1.6, 0.1)[1] == ""
    assert disk.kept(len(ONE + TWO)) == THREE, "with room again it holds what the master lacks"
    assert disk.start == len(ONE + TWO)


@pytest.mark.fault("none")
def test_only_when_neither_takes_the_records_is_sending_stopped(disk):
    delivery = Delivery(disk, 0.0)
    disk.full = True
    delivery.add(ONE)
    assert delivery.look(0.0, 0.1)[1] == ""
    assert delivery.look(1.9, 0.1)[1] == ""
    assert "(No space left on device)" in delivery.look(2.0, 0.1)[1]
    disk.full = False
    assert delivery.look(2.5, 0.1)[1] == ""
    assert disk.kept() == ONE, "what was held in memory is written as soon as there is room"


def test_a_long_batch_ends_with_a_record(disk, monkeypatch):
    monkeypatch.setattr(module, "_MOST_MESSAGE_BYTES", 5)
    delivery = Delivery(disk, 0.0)
    for line in (ONE, TWO, THREE):
        delivery.add(line)
    assert [delivery.look(1.0, 0.1)[0].lines for _ in range(3)] == [ONE, TWO, THREE]


def test_a_spool_of_what_the_master_has_begins_anew(disk, monkeypatch):
    monkeypatch.setattr(module, "_ROTATE", 10)
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    delivery.add(TWO)
    delivery.acknowledge(len(ONE), 0.1)
    assert disk.kept() == ONE + TWO
    delivery.acknowledge(len(ONE + TWO), 0.1)
    delivery.add(THREE)
    assert (disk.start, disk.kept(len(ONE + TWO))) == (len(ONE + TWO), THREE)


def test_each_acknowledgement_takes_away_what_the_master_has_and_no_more(disk):
    delivery = Delivery(disk, 0.0)
    for line in (ONE, TWO, THREE):
        delivery.add(line)
    delivery.look(0.0, 0.1)
    delivery.acknowledge(len(ONE), 1.0)
    delivery.acknowledge(len(ONE + TWO), 2.0)
    assert delivery.look(7.0, 0.1) == (Batch(len(ONE + TWO), THREE), "")


def test_an_acknowledgement_that_comes_twice_is_no_progress(disk):
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    delivery.add(TWO)
    delivery.look(0.0, 0.1)
    delivery.acknowledge(len(ONE), 1.0)
    delivery.acknowledge(len(ONE), 4.0)
    assert delivery.look(6.0, 0.1) == (Batch(len(ONE), TWO), "")


def test_that_a_worker_is_over_is_said_after_all_records_were_sent(disk):
    delivery = Delivery(disk, 0.0)
    delivery.add(ONE)
    assert delivery.look(1.0, 0.1) == (Batch(0, ONE), "")
    assert delivery.look(1.5, 0.1, over=True) == (Batch(len(ONE), b""), "")


def test_a_batch_is_measured_from_where_it_begins(disk, monkeypatch):
    monkeypatch.setattr(module, "_MOST_MESSAGE_BYTES", len(THREE))
    delivery = Delivery(disk, 0.0)
    for now, line in enumerate((ONE, TWO, THREE)):
        delivery.add(line)
        assert delivery.look(0.5 * now, 0.1)[0].lines == line, "though nothing is acknowledged"


def test_a_spool_begins_anew_only_when_it_has_grown_again(disk, monkeypatch):
    monkeypatch.setattr(module, "_ROTATE", len(TWO))
    delivery, position = Delivery(disk, 0.0), 0
    for line, start in ((TWO, 0), (ONE, 0), (TWO, len(TWO + ONE)), (b"", len(TWO + ONE))):
        delivery.add(line)
        position += len(line)
        assert disk.start == start
        delivery.acknowledge(position, 0.1)
    assert disk.kept(len(TWO + ONE)) == TWO


steps = st.lists(st.sampled_from(["add", "look", "lose", "acknowledge", "fill", "empty"]), max_size=60)


@pytest.mark.fault("none")
@given(steps)
def test_whatever_happens_the_master_and_the_spool_have_every_record_once(steps):
    """The master keeps what continues its stream; in the end the spool holds what it lacks."""
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/s"
        disk = Disk(Spool(type(spool_path(TEST, 0))(path), Origin(TEST, "run", 0)))
        delivery, made, have, now = Delivery(disk, 0.0), b"", b"", 0.0
        for step in steps:
            now += 1.0
            if step == "add":
                line = b'{"n": %d}\n' % len(made)
                made += line
                delivery.add(line)
            elif step in {"look", "lose"}:
                batch, _ = delivery.look(now, 0.1)
                if batch is not None and step == "look" and batch.at <= len(have):
                    have += batch.lines[len(have) - batch.at :]
            elif step == "acknowledge":
                delivery.acknowledge(len(have), now)
            else:
                disk.full = step == "fill"
        disk.full = False
        delivery.look(now, 0.1)
        rest = disk.kept(delivery.acknowledged) if delivery.acknowledged < delivery.end else b""
        assert made[: delivery.acknowledged] + (rest or b"") == made
        disk.close()
