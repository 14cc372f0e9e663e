"""Open-model dispatch: each arrival is sent at its own absolute time, in a greenlet that waits for no other.

A user that waits for a response sends less exactly when the platform slows down. Here the schedule alone decides when a
run is submitted; what can't be sent is recorded as missed, and latency counts from the due time (no coordinated
omission).
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

import gevent
import gevent.event

from harness.drive.dispatch.fine_timer import FineTimer
from harness.drive.dispatch.lookahead import Lookahead, Planned
from harness.drive.dispatch.senders import Senders
from harness.drive.http.clients import RendersAhead
from harness.drive.session_messages import STOPPED
from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.records import Event, Outcome, Sample, Span, Submission
from harness.model.scenario import Arrival
from harness.model.trace_ids import TRACEPARENT, traceparent
from harness.targets.completed_run import CompletedRun
from harness.targets.target import RejectedError, SubmitsAhead, Target

# How often a wait for the next arrival checks for a stop.
_STOP_CHECK_S = 0.1
# An idle core wakes late and starts slowly: after a longer wait the generator spins for the last moment.
_LONG_WAIT_S = 0.005
_SPIN_S = 0.0007
_STEP_S = 0.5  # corrections of a clock by less don't count
# Yield after so many arrivals without a pause, so that the first requests of a burst leave while it is being created.
_BURST_SLICE = 16

_LONGEST_WAIT = 40  # characters: seconds, or a date
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
        self._timer: FineTimer | None = None

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
        """Yield to other greenlets for `seconds`, up to about a tenth of a millisecond longer."""
        self._timer = self._timer or FineTimer()
        self._timer.sleep(seconds)

    def close(self) -> None:
        """Give back what `sleep` took."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None


class Dispatcher:
    """Sends the arrivals of one worker and passes each to `record` as one ledger row, exactly once.

    Where the response is the result, the run's phases and end follow its row, with `source` as the platform's name.
    With `trace`, the id of a test, requests name the trace of their arrival.
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
        trace: str = "",
    ) -> None:
        self._target = target
        self._exchange = exchange
        client: object = exchange
        self._client = client if isinstance(client, RendersAhead) and isinstance(target, SubmitsAhead) else None
        self._record = record
        self._worker = worker
        self._max_in_flight = max_in_flight
        self._clock = clock
        self._source = source
        self._trace = trace
        self._why_stopped: str | None = None
        self._ended = False  # answers are no longer waited for
        self._ahead = Lookahead((), None)
        self._senders = Senders(self._send)
        self._open: set[Planned] = set()
        self._none_open = gevent.event.Event()
        self._unanswered: set[gevent.Greenlet] = set()

    @property
    def in_flight(self) -> int:
        """Number of requests without a response yet."""
        return len(self._open)

    def run(self, arrivals: Iterable[Arrival], *, in_advance: bool = False) -> None:
        """Send every arrival when it is due; returns when each is answered or missed.

        With `in_advance` arrivals are known before they are due: requests are made up to a second early, if client and
        target can do that, and wait for their time.
        """
        self._ahead = Lookahead(arrivals, self._senders.give if in_advance and self._client is not None else None)
        consecutive = 0
        for planned in self._ahead:
            consecutive = 0 if self._wait_for(planned.arrival) else consecutive
            if planned.message is None:  # else it is written below, and needs no other greenlet for that
                consecutive += 1
                if consecutive % _BURST_SLICE == 0:
                    self._clock.sleep(0)
            if self._why_stopped is not None:
                self._drop(planned, self._why_stopped)
            elif len(self._open) >= self._max_in_flight:
                self._drop(planned, f"{self._max_in_flight} requests were already in flight")
            else:
                self._release(planned)
        while self._open:
            self._none_open.clear()
            self._none_open.wait()
        self._senders.close()

    def _release(self, planned: Planned) -> None:
        """It is due: hand its request to the kernel, and let a greenlet read the answer."""
        self._open.add(planned)
        if planned.greenlet is None:
            planned.due.set()
            self._senders.give(planned)
            return
        if planned.message is not None and self._client is not None:
            self._client.write(planned.message)
            planned.sent_at = self._clock.now()
        if planned.begun:
            self._unanswered.add(planned.greenlet)
        planned.due.set()

    def _drop(self, planned: Planned, why: str) -> None:
        """It is not sent."""
        if planned.greenlet is not None:
            planned.greenlet.kill(block=False)  # it waits for its time, or has not begun
        self._miss(planned, why)

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
            self._ahead.fill(self._clock.now())
            self._clock.sleep(min(max(wait_s - spin_s, 0.0), _STOP_CHECK_S))
            wait_s = (arrival.due_at - self._clock.now()) / 1e9
        return waited

    def _miss(self, planned: Planned, why: str) -> None:
        self._record(self._row(planned, Outcome.MISSED, error=why))

    def _send(self, planned: Planned) -> None:
        try:
            self._submit(planned)
        finally:
            self._open.discard(planned)
            if not self._open:
                self._none_open.set()

    def _submit(self, planned: Planned) -> None:
        if self._ended and planned.due.is_set():
            self._miss(planned, self._why_stopped or STOPPED)
            return
        planned.begun = True
        if planned.due.is_set():
            self._unanswered.add(gevent.getcurrent())
        answer: str | CompletedRun | None = None
        status, error = None, None
        try:
            answer = self._target.submit(planned.arrival.scenario, lambda request: self._exchanged(planned, request))
        except RejectedError as rejected:
            status, error = rejected.status, rejected.message + planned.asked_to_wait
        except TargetUnreachableError as unanswered:
            error = unanswered.message
        except Exception as defect:  # a bug in the target's code: the arrival is booked, gevent prints the traceback
            planned.due.wait()
            outcome = Outcome.MISSED if planned.sent_at is None else Outcome.REJECTED
            self._record(self._row(planned, outcome, error=f"{type(defect).__name__}: {defect}"))
            raise
        finally:
            self._unanswered.discard(gevent.getcurrent())
        planned.due.wait()
        self._book(planned, answer, status, error)

    def _exchanged(self, planned: Planned, request: HttpRequest) -> HttpAnswer:
        """Send a request of an arrival: the first one when it is due, any further one at once."""
        if self._trace:
            named = {TRACEPARENT: traceparent(self._trace, planned.arrival.seq)}
            request = replace(request, headers={**request.headers, **named})
        if planned.due.is_set() or self._client is None:
            planned.sent_at = planned.sent_at or self._clock.now()
            answer = self._exchange(request)
        else:
            message = self._client.render(request)
            self._ahead.hold(planned, message)
            planned.due.wait()
            answer = self._client.finish(message)
        if wait := answer.headers.get("retry-after"):
            planned.asked_to_wait = f"; Retry-After: {wait[:_LONGEST_WAIT]}"
        return answer

    def _book(self, planned: Planned, answer: str | CompletedRun | None, status: int | None, error: str | None) -> None:
        over = answer if isinstance(answer, CompletedRun) else None
        run = answer.run if isinstance(answer, CompletedRun) else answer
        outcome = Outcome.ACCEPTED if run is not None else Outcome.REJECTED
        answered_at = None if error is not None and status is None else self._clock.now()
        status = 200 if run is not None else status
        self._record(self._row(planned, outcome, answered_at=answered_at, run=run, status=status, error=error))
        if over is not None and planned.sent_at is not None and answered_at is not None:
            for record in over.records(planned.sent_at, answered_at, self._source):
                self._record(record)

    def _row(
        self,
        planned: Planned,
        outcome: Outcome,
        *,
        answered_at: int | None = None,
        run: str | None = None,
        status: int | None = None,
        error: str | None = None,
    ) -> Submission:
        arrival = planned.arrival
        return Submission(
            seq=arrival.seq,
            scenario_id=arrival.scenario.id,
            run_name=arrival.scenario.run_name,
            due_at=arrival.due_at,
            sent_at=planned.sent_at,
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
