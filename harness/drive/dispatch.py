"""Open-model dispatch: each arrival is sent at its own absolute time, in a greenlet of its own.

A user that waits for a response sends less exactly when the platform slows down. Here the schedule alone decides when a
run is submitted; what can't be sent is recorded as missed, and latency counts from the due time (no coordinated
omission).
"""

import time
from collections import deque
from collections.abc import Callable, Iterable

import gevent
import gevent.pool

from harness.drive.session_messages import STOPPED
from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.records import Event, Outcome, Sample, Span, Submission
from harness.model.scenario import Arrival
from harness.targets.completed_run import CompletedRun
from harness.targets.target import RejectedError, Target

# How often a wait for the next arrival checks for a stop.
_STOP_CHECK_S = 0.1
# An idle core wakes late and starts slowly: after a longer wait the generator spins for the last moment.
_LONG_WAIT_S = 0.02
_SPIN_S = 0.002
_STEP_S = 0.5  # corrections of a clock by less don't count
# Yield after so many arrivals without a pause, so that the first requests of a burst leave while it is being created.
_BURST_SLICE = 16

_UNANSWERED = "no answer before the test was ended"

# What the load records: arrivals, the phases and ends of runs that end with their response, the CPU of the generator.
Record = Submission | Span | Event | Sample


class Clock:
    """UTC nanoseconds that never jump: the wall clock is read once, the monotonic clock advances it.

    `ahead_ns` is how far this wall clock is ahead of the master's; it is subtracted.
    """

    def __init__(self, ahead_ns: int = 0) -> None:
        self._offset = time.time_ns() - time.monotonic_ns() - ahead_ns
        self._wall_ahead_s = ahead_ns / 1e9

    def now(self) -> int:
        """The current time in UTC nanoseconds."""
        return self._offset + time.monotonic_ns()

    def stepped_s(self) -> float:
        """By how many seconds the wall clock was set since the last call; 0.0 for slow corrections."""
        ahead_s = (time.time_ns() - self.now()) / 1e9
        by_s = ahead_s - self._wall_ahead_s
        if abs(by_s) < _STEP_S:
            return 0.0
        self._wall_ahead_s = ahead_s
        return by_s

    def sleep(self, seconds: float) -> None:
        """Yield to other greenlets for `seconds`, up to about a millisecond longer."""
        gevent.sleep(seconds)


class Dispatcher:
    """Sends the arrivals of one worker and passes each to `record` as one ledger row, exactly once.

    Where the response is the result, the run's phases and end follow its row, with `source` as the platform's name.
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
        self._ended = False  # nobody waits for answers any more
        self._open = gevent.pool.Group()
        self._unanswered: set[gevent.Greenlet] = set()

    @property
    def in_flight(self) -> int:
        """Number of requests without a response yet."""
        return len(self._open)

    def run(self, arrivals: Iterable[Arrival]) -> None:
        """Send every arrival when it is due; returns when each is answered or missed."""
        consecutive = 0
        for arrival in arrivals:
            consecutive = 0 if self._wait_for(arrival) else consecutive
            consecutive += 1
            if consecutive % _BURST_SLICE == 0:
                self._clock.sleep(0)
            if self._why_stopped is not None:
                self._miss(arrival, self._why_stopped)
            elif len(self._open) >= self._max_in_flight:
                self._miss(arrival, f"{self._max_in_flight} requests were already in flight")
            else:
                self._open.spawn(self._send, arrival)
        self._open.join()

    def stop(self, why: str = STOPPED, *, at_once: bool = False) -> None:
        """Send nothing more; the remaining arrivals are recorded as missed because of `why`.

        With `at_once` open requests are recorded as unanswered, too; else their answers are waited for.
        """
        self._why_stopped = why
        if at_once:
            self._ended = True
            for waiting in tuple(self._unanswered):
                waiting.kill(TargetUnreachableError(_UNANSWERED), block=False)

    def _wait_for(self, arrival: Arrival) -> bool:
        """Wait until it is due or the test is stopped; returns whether it had to wait."""
        wait_s = (arrival.due_at - self._clock.now()) / 1e9
        spin_s = _SPIN_S if wait_s > _LONG_WAIT_S else 0.0
        waited = False
        while wait_s > 0 and self._why_stopped is None:
            waited = True
            self._clock.sleep(min(max(wait_s - spin_s, 0.0), _STOP_CHECK_S))
            wait_s = (arrival.due_at - self._clock.now()) / 1e9
        return waited

    def _miss(self, arrival: Arrival, why: str) -> None:
        self._record(self._row(arrival, Outcome.MISSED, error=why))

    def _send(self, arrival: Arrival) -> None:
        if self._ended:
            self._miss(arrival, self._why_stopped or STOPPED)
            return
        sent_at: int | None = None

        def exchange(request: HttpRequest) -> HttpAnswer:
            nonlocal sent_at
            sent_at = sent_at or self._clock.now()
            return self._exchange(request)

        answer: str | CompletedRun | None = None
        status, error = None, None
        self._unanswered.add(gevent.getcurrent())
        try:
            answer = self._target.submit(arrival.scenario, exchange)
        except RejectedError as rejected:
            status, error = rejected.status, rejected.message
        except TargetUnreachableError as unanswered:
            error = unanswered.message
        except Exception as defect:  # a bug in the target's code: the arrival is booked, gevent prints the traceback
            outcome = Outcome.MISSED if sent_at is None else Outcome.REJECTED
            self._record(self._row(arrival, outcome, sent_at=sent_at, error=f"{type(defect).__name__}: {defect}"))
            raise
        finally:
            self._unanswered.discard(gevent.getcurrent())
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
            tenant=arrival.scenario.tenant,
        )


def most_at_once(offsets: Iterable[float], window_s: float = 0.1) -> int:
    """The largest number of arrivals due within `window_s`: the number of connections to open in advance."""
    recent: deque[float] = deque()
    most = 0
    for due_s in offsets:
        recent.append(due_s)
        while recent[0] < due_s - window_s:
            recent.popleft()
        most = max(most, len(recent))
    return most
