"""The runner with a scripted load generator and a real run folder: commands are carried out, failures become events."""

import tempfile
import time
from array import array
from types import SimpleNamespace

import gevent
import pytest

from harness.drive.recording.ledger import Ledger
from harness.drive.session import runner as module
from harness.drive.session.runner import SessionRunner
from harness.drive.session.setup import LoadTest, Ready
from harness.drive.session_messages import INTERRUPTED, Cut, Stop
from harness.drive.workers.load_generator import LedgerClosedError, UnwritableError
from harness.model import Burst, Event, Outcome, PipeswarmError, Plan, Scenario, Submission
from harness.model.errors import ConfigError, ExitCode
from harness.model.live.state import Stage
from harness.model.phases import SUCCEEDED
from harness.model.plan import Limits
from harness.store import RunFolder
from harness.store.claims import Claim
from harness.store.folder import encode
from harness.store.recovery import merge_spool
from harness.store.spools import leftovers
from harness.targets.credentials import Credentials
from harness.targets.target import Cleanup, RejectedError

PLAN = Plan("kfp", "http://h", {"name": "burst"}, 2, 7, simulated=True, id="0a1b2c")
SETTINGS = SimpleNamespace(
    limits=Limits(drain_s=20.0),
    cleanup=Cleanup.NONE,
    abort_on=(),
    most_runs=None,
    cleanup_rate=1.0,
    traced=False,
    no_what_if=False,
)


class Generator:
    """Answers both arrivals when it starts; `answers` says how."""

    def __init__(self, runner, answers):
        self.runner, self.answers, self.stopped = runner, answers, []
        self._done = False

    def start(self, assignment):
        self._done = self.answers(self.runner)

    def stop(self, why, *, at_once=False):
        self.stopped.append(why)
        self._done = True

    def send(self, dues, *, last=False):
        raise AssertionError("an open schedule")

    def finished(self):
        return self._done


class Statistics:
    def __init__(self):
        self.rows, self.ends = [], []

    def row(self, row):
        self.rows.append(row.seq)

    def finished(self, finished):
        self.ends.append(finished.name)


def row(seq):
    return Submission(seq, "s", f"{seq}-s", 1, 2, 3, Outcome.ACCEPTED, f"r{seq}", 0, 200, None)


def both_end(runner):
    for seq in range(2):
        runner.book(row(seq))
        runner.book(Event(time.time_ns(), "Run", f"r{seq}", SUCCEEDED))
    return True


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """Starts a test whose processes are left out; returns its runner, its generator and what its listener saw."""
    monkeypatch.setattr(module, "LiveDiagnosis", lambda folder: SimpleNamespace(end=lambda: None))
    monkeypatch.setattr(
        module.processes, "report", lambda path, *options: (ExitCode.OK, " ".join(("VALID", path.name, *options)))
    )
    monkeypatch.setattr(module, "lead_s", lambda offsets: 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    targets = []

    def open_test(ready):
        folder = RunFolder.create(tmp_path, "r")
        folder.write_plan(PLAN)
        recorder, offsets = folder.recorder(), ready.test.offsets
        observer = SimpleNamespace(end=lambda: None, restart_if_dead=lambda: None)
        return LoadTest(
            folder, PLAN, ready.test.schedule, offsets, ready.test.scenarios, hidden=(), with_credentials=False, target=targets[-1],
            recorder=recorder, ledger=Ledger(recorder, 2), ends=folder.tail(Event), observer=observer,
            claim=Claim(folder.path),
        )  # fmt: skip

    monkeypatch.setattr(module, "open_test", open_test)

    def start(answers=both_end, prepare=lambda: None, target=None, cleanup=Cleanup.NONE, **given):
        targets.append(target)

        def get_ready():
            prepare()
            settings = SimpleNamespace(**{**vars(SETTINGS), "cleanup": cleanup, "cleanup_rate": 1000.0, **given})
            checked, scenarios = SimpleNamespace(settings=settings), [Scenario("s", "s", {}, {})]
            planned = SimpleNamespace(plan=PLAN, schedule=Burst(2), offsets=array("d", [0.0, 0.0]), scenarios=scenarios)
            return Ready(checked, SimpleNamespace(credentials=Credentials()), planned)

        def generator_for(test, runner):
            made.append(Generator(runner, answers))
            return made[0]

        made, statistics = [], Statistics()
        runner = SessionRunner(get_ready, generator_for, statistics)
        return runner, made, statistics

    return start


def notes(runner):
    return [event.reason for event in runner.folder.records(Event) if event.kind == "Test"]


def test_a_test_runs_from_its_preparation_to_its_report(tests):
    runner, _, statistics = tests()
    assert runner.live().to_mapping() == {"stage": "preparing"}
    runner.run()
    assert (runner.exit_code, runner.verdict, runner.stage) == (ExitCode.OK, "VALID r", Stage.OVER)
    assert notes(runner) == ["Started", "DispatchEnded", "Drained"]
    assert (statistics.rows, statistics.ends) == ([0, 1], ["0-s", "1-s"])
    assert runner.live().counts.done == 2


def test_the_report_has_the_options_of_the_test(tests):
    runner, _, _ = tests(traced=True, no_what_if=True)
    runner.run()
    assert runner.verdict == "VALID r --otel --no-what-if"


@pytest.mark.parametrize("error", ["", "may not be deleted"])
def test_what_could_not_be_cleaned_up_follows_the_verdict(tests, error):
    def clean(run, how, exchange):
        if error and run == "r1":
            raise RejectedError(403, error)

    runner, _, _ = tests(target=SimpleNamespace(clean=clean), cleanup=Cleanup.DELETE)
    runner.run()
    first, *rest = runner.verdict.splitlines()
    assert first == "VALID r"
    assert rest == ([
        "warning: --cleanup delete: 1 runs were cleaned up, 1 failed: r1: may not be deleted",
        f"  → when that is solved: pipeswarm cleanup {runner.folder.path} --how delete",
    ] if error else [])  # fmt: skip
    assert notes(runner)[-1] == "CleanedUp"


def test_a_step_of_the_clock_is_noted(tests, monkeypatch):
    steps = iter([-30.0])
    monkeypatch.setattr(module.Clock, "stepped_s", lambda _: next(steps, 0.0))
    runner, _, _ = tests()
    runner.run()
    (told,) = [event.message for event in runner.folder.records(Event) if event.reason == "ClockStepped"]
    assert told == "the load generator's clock stepped by -30.0 s"


def test_an_interrupt_does_not_wait_for_a_preparation_that_hangs(tests):
    runner, made, _ = tests(prepare=lambda: gevent.sleep(1000))
    gevent.spawn_later(0.05, runner.tell, Cut(INTERRUPTED))
    runner.run()
    assert (runner.exit_code, runner.verdict, runner.folder, made) == (ExitCode.INTERRUPTED, "", None, [])


def test_a_stop_reaches_the_generator_at_once(tests):
    runner, made, _ = tests(answers=lambda runner: runner.tell(Stop(why="enough")))
    began_s = time.monotonic()
    runner.run()
    assert made[0].stopped == ["enough"]
    assert notes(runner) == ["Started", "Stopped", "DispatchEnded", "Drained"]
    assert time.monotonic() - began_s < 10


@pytest.mark.parametrize(
    ("error", "code", "verdict"),
    [
        (ConfigError("no", "yes"), ExitCode.BAD_CONFIG, "error: no\n  → yes"),
        (PipeswarmError("no worker"), ExitCode.BUG, "error: no worker"),
    ],
)
def test_an_error_of_the_preparation_is_the_verdict(tests, error, code, verdict):
    def fail():
        raise error

    runner, _, _ = tests(prepare=fail)
    runner.run()
    assert (runner.exit_code, runner.verdict, runner.folder) == (code, verdict, None)


def test_a_disk_that_gets_full_stops_the_generator_and_is_the_verdict(tests, monkeypatch):
    def fill(runner):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(runner.test.recorder, "append", full)
        runner.book(row(0))
        return False

    runner, made, _ = tests(answers=fill)
    runner.run()
    assert made[0].stopped
    assert runner.exit_code is ExitCode.INVALID
    assert f"{runner.folder.path} can't be written: No space left on device" in runner.verdict
    (spool,) = leftovers(runner.test.plan.id)
    assert f"records are in {spool}" in runner.verdict.splitlines()[-2]
    monkeypatch.undo()  # there is room again
    assert merge_spool(runner.folder, spool).arrivals == 1
    assert [each.seq for each in runner.folder.records(Submission)] == [0]


def test_rows_wait_for_room_on_the_disk(tests, monkeypatch):
    """The disk is full for a while: rows of open requests are written before the test ends, each once."""

    def fill(runner):
        if not runner.test.ledger.counts.recorded:
            append = runner.test.recorder.append
            monkeypatch.setattr(runner.test.recorder, "append", full)
            runner.book(row(0))
            monkeypatch.setattr(runner.test.recorder, "append", append)
            runner.book(row(1))
        return True

    def full(*_):
        raise OSError(28, "No space left on device")

    runner, _, _ = tests(answers=fill)
    runner.run()
    assert runner.exit_code is ExitCode.INVALID
    assert "records are in" not in runner.verdict
    assert [each.seq for each in runner.folder.records(Submission)] == [0, 1]


def test_an_internal_error_is_raised_when_everything_is_closed(tests):
    def crash(_):
        raise KeyError("a bug")

    runner, made, _ = tests(answers=crash)
    with pytest.raises(KeyError, match="a bug"):
        runner.run()
    assert (runner.exit_code, runner.stage, made[0].stopped != []) == (ExitCode.BUG, Stage.OVER, True)


def test_a_lost_worker_is_noted_before_the_end_of_the_dispatch(tests):
    def lose(runner):
        both_end(runner)
        runner.worker_lost(1, "b", 0)
        return True

    runner, _, _ = tests(answers=lose)
    runner.run()
    assert notes(runner) == ["Started", "WorkerLost", "DispatchEnded", "Drained"]


def test_a_worker_that_came_back_is_noted_with_the_number_of_its_late_arrivals(tests):
    def come_back(runner):
        runner.worker_lost(1, "b", 0)
        assert runner.book_lines(encode(row(0)) + encode(row(1))) == 2
        runner.rows_late(1, "b", 2)
        for seq in range(2):
            runner.book(Event(time.time_ns(), "Run", f"r{seq}", SUCCEEDED))
        return True

    runner, _, _ = tests(answers=come_back)
    runner.run()
    (late,) = [event for event in runner.folder.records(Event) if event.reason == "LateRows"]
    assert late.message.startswith("2 arrivals of worker 1 (b) were recorded after it had been given up")


def test_lines_that_can_t_be_written_are_refused_and_stop_the_test(tests, monkeypatch):
    def fill(runner):
        monkeypatch.setattr(runner.test.recorder, "append", full)
        with pytest.raises(UnwritableError):
            runner.book_lines(encode(row(0)))
        return False

    def full(*_):
        raise OSError(28, "No space left on device")

    runner, made, _ = tests(answers=fill)
    runner.run()
    assert made[0].stopped
    assert runner.exit_code is ExitCode.INVALID


def test_a_test_claims_its_folder_until_it_is_over_and_books_nothing_afterwards(tests):
    def claimed(runner):
        with pytest.raises(ConfigError, match="its test is still running"):
            Claim(runner.folder.path)
        return both_end(runner)

    runner, _, _ = tests(answers=claimed)
    runner.run()
    Claim(runner.folder.path).release()
    with pytest.raises(LedgerClosedError):
        runner.book_lines(encode(row(0)))
