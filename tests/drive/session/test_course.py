"""The course of a test, as tables of events and commands."""

from dataclasses import replace

import pytest

from harness.drive.session.course import Session
from harness.drive.session_messages import (
    INTERRUPTED,
    NO_WORKER,
    STOPPED,
    WORKERS_LOST,
    Close,
    Closed,
    Cut,
    Failed,
    Finish,
    LateRows,
    Note,
    Open,
    Opened,
    Prepared,
    Reported,
    SendMore,
    SettleClosed,
    StartGenerator,
    Stop,
    StopGenerator,
    Terms,
    Tick,
    WorkerLost,
    WriteFailed,
    WriteReport,
)
from harness.model import Concurrency, Level
from harness.model.abort import parse_abort
from harness.model.errors import ExitCode
from harness.model.live.state import Counts, Stage

TERMS = Terms(intended=3, drain_s=60.0)
INTERRUPT = Cut(INTERRUPTED)
ENDED = Note("DispatchEnded", "every arrival was answered or missed")
STOP_NOTE = "dispatch was stopped before the end of the schedule"


def tick(now_s=1.0, *, accepted=3, done=0, failed=0, finished=False, elapsed_s=0.0, **more):
    counts = Counts(3, accepted=accepted, done=done, failed=failed, **more)
    return Tick(now_s, elapsed_s, counts, generator_finished=finished)


def in_flight(reason, count=3, more=""):
    return Note(reason, f"{count} runs were still in flight{more}")


def session(*events, terms=TERMS):
    """A session that was told these events, and its answer to the last one."""
    course = Session()
    commands = ()
    for event in (Prepared(terms), *events):
        commands = course.on(event)
    return course, commands


DISPATCHING = (Opened(7),)
DRAINING = (*DISPATCHING, tick(finished=True))
REPORTING = (*DRAINING, tick(done=3), Closed())
VALID = Reported(ExitCode.OK, "VALID")


def test_a_test_takes_its_course_from_its_preparation_to_its_report():
    course = Session()
    table = [
        (Prepared(TERMS), (Open(),), Stage.PREPARING),
        (Opened(7), (Note("Started", "3 arrivals", at=7), StartGenerator(7)), Stage.DISPATCHING),
        (tick(accepted=1), (), Stage.DISPATCHING),
        (tick(finished=True), (ENDED,), Stage.DRAINING),
        (tick(done=2), (), Stage.DRAINING),
        (tick(done=3), (Note("Drained", "every accepted run has ended"), Close(clean_up=False)), Stage.REPORTING),
        (Closed(), (WriteReport(),), Stage.REPORTING),
        (Reported(ExitCode.SLO_FAILED, "slow"), (Finish(ExitCode.SLO_FAILED, "slow"),), Stage.OVER),
        (INTERRUPT, (), Stage.OVER),
    ]
    for event, commands, stage in table:
        assert (course.on(event), course.stage) == (commands, stage), event


def test_runs_that_have_all_ended_at_the_last_answer_need_no_drain():
    course, commands = session(*DISPATCHING, tick(done=3, finished=True), terms=Terms(3, 60.0, clean_up=True))
    assert commands == (ENDED, Note("Drained", "every accepted run has ended"), Close(clean_up=True))
    assert course.stage is Stage.CLEANING
    assert course.on(Closed()) == (WriteReport(),)
    assert course.stage is Stage.REPORTING


@pytest.mark.parametrize(
    ("stage", "event", "commands", "after"),
    [
        (DISPATCHING, Stop(), (Note("Stopped", STOP_NOTE), StopGenerator(STOPPED)), Stage.DISPATCHING),
        (DISPATCHING, Cut("TimeLimit"), (Note("TimeLimit", STOP_NOTE), StopGenerator(STOPPED)), Stage.DISPATCHING),
        (
            DISPATCHING,
            Cut(WORKERS_LOST, NO_WORKER),
            (Note("WorkersLost", NO_WORKER), StopGenerator(NO_WORKER)),
            Stage.DISPATCHING,
        ),
        (DISPATCHING, INTERRUPT, (Note("Interrupted", STOP_NOTE), StopGenerator(STOPPED)), Stage.DISPATCHING),
        ((*DISPATCHING, Stop()), Cut("Stopped"), (StopGenerator(STOPPED),), Stage.DISPATCHING),
        (DISPATCHING, WorkerLost(1, "b", 0), (Note("WorkerLost", "worker 1 (b) disconnected"),), Stage.DISPATCHING),
        (DISPATCHING, WriteFailed("full"), (StopGenerator(STOPPED),), Stage.DISPATCHING),
        ((*DISPATCHING, WriteFailed("full")), WriteFailed("full"), (), Stage.DISPATCHING),
        (DISPATCHING, Failed(ExitCode.BUG, "x"), (StopGenerator(STOPPED), Close(clean_up=False)), Stage.REPORTING),
        (DRAINING, Failed(ExitCode.BUG, "x"), (Close(clean_up=False),), Stage.REPORTING),
        (DRAINING, Stop(), (), Stage.DRAINING),
        (DRAINING, INTERRUPT, (), Stage.DRAINING),
        (DRAINING, WriteFailed("full"), (Close(clean_up=False),), Stage.REPORTING),
        ((*DRAINING, INTERRUPT), tick(), (in_flight("Interrupted"), Close(clean_up=False)), Stage.REPORTING),
        ((*DRAINING, Stop(), Cut("Stopped")), tick(), (in_flight("Stopped"), Close(clean_up=False)), Stage.REPORTING),
        (DRAINING, tick(60.9), (), Stage.DRAINING),
        (
            DRAINING,
            tick(61.0, done=1),
            (in_flight("DrainTimedOut", 2, " after 60 s"), Close(clean_up=False)),
            Stage.REPORTING,
        ),
        (REPORTING, Stop(), (), Stage.REPORTING),
        (REPORTING, INTERRUPT, (), Stage.REPORTING),
        (REPORTING, tick(), (), Stage.REPORTING),
        (REPORTING, WriteFailed("full"), (), Stage.REPORTING),
    ],
)  # fmt: skip
def test_what_happens_in_each_stage(stage, event, commands, after):
    course, answer = session(*stage, event)
    assert (answer, course.stage) == (commands, after)


def test_an_interrupt_while_nothing_has_been_made_ends_the_test_at_once():
    course = Session()
    assert course.on(INTERRUPT) == (Finish(ExitCode.INTERRUPTED, ""),)
    assert course.stage is Stage.OVER


def test_a_time_limit_while_it_prepares_is_no_interrupt():
    course = Session()
    assert course.on(Cut("TimeLimit")) == ()
    course.on(Prepared(TERMS))
    assert course.on(Opened(7))[-1] == StopGenerator(STOPPED)


@pytest.mark.parametrize("early", [Stop(), Stop(why="enough"), INTERRUPT])
def test_a_stop_before_the_first_arrival_misses_them_all(early):
    _, commands = session(early, Opened(7))
    assert commands == (Note("Started", "3 arrivals", at=7), StartGenerator(7), StopGenerator(early.why))


def test_after_a_stop_open_runs_are_still_waited_for():
    course, commands = session(*DISPATCHING, Stop(), tick(50.0, accepted=2), tick(99.0, accepted=2, finished=True))
    assert (commands, course.stage) == ((ENDED,), Stage.DRAINING)


def test_a_cut_gives_open_requests_five_seconds_before_they_count_as_unanswered_and_open_runs_none():
    course, _ = session(*DISPATCHING, INTERRUPT)
    assert course.on(tick(100.0)) == ()
    assert course.on(tick(104.9)) == ()
    assert course.on(tick(105.0)) == (StopGenerator(STOPPED, at_once=True),)
    assert course.on(tick(105.3)) == ()
    assert course.on(tick(105.5, finished=True)) == (ENDED, in_flight("Interrupted"), Close(clean_up=False))


def test_when_rows_can_not_be_written_open_requests_are_waited_for_as_long_as_they_may_take():
    course, _ = session(*DISPATCHING, WriteFailed("full"), terms=Terms(3, 60.0, answer_s=30.0))
    assert course.on(tick(100.0)) == ()
    assert course.on(tick(129.9)) == ()
    assert course.on(tick(130.0)) == (StopGenerator(STOPPED, at_once=True),)
    assert course.on(tick(131.0, finished=True)) == (ENDED, in_flight("Unrecorded"), Close(clean_up=False))
    assert course.on(Closed()) == (Finish(ExitCode.INVALID, "full"),)


def test_a_worker_that_books_nothing_after_a_cut_is_not_waited_for():
    course, _ = session(*DISPATCHING, INTERRUPT, tick(100.0), tick(105.0))
    assert course.on(tick(107.9)) == ()
    assert course.on(tick(108.0)) == (ENDED, in_flight("Interrupted"), Close(clean_up=False))


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((*DISPATCHING, INTERRUPT, tick(finished=True), Closed(), VALID), ExitCode.INTERRUPTED),
        ((*DRAINING, INTERRUPT, tick(), Closed(), VALID), ExitCode.INTERRUPTED),
        ((*REPORTING, INTERRUPT, VALID), ExitCode.INTERRUPTED),
        ((*REPORTING, VALID), ExitCode.OK),
        ((*DRAINING, Cut("Stopped"), tick(), Closed(), VALID), ExitCode.OK),
        ((*DRAINING, Cut("Stopped"), INTERRUPT, tick(), Closed(), VALID), ExitCode.OK),
        ((*DRAINING, tick(99.0), Closed(), Reported(ExitCode.INVALID, "VALID")), ExitCode.INVALID),
    ],
    ids=["dispatching", "draining", "reporting", "never", "stopped", "stopped before", "timed out"],
)
def test_the_exit_code_is_the_reports_unless_the_test_was_interrupted(events, code):
    assert session(*events)[1] == (Finish(code, "VALID"),)


@pytest.mark.parametrize(
    ("stage", "event", "finish"),
    [
        ((*DISPATCHING, WriteFailed("disk full")), tick(finished=True), Finish(ExitCode.INVALID, "disk full")),
        (DRAINING, WriteFailed("disk full"), Finish(ExitCode.INVALID, "disk full")),
        ((*DRAINING, tick(done=3)), WriteFailed("disk full"), Finish(ExitCode.INVALID, "disk full")),
        (
            (*DISPATCHING, INTERRUPT, WriteFailed("disk full")),
            tick(finished=True),
            Finish(ExitCode.INTERRUPTED, "disk full"),
        ),
        (
            (*DISPATCHING, WriteFailed("disk full"), INTERRUPT),
            tick(finished=True),
            Finish(ExitCode.INVALID, "disk full"),
        ),
        ((), Failed(ExitCode.BUG, "no worker"), Finish(ExitCode.BUG, "no worker")),
        (DISPATCHING, Failed(ExitCode.BUG, ""), Finish(ExitCode.BUG, "")),
    ],
)
def test_a_failure_closes_the_test_without_a_report(stage, event, finish):
    course, _ = session(*stage, event)
    assert course.on(Closed()) == (finish,)


@pytest.mark.parametrize("code", [ExitCode.BAD_CONFIG, ExitCode.UNREACHABLE, ExitCode.BUG])
def test_where_preparing_fails_there_is_nothing_to_close(code):
    course = Session()
    assert course.on(Failed(code, "error: no")) == (Finish(code, "error: no"),)


def test_a_test_that_loses_its_last_worker_while_preparing_ends_with_that_reason():
    course = Session()
    (finish,) = course.on(Cut(WORKERS_LOST, NO_WORKER))
    assert (finish.exit_code, course.stage) == (ExitCode.INVALID, Stage.OVER)
    assert finish.verdict.startswith("error: the last worker went missing before the first arrival")


def test_an_internal_error_while_closing_ends_the_test():
    _, commands = session(*DRAINING, tick(done=3), Failed(ExitCode.BUG, ""))
    assert commands == (Finish(ExitCode.BUG, ""),)


def test_an_abort_rule_cuts_the_test():
    course, _ = session(*DISPATCHING, terms=Terms(3, 60.0, abort_on=(parse_abort("failed_ratio > 0.5 after 1"),)))
    why = "aborted by failed_ratio > 0.5 after 1: it was 1"
    assert course.on(tick(1.0, accepted=1, failed=1)) == (Note("Aborted", why), StopGenerator(why))
    assert course.on(tick(2.0, accepted=3, failed=1, finished=True)) == (
        ENDED, in_flight("Aborted", 2), Close(clean_up=False),
    )  # fmt: skip


def test_an_aborted_test_says_how_old_the_counts_of_ended_runs_were():
    course, _ = session(*DISPATCHING, terms=Terms(3, 60.0, abort_on=(parse_abort("failed_ratio > 0.5 after 1"),)))
    note, _ = course.on(replace(tick(1.0, accepted=1, failed=1), ends_age_s=42.0))
    assert note.message.endswith("it was 1; ends of runs were last read 42 s before")


def test_an_abort_rule_is_checked_before_the_dispatch_is_found_finished():
    rules = (parse_abort("failed_ratio > 0.5 after 1"),)
    _, commands = session(*DISPATCHING, tick(failed=3, finished=True), terms=Terms(3, 60.0, abort_on=rules))
    assert [type(command) for command in commands] == [Note, StopGenerator, Note, Note, Close]


# --- the closed model -------------------------------------------------------------------------------------------------

TWO_AT_A_TIME = Terms(5, 60.0, concurrency=Concurrency((Level(2),), 1000.0, runs=5))


def closed(elapsed_s, **counts):
    return tick(elapsed_s, elapsed_s=elapsed_s, **counts)


def test_each_stage_of_a_closed_schedule_is_sent_when_the_one_before_it_is_over():
    terms = replace(TWO_AT_A_TIME, concurrency=Concurrency((), runs=4, stages=(1, 2, 1)))
    course, _ = session(Opened(7), terms=terms)
    assert course.on(closed(0.0, accepted=0)) == (SendMore(((0, 0.0),), last=False),)
    assert course.on(closed(1.0, accepted=1)) == ()
    assert course.on(closed(2.0, accepted=1, done=1)) == (SendMore(((1, 2.0), (2, 2.0)), last=False),)
    assert course.on(closed(3.0, accepted=3, done=2)) == ()
    assert course.on(closed(4.0, accepted=3, done=3)) == (SendMore(((3, 4.0),), last=True),)


def test_a_closed_schedule_sends_an_arrival_for_each_slot_that_gets_free():
    course, _ = session(Opened(7), terms=TWO_AT_A_TIME)
    assert course.tick_s < 0.1
    (first,) = course.on(closed(0.0, accepted=0))
    assert ([seq for seq, _ in first.dues], first.last) == ([0, 1], False)
    assert course.on(closed(1.0, accepted=2)) == ()
    assert course.on(closed(2.0, accepted=2, done=1)) == (SendMore(((2, 2.0),), last=False),)
    assert course.on(closed(3.0, accepted=3, done=3)) == (SendMore(((3, 3.0), (4, 3.0)), last=True),)
    assert course.tick_s > 0.1, "no slot is waited for any more"
    assert course.on(closed(4.0, accepted=5, done=4, finished=True)) == (SettleClosed(0, STOPPED), ENDED)


def test_the_slot_of_a_rejected_arrival_rests_and_that_of_a_lost_one_is_free():
    course, _ = session(Opened(7), closed(0.0, accepted=0), terms=TWO_AT_A_TIME)
    assert course.on(closed(1.0, accepted=1, rejected=1)) == ()
    assert course.on(closed(1.8, accepted=1, rejected=1)) == ()
    assert course.on(closed(1.9, accepted=1, rejected=1)) == (SendMore(((2, 2.0),), last=False),)
    course.on(WorkerLost(0, "a", 1))
    assert course.on(closed(3.0, accepted=1, rejected=1)) == (SendMore(((3, 3.0),), last=False),)


def test_the_slot_of_an_arrival_that_was_not_lost_after_all_is_not_freed_again():
    course, _ = session(Opened(7), closed(0.0, accepted=0), terms=TWO_AT_A_TIME)
    course.on(WorkerLost(0, "a", 1))
    assert course.on(closed(1.0, accepted=1)) == (SendMore(((2, 1.0),), last=False),)
    (note,) = course.on(LateRows(0, "a", 1))
    assert (note.reason, note.message[:24]) == ("LateRows", "1 arrivals of worker 0 (")
    assert course.on(closed(2.0, accepted=3)) == ()
    assert course.on(closed(3.0, accepted=3, done=1)) == (), "its slot was free already"
    assert course.on(closed(4.0, accepted=3, done=2)) == (SendMore(((3, 4.0),), last=False),)


def test_runs_of_a_closed_schedule_that_never_became_due_are_missed():
    course, _ = session(Opened(7), closed(0.0, accepted=0), Stop(why="enough"), terms=TWO_AT_A_TIME)
    assert course.on(closed(1.0, accepted=2, done=2)) == (), "a slot that gets free stays free"
    assert course.on(closed(2.0, accepted=2, done=1, finished=True)) == (SettleClosed(3, "enough"), ENDED)


def test_a_closed_schedule_that_ends_with_its_time_misses_none():
    terms = replace(TWO_AT_A_TIME, concurrency=Concurrency((Level(2, 60.0),), 1000.0))
    course, _ = session(Opened(7), Stop(why="enough"), terms=terms)
    assert course.on(closed(0.0, accepted=0, finished=True))[0] == SettleClosed(0, "enough")


def test_a_closed_schedule_without_a_number_of_runs_begins_until_its_time_is_up_and_keeps_the_limit_on_runs():
    terms = Terms(0, 60.0, concurrency=Concurrency((Level(5, 60.0),), 1000.0), max_runs=3)
    course, commands = session(Opened(7), terms=terms)
    assert commands[0] == Note("Started", "arrivals until the time is up", at=7)
    (sent,) = course.on(closed(0.0, accepted=0))
    assert len(sent.dues) == 3


def test_the_slots_of_every_lost_worker_are_free():
    course, _ = session(Opened(7), closed(0.0, accepted=0), terms=TWO_AT_A_TIME)
    course.on(WorkerLost(0, "a", 1))
    course.on(WorkerLost(1, "b", 1))
    assert course.on(closed(1.0, accepted=0)) == (SendMore(((2, 1.0), (3, 1.0)), last=False),)


def test_until_a_test_is_prepared_nothing_can_be_made_of_it():
    course = Session()
    assert [course.on(event) for event in (Opened(7), tick(), Closed(), VALID)] == [()] * 4
    assert course.stage is Stage.PREPARING
