"""The controlling process: who is stopped, how, and what the web form is told."""

from types import SimpleNamespace

import gevent
import pytest

from harness.drive.session_messages import INTERRUPTED, NO_WORKER, WORKERS_LOST, Cut, Stop
from harness.model.errors import ConfigError
from harness.model.live.state import Stage
from tests.support.coordinators import Local, Master, begun, maker, until


@pytest.fixture
def ctrl_c():
    """What each Ctrl-C does, by test."""
    return []


@pytest.fixture
def make(monkeypatch, tmp_path, ctrl_c):
    return maker(monkeypatch, tmp_path, ctrl_c)


@pytest.mark.parametrize(
    ("options", "runner", "told"),
    [
        ({}, Local, Cut(INTERRUPTED)),  # SIGTERM
        ({"run_time": 3600}, Local, Cut(INTERRUPTED)),
        ({"run_time": 1}, Local, Cut("TimeLimit")),
        ({"run_time": 1}, Master, Cut("TimeLimit")),
        ({"headless": False}, Local, Stop()),
        ({"headless": False}, Master, Stop()),
    ],
)
def test_a_test_is_stopped_for_the_reason_that_there_is(make, options, runner, told):
    coordinator, _ = make(runner=runner(), **options)
    test = begun(coordinator)
    coordinator.stop()
    assert test.told == [told]
    assert test.stage is Stage.OVER, "it waits for the end"
    coordinator.stop()
    assert test.told == [told], "it is over"


def test_without_workers_the_test_is_cut(make):
    master = Master()
    coordinator, _ = make(runner=master, headless=False)
    test = begun(coordinator)
    master.worker_count = 0
    coordinator.stop()
    assert test.told == [Cut(WORKERS_LOST, NO_WORKER)]


def test_a_second_stop_in_the_web_ui_does_not_wait_for_open_runs(make, monkeypatch):
    coordinator, _ = make(headless=False)
    test = begun(coordinator)
    monkeypatch.setattr(test, "tell", test.told.append)  # it drains
    first, second = gevent.spawn(coordinator.stop), gevent.spawn(coordinator.stop)
    until(lambda: len(test.told) == 2)
    assert test.told == [Stop(), Cut("Stopped")]
    test.ended.set()
    gevent.joinall((first, second))
    test = begun(coordinator)
    coordinator.stop()
    assert test.told == [Stop()], "the next test drains again"


@pytest.mark.parametrize("web", [False, True])
def test_an_interrupt_has_locust_end_and_cuts_the_test(make, ctrl_c, web):
    coordinator, environment = make(headless=not web)
    page = Local()
    environment.web_ui = page if web else None
    test = begun(coordinator)
    ctrl_c[0]()
    assert (page if web else environment.runner).calls == ["stop" if web else "quit"]
    coordinator.stop()
    assert test.told == [Cut(INTERRUPTED)]
    begun(coordinator)
    if web:
        coordinator.stop()
        assert coordinator.latest.told == [Stop()], "the next test was not interrupted"


def test_a_process_that_ends_cuts_its_test_and_ends_its_platform(make):
    coordinator, environment = make(headless=False)
    test = begun(coordinator)
    coordinator.close()
    assert (test.told, test.stage) == ([Cut(INTERRUPTED)], Stage.OVER)
    assert environment.runner.calls == [], "Locust is ending already"
    assert coordinator._simulator.stopped
    idle, _ = make()
    idle.close()
    idle.stop()


@pytest.mark.parametrize(("options", "calls"), [({}, ["quit"]), ({"headless": False}, ["stop"])])
def test_when_a_test_is_over_locust_ends_or_waits_for_the_next_one(make, options, calls):
    coordinator, environment = make(**options)
    begun(coordinator).ended.set()
    until(lambda: environment.runner.calls)
    assert environment.runner.calls == calls
    assert environment.process_exit_code == 0


def test_locust_that_stops_a_test_is_not_told_to_stop_it(make):
    coordinator, environment = make(headless=False)
    begun(coordinator)
    coordinator.stop()
    assert environment.runner.calls == []


def test_the_last_words_follow_when_locust_quits(make, capsys):
    coordinator, environment = make(drain="soon")
    begun(coordinator)
    until(lambda: environment.runner.calls)
    assert capsys.readouterr().err == ""
    coordinator.quit(0)
    assert "soon" in capsys.readouterr().err
    assert environment.process_exit_code == 2


def test_a_test_that_can_not_start_is_refused_with_its_reason(make):
    coordinator, _ = make(headless=False, drain="soon")
    before = coordinator.latest
    coordinator.start()
    assert "soon" in coordinator.refusal_after(before)
    assert "soon" in coordinator.reporter.state()["verdict"]


def test_a_test_that_starts_is_not_refused(make):
    coordinator, _ = make(headless=False)
    coordinator.start()
    assert coordinator.refusal_after(None) == ""
    running = coordinator.latest
    assert coordinator.refusal_after(running) == "", "Locust starts none beside it"
    running.verdict = "SLO missed"
    coordinator.stop()


def test_a_test_that_follows_is_waited_for(make):
    coordinator, _ = make(headless=False)
    first = begun(coordinator)
    coordinator.stop()
    asked = gevent.spawn(coordinator.refusal_after, first)
    gevent.sleep(0.1)
    assert not asked.ready()
    coordinator._environment.parsed_options.drain = "soon"
    coordinator.start()
    assert "soon" in asked.get(timeout=30)


def test_without_workers_no_start_is_waited_for(make):
    master = Master()
    master.worker_count = 0
    assert make(runner=master, headless=False)[0].refusal_after(None) == ""


def test_the_page_is_told_less_of_files_than_the_terminal(make, capsys):
    coordinator, _ = make(headless=False, schedule="replay", schedule_file="/nowhere/secret.csv")
    asked = []

    def discreet(error, options):
        asked.append(options)
        return ConfigError("that file can't be used")

    coordinator.form = SimpleNamespace(discreet=discreet)
    coordinator.start()
    assert coordinator.refusal_after(None) == "error: that file can't be used"
    assert "secret.csv" in capsys.readouterr().err
    assert "schedule-file" in asked[0]
