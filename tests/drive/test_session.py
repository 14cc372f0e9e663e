import time
from array import array
from types import SimpleNamespace

from harness.drive.ledger import Ledger
from harness.drive.session import Session, Stage
from harness.model import Burst, Outcome, Submission
from harness.store import RunFolder


def test_what_is_due_and_not_answered_is_sent_and_awaited(tmp_path):
    """A synchronous execution is under way until its answer comes: nobody else would tell of it."""
    recorder = RunFolder.create(tmp_path, "r").recorder()
    ledger = Ledger(recorder, 5)
    session = Session(SimpleNamespace(settings=SimpleNamespace(abort_on=())), None, on_finished=print)
    session.test = SimpleNamespace(
        ledger=ledger, offsets=array("d", [0.0, 1.0, 2.0, 500.0, 600.0]), schedule=Burst(5), folder=None
    )
    session.stage, session._started_at = Stage.DISPATCHING, time.time_ns() - 10 * 10**9
    assert {name: session.live()[name] for name in ("sent", "awaited")} == {"sent": 3, "awaited": 3}
    ledger.book(Submission(0, "1", "a", 1, 2, 3, Outcome.ACCEPTED, "r0", 0, 200, None))
    ledger.book(Submission(1, "1", "a", 1, None, None, Outcome.MISSED, None, 0, None, "full"))
    assert {name: session.live()[name] for name in ("sent", "awaited", "in_flight")} == {
        "sent": 2, "awaited": 1, "in_flight": 1,
    }  # fmt: skip
    session.stage = Stage.DRAINING
    assert session.live()["awaited"] == 0
    recorder.close()
