from array import array
from types import SimpleNamespace

import pytest

from harness.drive.ledger import Ledger
from harness.drive.live_load import live_load
from harness.model import Burst, Concurrency, Event, Level, Outcome, Submission
from harness.model.live import Stage
from harness.model.phases import SUCCEEDED
from harness.store import RunFolder

S = 10**9


@pytest.fixture
def test(tmp_path):
    """Five arrivals, of which three are due after ten seconds."""
    with RunFolder.create(tmp_path, "r").recorder() as recorder:
        offsets = array("d", [0.0, 1.0, 2.0, 500.0, 600.0])
        yield SimpleNamespace(ledger=Ledger(recorder, 5), offsets=offsets, schedule=Burst(5))


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
    assert live_load(Stage.DRAINING, test, S, 11 * S).awaited == 0
    assert live_load(Stage.PREPARING, test, 0, 11 * S).awaited == 0


@pytest.mark.parametrize(
    ("stage", "schedule", "runs_per_min", "eta_s"),
    [
        (Stage.DISPATCHING, Burst(5), 6.0, 590.0),
        (Stage.DISPATCHING, Concurrency((Level(2, 70.0),)), 6.0, 60.0),
        (Stage.DISPATCHING, Concurrency((Level(2),), runs=5), 6.0, 40.0),
        (Stage.REPORTING, Burst(5), None, None),
    ],
    ids=["open", "closed for a time", "closed for runs", "over"],
)
def test_the_time_left_is_that_of_the_schedule_or_of_the_open_runs(test, stage, schedule, runs_per_min, eta_s):
    test.schedule = schedule
    test.ledger.book(row(0))
    test.ledger.end(Event(5, "Run", "r0", SUCCEEDED))
    load = live_load(stage, test, S, 11 * S)
    assert (load.runs_per_min, load.eta_s) == (pytest.approx(runs_per_min), pytest.approx(eta_s))
