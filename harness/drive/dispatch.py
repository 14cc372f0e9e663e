"""Open-model dispatch: every arrival at its own absolute time, one greenlet each, whatever the answers do.

A user that waits for its answer drops arrivals exactly when the platform slows down. Here the schedule alone decides
when a run is submitted; what can't be sent is recorded as missed, and latency is counted from the due time.
"""

import time
from collections.abc import Callable, Iterable

import gevent
import gevent.pool

from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.records import Event, Outcome, Sample, Span, Submission
from harness.model.scenario import Arrival
from harness.targets.completed_run import CompletedRun
from harness.targets.target import RejectedError, Target

# Between two arrivals it is looked so often whether the test was stopped.
_LOOK_UP_S = 0.1
# A core that has rested wakes late, and is slow at first: after such a rest the generator stays awake for the last bit.
_REST_S = 0.02
_AWAKE_S = 0.002
# After so many arrivals in a row without a pause the others get a turn: a burst is sent while it is still being made.
_TURN = 16
# Why an arrival was missed, unless somebody knows better.
STOPPED = "the test was stopped before it was due"

# What the load knows: each arrival, of a run that is over with its answer also its phases and its end, and how busy
# the generator is.
Record = Submission | Span | Event | Sample


class Clock:
    """UTC nanoseconds that never jump: the wall clock read once, then carried on by the monotonic one.

    A wall clock that is known to be `ahead_ns` ahead of the master's is set right.
    """

    def __init__(self, ahead_ns: int = 0) -> None:
        self._offset = time.time_ns() - time.monotonic_ns() - ahead_ns

    def now(self) -> int:
        """The present instant."""
        return self._offset + time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Give the others so long a turn, or a little more: a timer is exact to a millisecond."""
        gevent.sleep(seconds)


class Dispatcher:
    """Sends the arrivals of one worker and hands each to `record` as one row of the ledger, exactly once.

    What an answer says of a run that is over follows its row; `source` names the platform in it.
    """

    def __init__(
        self,
        target: Target,
        exchange: Exchange,
        record: Callable[[Record], None],
        *,
        worker: int,
        max_in_flight: int,
        clock: Clock,
        source: str,
    ) -> None:
        self._target = target
        self._exchange = exchange
        self._record = record
        self._worker = worker
        self._max_in_flight = max_in_flight
        self._clock = clock
        self._source = source
        self._why_stopped: str | None = None
        self._open = gevent.pool.Group()

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._open)

    def run(self, arrivals: Iterable[Arrival]) -> None:
        """Send every arrival when it is due; returns when all are answered, missed or, after `stop`, given up."""
        in_a_row = 0
        for arrival in arrivals:
            in_a_row = 0 if self._waited_for(arrival) else in_a_row
            in_a_row += 1
            if in_a_row % _TURN == 0:
                self._clock.sleep(0)
            if self._why_stopped is not None:
                self._miss(arrival, self._why_stopped)
            elif len(self._open) >= self._max_in_flight:
                self._miss(arrival, f"{self._max_in_flight} requests were in flight already")
            else:
                self._open.spawn(self._send, arrival)
        self._open.join()

    def stop(self, why: str = STOPPED) -> None:
        """Send nothing more; what is not sent yet is recorded as missed, because of `why`."""
        self._why_stopped = why

    def _waited_for(self, arrival: Arrival) -> bool:
        """Wait until it is due, or the test is stopped; whether there was anything to wait for."""
        wait_s = (arrival.due_at - self._clock.now()) / 1e9
        early_s = _AWAKE_S if wait_s > _REST_S else 0.0
        waited = False
        while wait_s > 0 and self._why_stopped is None:
            waited = True
            self._clock.sleep(min(max(wait_s - early_s, 0.0), _LOOK_UP_S))
            wait_s = (arrival.due_at - self._clock.now()) / 1e9
        return waited

    def _miss(self, arrival: Arrival, why: str) -> None:
        self._record(self._row(arrival, Outcome.MISSED, error=why))

    def _send(self, arrival: Arrival) -> None:
        sent_at: int | None = None

        def exchange(request: HttpRequest) -> HttpAnswer:
            nonlocal sent_at
            sent_at = self._clock.now()
            return self._exchange(request)

        answer: str | CompletedRun | None = None
        status, error = None, None
        try:
            answer = self._target.submit(arrival.scenario, exchange)
        except RejectedError as rejected:
            status, error = rejected.status, rejected.message
        except TargetUnreachableError as unanswered:
            error = unanswered.message
        except Exception as defect:  # of the target's code: its arrival is booked, and Locust shows the traceback
            outcome = Outcome.MISSED if sent_at is None else Outcome.REJECTED
            self._record(self._row(arrival, outcome, sent_at=sent_at, error=f"{type(defect).__name__}: {defect}"))
            raise
        over = answer if isinstance(answer, CompletedRun) else None
        run = answer.run if isinstance(answer, CompletedRun) else answer
        outcome = Outcome.ACCEPTED if run is not None else Outcome.REJECTED
        answered_at = None if error is not None and status is None else self._clock.now()
        self._record(
            self._row(
                arrival,
                outcome,
                sent_at=sent_at,
                answered_at=answered_at,
                run=run,
                status=200 if run is not None else status,
                error=error,
            )
        )
        if over is not None and sent_at is not None and answered_at is not None:
            for record in over.records(sent_at, answered_at, self._source):
                self._record(record)

    def _row(
        self,
        arrival: Arrival,
        outcome: Outcome,
        *,
        sent_at: int | None = None,
        answered_at: int | None = None,
        run: str | None = None,
        status: int | None = None,
        error: str | None = None,
    ) -> Submission:
        return Submission(
            seq=arrival.seq,
            scenario_id=arrival.scenario.id,
            run_name=arrival.scenario.run_name,
            due_at=arrival.due_at,
            sent_at=sent_at,
            answered_at=answered_at,
            outcome=outcome,
            run=run,
            worker=self._worker,
            status=status,
            error=error,
        )


def most_at_once(offsets: Iterable[float], window_s: float = 0.1) -> int:
    """The largest number of arrivals due within `window_s`: so many connections are worth opening in advance."""
    from collections import deque

    recent: deque[float] = deque()
    most = 0
    for due_s in offsets:
        recent.append(due_s)
        while recent[0] < due_s - window_s:
            recent.popleft()
        most = max(most, len(recent))
    return most
