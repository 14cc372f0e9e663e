"""The course of one test as a state machine: events in, commands out. It does no I/O and reads no clock.

`Session.on` takes what happened and returns what to do next, in order; `runner.py` does it. A test prepares,
dispatches, drains, cleans up and reports. Stop ends the dispatch early and drains; Cut does not wait for open runs.
"""

from dataclasses import asdict

from harness.drive import session_messages as messages
from harness.drive.session.concurrency_limiter import ConcurrencyLimiter
from harness.model.abort import BLOCKED, Watch
from harness.model.errors import ExitCode
from harness.model.live.state import Stage
from harness.model.units import format_duration

_TICK_S = 0.25
# In the closed model an ended run frees a slot, which must not wait. Slots that open at a known time are sent ahead.
_CLOSED_TICK_S = 0.02
_AHEAD_S = 0.1
_REJECTED_S = 1.0  # a slot rests after a rejection: a broken platform must not be asked faster and faster
_UNRECORDED = "Unrecorded"  # the reason of a cut because the run folder can't be written
_WORKERS = "  → the workers' logs say why; start them and the test again"
_FAREWELL_S = 5.0  # after a cut, open requests get this long to be answered
_BOOKING_S = 3.0  # then they are booked as unanswered, for which workers get this long


class Session:
    """One test. `stage` is where it is, `tick_s` how many seconds may pass until the next Tick (none: any number)."""

    def __init__(self) -> None:
        self.stage = Stage.PREPARING
        # Until they are known nothing has been made that would have to be sealed.
        self._terms: messages.Terms | None = None
        self._why_stopped: str | None = None
        self._cut = ""  # the reason of the first Cut
        self._deadline_s: float | None = None  # of the farewell while dispatching, of the drain while draining
        self._unanswered = False  # open requests are not waited for any more
        self._watch = Watch(())
        self._slots: ConcurrencyLimiter | None = None  # of a closed schedule, while it makes arrivals due
        self._issued = self._freed = self._rejected = self._lost = 0
        self._exit_code = ExitCode.OK
        self._verdict = ""

    @property
    def tick_s(self) -> float | None:
        """See the class."""
        if self.stage not in {Stage.DISPATCHING, Stage.DRAINING}:
            return None
        return _CLOSED_TICK_S if self._slots is not None else _TICK_S

    def on(self, event: messages.Event) -> tuple[messages.Command, ...]:
        """Take in an event and return what to do about it, in order."""
        if self.stage is Stage.OVER:
            return ()
        match event:
            case messages.Prepared():
                self._terms = event.terms
                self._watch = Watch(event.terms.abort_on)
                return (messages.Open(),)
            case messages.Stop():
                return self._stop(event.reason, event.why)
            case messages.Cut():
                return self._end_early(event)
            case messages.Failed():
                return self._failed(event)
        return self._on_made(event, self._terms) if self._terms is not None else ()

    def _on_made(self, event: messages.Event, terms: messages.Terms) -> tuple[messages.Command, ...]:
        match event:
            case messages.Opened():
                return self._dispatch(event.t0_at, terms)
            case messages.Tick():
                return self._tick(event, terms)
            case messages.WorkerLost():
                self._lost += event.arrivals
                return (messages.Note("WorkerLost", f"worker {event.index} ({event.client}) disconnected"),)
            case messages.LateRows():
                self._lost -= event.arrivals
                return (messages.Note("LateRows", _late(event)),)
            case messages.WriteFailed():
                return self._write_failed(event)
            case messages.Closed():
                return self._closed()
            case messages.Reported():
                self._exit_code, self._verdict = event.exit_code, event.verdict
                return self._finish()
        return ()

    # --- dispatch and drain -------------------------------------------------------------------------------------

    def _dispatch(self, t0_at: int, terms: messages.Terms) -> tuple[messages.Command, ...]:
        self.stage = Stage.DISPATCHING
        started = f"{terms.intended} arrivals" if terms.intended else "arrivals until the time is up"
        commands: tuple[messages.Command, ...] = (
            messages.Note("Started", started, at=t0_at),
            messages.StartGenerator(t0_at),
        )
        if self._why_stopped is not None:  # before the first arrival: all are missed
            return (*commands, messages.StopGenerator(self._why_stopped))
        if terms.concurrency is not None:
            self._slots = ConcurrencyLimiter(terms.concurrency, terms.max_runs)
        return commands

    def _tick(self, tick: messages.Tick, terms: messages.Terms) -> tuple[messages.Command, ...]:
        if self.stage not in {Stage.DISPATCHING, Stage.DRAINING}:
            return ()
        broken = self._watch.broken(tick.now_s, asdict(tick.counts) | {BLOCKED: tick.blocked})
        if broken and tick.ends_age_s is not None:
            broken += f"; ends of runs were last read {format_duration(tick.ends_age_s)} before"
        aborted = self.on(messages.Cut("Aborted", f"aborted by {broken}")) if broken and not self._cut else ()
        if self.stage is Stage.DRAINING:
            return (*aborted, *self._drain(tick, terms))
        if self._cut and self._deadline_s is None:
            self._deadline_s = tick.now_s + (terms.answer_s if self._cut == _UNRECORDED else _FAREWELL_S)
        if not tick.generator_finished:
            if self._deadline_s is None or tick.now_s < self._deadline_s:
                return (*aborted, *self._send_more(tick))
            if not self._unanswered:
                self._unanswered, self._deadline_s = True, tick.now_s + _BOOKING_S
                return (*aborted, messages.StopGenerator(self._why_stopped or messages.STOPPED, at_once=True))
        return (*aborted, *self._end_dispatch(tick, terms))

    def _send_more(self, tick: messages.Tick) -> tuple[messages.Command, ...]:
        """Closed model: an arrival for each slot that is free, until the schedule ends."""
        slots, counts = self._slots, tick.counts
        if slots is None:
            return ()
        freed = counts.ended - counts.rejected + self._lost
        slots.free(freed - self._freed, tick.elapsed_s)
        slots.free(counts.rejected - self._rejected, tick.elapsed_s + _REJECTED_S)
        # Late rows take back what was counted as lost; its slots are free already.
        self._freed, self._rejected = max(freed, self._freed), counts.rejected
        dues = tuple(enumerate(slots.due(tick.elapsed_s + _AHEAD_S), self._issued))
        self._issued = slots.issued
        last = slots.over(tick.elapsed_s)
        if last:
            self._slots = None
        return (messages.SendMore(dues, last),) if dues or last else ()

    def _end_dispatch(self, tick: messages.Tick, terms: messages.Terms) -> tuple[messages.Command, ...]:
        self.stage, self._deadline_s, self._slots = Stage.DRAINING, None, None
        ended = messages.Note("DispatchEnded", "every arrival was answered or missed")
        if terms.concurrency is None:
            return (ended, *self._drain(tick, terms))
        missed = max(0, (terms.concurrency.runs or 0) - self._issued)
        return (messages.SettleClosed(missed, self._why_stopped or messages.STOPPED), ended, *self._drain(tick, terms))

    def _drain(self, tick: messages.Tick, terms: messages.Terms) -> tuple[messages.Command, ...]:
        if self._deadline_s is None:
            self._deadline_s = tick.now_s + terms.drain_s
        running = tick.counts.in_flight
        if self._cut:
            note = messages.Note(self._cut, f"{running} runs were still in flight")
        elif not running:
            note = messages.Note("Drained", "every accepted run has ended")
        elif tick.now_s >= self._deadline_s:
            note = messages.Note("DrainTimedOut", f"{running} runs were still in flight after {terms.drain_s:g} s")
        else:
            return ()
        return (note, *self._close(terms))

    # --- early ends ---------------------------------------------------------------------------------------------

    def _stop(self, reason: str, why: str) -> tuple[messages.Command, ...]:
        again, self._why_stopped, self._slots = self._why_stopped is not None, why, None
        if self.stage is not Stage.DISPATCHING:
            return ()
        stop = messages.StopGenerator(why)
        message = why if why != messages.STOPPED else "dispatch was stopped before the end of the schedule"
        return (stop,) if again else (messages.Note(reason, message), stop)

    def _end_early(self, cut: messages.Cut) -> tuple[messages.Command, ...]:
        self._cut = self._cut or cut.reason
        if self._terms is None and cut.reason in {messages.INTERRUPTED, messages.WORKERS_LOST}:
            if cut.reason == messages.WORKERS_LOST:
                self._exit_code, self._verdict = (
                    ExitCode.INVALID,
                    f"error: {cut.why} before the first arrival\n{_WORKERS}",
                )
            return self._finish()
        return self._stop(cut.reason, cut.why)

    def _write_failed(self, event: messages.WriteFailed) -> tuple[messages.Command, ...]:
        """Stop at once: nothing may be sent that is not recorded. Rows of open requests are held until the end."""
        again, self._cut = self._cut == _UNRECORDED, self._cut or _UNRECORDED
        if self._exit_code is ExitCode.OK:
            self._exit_code, self._verdict = ExitCode.INVALID, event.verdict
        if self.stage is Stage.DISPATCHING:
            return () if again else (messages.StopGenerator(messages.STOPPED),)
        if self._closing or self._terms is None:
            return ()
        return self._close(self._terms)

    def _failed(self, event: messages.Failed) -> tuple[messages.Command, ...]:
        self._exit_code, self._verdict = event.exit_code, event.verdict
        if self._terms is None or self._closing:
            return self._finish()
        stop = (messages.StopGenerator(messages.STOPPED),) if self.stage is Stage.DISPATCHING else ()
        return (*stop, *self._close(self._terms))

    # --- the end ------------------------------------------------------------------------------------------------

    @property
    def _closing(self) -> bool:
        return self.stage in {Stage.CLEANING, Stage.REPORTING}

    def _close(self, terms: messages.Terms) -> tuple[messages.Command, ...]:
        self.stage = Stage.CLEANING if terms.clean_up else Stage.REPORTING
        return (messages.Close(terms.clean_up),)

    def _closed(self) -> tuple[messages.Command, ...]:
        if self._exit_code is not ExitCode.OK:
            return self._finish()
        self.stage = Stage.REPORTING
        return (messages.WriteReport(),)

    def _finish(self) -> tuple[messages.Command, ...]:
        self.stage = Stage.OVER
        return (
            messages.Finish(
                ExitCode.INTERRUPTED if self._cut == messages.INTERRUPTED else self._exit_code, self._verdict
            ),
        )


def _late(late: messages.LateRows) -> str:
    came = f"{late.arrivals:,} arrivals of worker {late.index} ({late.client}) were recorded"
    return f"{came} after it had been given up: it had been stopped or cut off, and came back"
