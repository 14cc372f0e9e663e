import gc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.drive.recording.ledger import Ledger
from harness.model import Event, Outcome, Span, Submission
from harness.store import RunFolder
from harness.store.folder import encode


def row(seq, outcome=Outcome.ACCEPTED):
    run = f"r{seq}" if outcome is Outcome.ACCEPTED else None
    sent_at = None if outcome is Outcome.MISSED else 1_000_000_000
    return Submission(seq, "s", f"{seq}-s", 0, sent_at, sent_at, outcome, run, 0, 200, None)


def end(seq, state="SUCCEEDED", at=5_000_000_000, message=""):
    return Event(at, "Run", f"r{seq}", state, message)


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, "a")


steps = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["row", "end"])), max_size=40)


@given(steps, st.lists(st.sampled_from(list(Outcome)), min_size=10, max_size=10))
def test_the_identity_of_the_ledger_holds_in_any_order(tmp_path_factory, order, outcomes):
    ledger = Ledger(RunFolder.create(tmp_path_factory.mktemp("l"), "a").recorder(), 10)
    booked, ended = set(), set()
    for seq, what in order:
        if what == "row" and seq not in booked:
            booked.add(seq)
            ledger.book(row(seq, outcomes[seq]))
        elif what == "end" and seq not in ended and outcomes[seq] is Outcome.ACCEPTED:
            ended.add(seq)
            ledger.end(end(seq))
    counts = ledger.counts
    accepted = {seq for seq in booked if outcomes[seq] is Outcome.ACCEPTED}
    assert counts.recorded == len(booked)
    assert (counts.done, counts.in_flight) == (len(accepted & ended), len(accepted - ended))
    assert counts.recorded == counts.done + counts.failed + counts.in_flight + counts.missed + counts.rejected


def test_an_end_has_its_duration_since_the_due_time_and_its_error(folder):
    ledger = Ledger(folder.recorder(), 2)
    ledger.book(row(0))
    ledger.book(row(1))
    assert ledger.end(end(0)).duration_s == 5.0
    failed = ledger.end(end(1, "FAILED", message="disk full"))
    assert (failed.name, failed.error) == ("1-s", "disk full")
    assert (ledger.counts.done, ledger.counts.failed, ledger.counts.in_flight) == (1, 1, 0)


def test_a_run_that_ended_in_the_second_in_which_it_was_due_took_no_negative_time(folder):
    ledger = Ledger(folder.recorder(), 1)
    ledger.book(replace(row(0), due_at=end(0).at + 10**8))
    assert ledger.end(end(0)).duration_s == 0.0


def test_a_rejection_is_compared_once_a_run_has_ended_that_was_due_with_it_or_later(folder):
    ledger = Ledger(folder.recorder(), 9)

    def book(seq, outcome):
        ledger.book(replace(row(seq, outcome), due_at=seq))
        return ledger.counts.rejected_with_ended

    assert book(0, Outcome.REJECTED) == 1, "nothing else is under way"
    assert [book(1, Outcome.ACCEPTED), book(3, Outcome.REJECTED), book(2, Outcome.REJECTED)] == [1, 1, 1]
    assert [book(4, Outcome.ACCEPTED), book(5, Outcome.REJECTED), book(6, Outcome.ACCEPTED)] == [1, 1, 1]
    ledger.end(end(1))
    assert ledger.counts.rejected_with_ended == 1
    ledger.end(end(4))
    assert ledger.counts.rejected_with_ended == 3
    ledger.end(end(6))
    assert ledger.counts.rejected_with_ended == ledger.counts.rejected == 4


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.REJECTED])
@pytest.mark.parametrize("booked", ["row", "lines"])
def test_the_lag_of_every_arrival_that_was_sent_counts(folder, outcome, booked):
    ledger = Ledger(folder.recorder(), 2)
    for seq, lag_ns in ((0, 10**6), (1, 10**9)):
        late = replace(row(seq, outcome), sent_at=row(seq).due_at + lag_ns)
        _ = ledger.book(late) if booked == "row" else list(ledger.book_lines(encode(late)))
    assert ledger.lags.quantile(0.4) == pytest.approx(0.001, rel=0.1)
    assert ledger.lags.take_worst() == pytest.approx(1.0, rel=0.01)


@pytest.mark.fault("none")
def test_rows_that_could_not_be_written_follow_once_there_is_room_in_their_order(folder, monkeypatch):
    recorder = folder.recorder()
    ledger, write, full = Ledger(recorder, 3), recorder.append, [True]

    def append(kind, lines):
        if full[0]:
            write(kind, lines[:20])  # what there was room for
            raise OSError(28, "No space left on device")
        write(kind, lines)

    monkeypatch.setattr(recorder, "append", append)
    for seq in (0, 1):
        ledger.book(row(seq))
    assert (ledger.failure.errno, len(ledger.write_held())) == (28, 2)
    full[0] = False
    ledger.book(row(2))
    assert (ledger.failure, ledger.write_held()) == (None, ())
    assert [each.seq for each in folder.records(Submission)] == [0, 1, 2]


@pytest.mark.fault("none")
def test_half_a_row_is_ended_once_by_a_line_break_and_nothing_else_is_added(folder, monkeypatch):
    recorder = folder.recorder()
    ledger, write, fails = Ledger(recorder, 3), recorder.append, [True]

    def append(kind, lines):
        if fails:
            fails.clear()
            write(kind, lines[:20])
            raise OSError(28, "No space left on device")
        write(kind, lines)

    monkeypatch.setattr(recorder, "append", append)
    for seq in range(3):
        ledger.book(row(seq))
    lines = [encode(row(seq)) for seq in range(3)]
    assert (folder.path / "submissions.jsonl").read_bytes() == b"\n".join((lines[0][:20], b"".join(lines)))


def test_a_run_id_that_another_open_run_has_is_not_waited_for(folder):
    ledger = Ledger(folder.recorder(), 3)
    for seq in range(3):
        ledger.book(replace(row(seq), run="r0"))
    assert (ledger.counts.repeated, ledger.counts.in_flight) == (2, 1)
    ledger.end(end(0))
    assert (ledger.counts.done, ledger.counts.in_flight, ledger.counts.ended) == (1, 0, 3)


def test_an_end_that_is_shown_twice_leaves_nothing_behind(folder):
    """By the cluster and by the listing: what is kept for a row that is still to come would stay for ever."""
    ledger = Ledger(folder.recorder(), 2)
    ledger.book(row(0))
    assert ledger.end(end(0)) is not None
    assert ledger.end(end(0)) is None
    assert not ledger._ended_first
    ledger.end(end(1))
    assert ledger.book(row(1)) is not None, "seen before its row"
    assert ledger.counts.done == 2


def test_a_run_that_the_platform_removed_is_not_waited_for(folder):
    ledger = Ledger(folder.recorder(), 1)
    ledger.book(row(0))
    assert ledger.end(end(0, "REMOVED", message="removed before its end was seen")).error.startswith("removed")
    assert (ledger.counts.done, ledger.counts.failed, ledger.counts.in_flight) == (0, 1, 0)


def test_ends_of_other_tests_and_other_events_are_ignored(folder):
    ledger = Ledger(folder.recorder(), 1)
    assert ledger.end(end(7)) is None
    assert ledger.end(Event(1, "Pod", "r0", "FAILED")) is None
    assert ledger.end(Event(1, "Run", "r0", "RUNNING")) is None
    assert ledger.counts.done == 0


def test_lines_of_a_worker_are_written_unchanged_and_counted(folder):
    ledger = Ledger(folder.recorder(), 3)
    ledger.end(end(2))
    lines = b"".join(
        encode(row(seq, outcome)) for seq, outcome in enumerate([Outcome.MISSED, Outcome.REJECTED, Outcome.ACCEPTED])
    )
    (finished,) = ledger.book_lines(lines)
    assert finished.name == "2-s"
    assert (folder.path / "submissions.jsonl").read_bytes() == lines
    assert (ledger.counts.sent, ledger.counts.missed, ledger.counts.done) == (2, 1, 1)
    assert ledger.lags.take_worst() == 1.0


def test_rows_spans_and_ends_of_one_stream_go_to_their_own_files(folder):
    """Rows, phases and ends come in one stream, from here and from workers; an end counts when it is read back."""
    ledger = Ledger(folder.recorder(), 2)
    records = [row(0), Span("r0", "", "run", 1, 5), end(0)]
    for record in records:
        assert ledger.book(record) is None
    assert list(ledger.book_lines(b"".join(encode(r) for r in (row(1), Span("r1", "", "run", 1, 5), end(1))))) == []
    assert [each.seq for each in folder.records(Submission)] == [0, 1]
    assert [each.run for each in folder.records(Span)] == ["r0", "r1"]
    assert [ledger.end(each).name for each in folder.records(Event)] == ["0-s", "1-s"]
    assert ledger.counts.done == 2


def test_open_runs_leave_the_garbage_collector_nothing_to_examine(folder):
    """It examines all that is young at once, between two arrivals."""
    ledger = Ledger(folder.recorder(), 1000)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects(generation=0))
        for seq in range(1000):
            ledger.book(row(seq))
        kept = len(gc.get_objects(generation=0)) - before
    finally:
        gc.enable()
    assert ledger.counts.in_flight == 1000
    assert kept < 100
