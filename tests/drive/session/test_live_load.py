from array import array
from types import SimpleNamespace

import pytest

from harness.drive.recording.end_rate import EndRate
from harness.drive.recording.ledger import Ledger
from harness.drive.session.live_load import live_load
from harness.model import Burst, Concurrency, Event, Level, Outcome, Submission
from harness.model.live.state import Stage
from harness.model.phases import FAILED, SUCCEEDED
from harness.store import RunFolder

S = 10**9


@pytest.fixture
def test(tmp_path):
    """Five arrivals, of which three are due after ten seconds."""
    with RunFolder.create(tmp_path, "r").recorder() as recorder:
        offsets = array("d", [0.0, 1.0, 2.0, 500.0, 600.0])
        yield SimpleNamespace(ledger=Ledger(recorder, 5), offsets=offsets, schedule=Burst(5), end_rate=EndRate())


def row(seq, outcome=Outcome.ACCEPTED):
    run, sent_at = (f"r{seq}", 2) if outcome is Outcome.ACCEPTED else (None, None)
    return Submission(seq, "1", "a", 1, sent_at, sent_at, outcome, run, 0, 200, None)


def test_what_is_due_and_not_answered_is_sent_and_awaited(test):
    """A synchronous execution is in flight until its response arrives: nothing else shows it."""
    shown = live_load(Stage.DISPATCHING, test, S, 11 * S).to_mapping()
    assert (shown["sent"], shown["awaited"]) == (3, 3)
    test.ledger.book(row(0))
    test.ledger.book(row(1, Outcome.MISSED))
    shown = live_load(Stage.DISPATCHING, test, S, 11 * S).to_mapping()
    assert (shown["sent"], shown["awaited"], shown["in_flight"]) == (2, 1, 1)
    assert live_load(Stage.DISPATCHING, test, S, 3 * S - 1).awaited == 0, "the third is due at 2 s"
    assert live_load(Stage.DISPATCHING, test, S, 3 * S).awaited == 1
    assert live_load(Stage.DRAINING, test, S, 11 * S).awaited == 0
    assert live_load(Stage.PREPARING, test, 0, 11 * S).awaited == 0


@pytest.mark.parametrize(
    ("stage", "schedule", "per_hour", "eta_s"),
    [
        (Stage.DISPATCHING, Burst(5), 360.0, 590.0),
        (Stage.DISPATCHING, Concurrency((Level(2, 70.0),)), 360.0, 60.0),
        (Stage.DISPATCHING, Concurrency((Level(2),), runs=5), 360.0, 40.0),
        (Stage.REPORTING, Burst(5), None, None),
    ],
    ids=["open", "closed for a time", "closed for runs", "over"],
)
def test_the_time_left_is_that_of_the_schedule_or_of_the_open_runs(test, stage, schedule, per_hour, eta_s):
    test.schedule = schedule
    test.ledger.book(row(0))
    test.ledger.end(Event(5, "Run", "r0", SUCCEEDED))
    load = live_load(stage, test, S, 11 * S)
    assert (load.succeeded_per_hour, load.eta_s) == (pytest.approx(per_hour), pytest.approx(eta_s))


def test_few_ends_of_many_say_nothing_of_the_time_left(test):
    test.ledger.intended = 60
    for seq in range(3):
        assert live_load(Stage.DRAINING, test, S, 11 * S).eta_s is None
        test.ledger.book(row(seq))
        test.ledger.end(Event(5, "Run", f"r{seq}", SUCCEEDED))
    assert live_load(Stage.DRAINING, test, S, 11 * S).eta_s == pytest.approx(590.0), "three of sixty"


def test_arrivals_that_will_not_end_leave_no_time_to_wait_for(test):
    """Of five, two succeeded, one failed, one was rejected and one missed."""
    test.schedule = Concurrency((Level(2),), runs=5)
    for seq in range(3):
        test.ledger.book(row(seq))
        test.ledger.end(Event(5, "Run", f"r{seq}", SUCCEEDED if seq < 2 else FAILED))
    test.ledger.book(row(3, Outcome.REJECTED))
    test.ledger.book(row(4, Outcome.MISSED))
    load = live_load(Stage.DRAINING, test, S, 11 * S)
    assert (load.succeeded_per_hour, load.eta_s) == (720.0, 0.0)


def test_the_first_second_counts_as_a_whole_one(test):
    test.ledger.book(row(0))
    test.ledger.end(Event(5, "Run", "r0", SUCCEEDED))
    assert live_load(Stage.DISPATCHING, test, S, S + S // 2).succeeded_per_hour == 3600.0


@pytest.mark.parametrize(
    ("schedule", "described"),
    [
        (Burst(5), "burst (open model: a slow response never delays the next submission)"),
        (Concurrency((Level(2),), runs=5),
         "concurrency: up to 2 runs in flight (closed model: a slow platform gets fewer submissions)"),
    ],
)  # fmt: skip
def test_stage_load_lags_and_the_age_of_the_ends_are_shown(test, schedule, described):
    test.schedule = schedule
    for lag_s in (0.5, 2.0, 1.0):
        test.ledger.lags.add(lag_s)
    load = live_load(Stage.DRAINING, test, S, 11 * S, ends_age_s=3.5)
    assert (load.stage, load.load, load.ends_age_s) == (Stage.DRAINING, described, 3.5)
    assert (load.lag_s, load.lag_p99_s) == (2.0, pytest.approx(2.0, rel=0.05))
    assert live_load(Stage.DRAINING, test, S, 11 * S).lag_s == 0.0, "since the last look"
