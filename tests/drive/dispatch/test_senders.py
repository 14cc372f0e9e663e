"""Greenlets that send one arrival after the other, and never two at once."""

import gevent
import gevent.event
import pytest

from harness.drive.dispatch import senders as module
from harness.drive.dispatch.lookahead import Planned
from harness.drive.dispatch.senders import Senders
from harness.model import Scenario
from harness.model.errors import TargetUnreachableError
from harness.model.scenario import Arrival


def planned(seq: int) -> Planned:
    return Planned(Arrival(seq, 0, Scenario(str(seq), "s", {}, {})))


class Sent:
    """Notes who sent what; each is sent when its arrival is due."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.greenlets: list[gevent.Greenlet] = []
        self.senders = Senders(self.send)

    def send(self, each: Planned) -> None:
        self.greenlets.append(gevent.getcurrent())
        each.due.wait()
        self.seqs.append(each.arrival.seq)

    def give(self, *each: Planned) -> list[gevent.Greenlet]:
        given = [self.senders.give(one) for one in each]
        gevent.idle()
        return given


def test_a_greenlet_that_has_sent_its_arrival_sends_the_next():
    sent = Sent()
    for seq in range(3):
        each = planned(seq)
        each.due.set()
        assert sent.give(each) == sent.greenlets[-1:]
    assert sent.seqs == [0, 1, 2]
    assert len(set(sent.greenlets)) == 1


def test_arrivals_that_wait_at_once_have_greenlets_of_their_own():
    sent, each = Sent(), [planned(seq) for seq in range(3)]
    assert len(set(sent.give(*each))) == 3
    each[1].due.set()
    gevent.idle()
    again = planned(3)
    assert sent.give(again) == [sent.greenlets[1]]
    assert sent.seqs == [1]


def test_the_end_of_a_greenlet_that_waits_for_its_time_ends_no_other(capsys):
    sent, first, second = Sent(), planned(0), planned(1)
    one, other = sent.give(first, second)
    one.kill()
    second.due.set()
    gevent.idle()
    assert sent.seqs == [1]
    assert sent.give(planned(2)) == [other]
    assert not other.dead
    assert capsys.readouterr().err == ""


def test_an_exception_ends_its_greenlet_and_the_next_arrival_has_a_new_one(capsys):
    used = []

    def send(each: Planned) -> None:
        used.append(gevent.getcurrent())
        if each.arrival.seq == 0:
            raise ValueError("a bug in the target's code")

    senders = Senders(send)
    for seq in range(2):
        senders.give(planned(seq))
        gevent.idle()
    assert used[0] is not used[1]
    assert [each.dead for each in used] == [True, False]
    assert "a bug in the target's code" in capsys.readouterr().err


def test_an_answer_that_comes_before_its_greenlet_is_told_to_give_up_leaves_the_next_arrival_alone(capsys):
    sent, first, second = Sent(), planned(0), planned(1)
    first.due.set()
    (used,) = sent.give(first)
    used.kill(TargetUnreachableError("no answer before the test was ended"), block=False)
    gevent.idle()
    second.due.set()
    sent.give(second)
    assert sent.seqs == [0, 1]
    sent.greenlets[-1].kill(TargetUnreachableError("as late as the end of all"), block=False)
    sent.senders.close()
    gevent.idle()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("most", "left"), [(2, 2), (256, 5)])
def test_few_greenlets_stay_without_work(monkeypatch, most, left):
    monkeypatch.setattr(module, "_MOST_IDLE", most)
    sent, each = Sent(), [planned(seq) for seq in range(5)]
    used = sent.give(*each)
    for one in each:
        one.due.set()
    gevent.idle()
    assert sum(not greenlet.dead for greenlet in used) == left


def test_closing_ends_those_without_work():
    sent, waiting, ended = Sent(), planned(0), planned(1)
    ended.due.set()
    busy, idle = sent.give(waiting, ended)
    sent.senders.close()
    gevent.idle()
    assert (busy.dead, idle.dead) == (False, True)
    waiting.due.set()
    gevent.idle()
    assert sent.seqs == [1, 0]
