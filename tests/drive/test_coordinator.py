"""The controlling process with scripted tests, Locust runners and platforms: who is stopped, how, and what is told."""

import argparse
from types import SimpleNamespace

import gevent
import pytest

from harness.drive.bound_credentials import BoundCredentials
from harness.drive.session_messages import INTERRUPTED, NO_WORKER, WORKERS_LOST, Cut, Stop
from harness.model.errors import ConfigError, ExitCode
from harness.model.live import LiveLoad, Stage
from harness.targets import hetida
from harness.targets.credentials import Credentials

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")  # this process also runs tests that use threads
    from harness.drive import coordinator as module

    from locust.runners import MasterRunner

HOST, SIMULATED = "https://hetida.example", "http://127.0.0.1:12345"
TOKEN = Credentials("opensesame")
NONE = BoundCredentials("", Credentials())
ID = "0a1b2c3d-0000-4000-8000-000000000001"  # of a transformation


class Test:
    """A `SessionRunner` that prepares, and then runs until it is told to stop."""

    __test__ = False

    def __init__(self, prepare, generator_for, statistics):
        self.prepare, self.generator_for = prepare, generator_for
        self.stage, self.folder, self.told, self.ended = Stage.PREPARING, None, [], gevent.event.Event()
        self.exit_code, self.verdict, self.ready = ExitCode.OK, "VALID", None

    def run(self):
        try:
            self.ready = self.prepare()
            self.stage, self.folder = Stage.DISPATCHING, SimpleNamespace(
                path=SimpleNamespace(__truediv__=None), read_live=lambda part: {}, write_live=lambda part, state: None
            )  # fmt: skip
            self.ended.wait()
        except ConfigError as refused:
            self.exit_code, self.verdict = refused.exit_code, f"error: {refused}"
        finally:
            self.stage, self.folder = Stage.OVER, None

    def tell(self, message):
        self.told.append(message)
        self.ended.set()

    def live(self):
        return LiveLoad(self.stage)


class Simulator:
    """One simulated platform after the other."""

    def __init__(self):
        self.urls, self.started, self.stopped = (), [], False

    def prepare(self, profile, fault, seed):
        self.started.append((profile, fault, seed))
        self.urls = (*self.urls, f"{SIMULATED}{len(self.urls)}")
        return SimpleNamespace(url=self.urls[-1])

    load = prepare

    def stop(self):
        self.stopped = True


class Local:
    """Locust's runner of a single process."""

    def __init__(self):
        self.calls = []

    def quit(self):
        self.calls.append("quit")

    def stop(self):
        self.calls.append("stop")


class Master(MasterRunner):
    """Locust's runner of a master."""

    worker_count = 2
    greenlet = ()  # its destructor looks for some

    def __init__(self):
        self.calls = []

    quit, stop = Local.quit, Local.stop


@pytest.fixture
def ctrl_c():
    """What each Ctrl-C does, by test."""
    return []


@pytest.fixture
def make(monkeypatch, tmp_path, ctrl_c):
    """Makes a coordinator, with the options of the command line."""
    monkeypatch.setattr(module, "SessionRunner", Test)
    monkeypatch.setattr(module, "LocalSimulator", Simulator)
    monkeypatch.setattr(module.interrupts, "notify", lambda interrupted, test: ctrl_c.append(interrupted))
    monkeypatch.setattr(module, "Cluster", lambda runner, runs_dir: SimpleNamespace(recover_leftovers=lambda: None))
    monkeypatch.setattr(module, "get_ready", lambda checked, context: SimpleNamespace(checked=checked, context=context))
    monkeypatch.delenv(hetida.HOST_VARIABLE, raising=False)

    def made(*, runner=None, host="", credentials=NONE, **options):
        given = argparse.Namespace(
            **{"headless": True, "json": False, "run_time": None, "runs_dir": str(tmp_path), "seed": "7", **options}
        )
        stats = SimpleNamespace(total=SimpleNamespace(num_requests=1))
        environment = SimpleNamespace(
            runner=runner or Local(), host=host, parsed_options=given, web_ui=None, stats=stats, process_exit_code=None
        )
        return module.Coordinator("hetida", hetida, environment, credentials, None), environment

    return made


def begun(coordinator):
    coordinator.start()
    until(lambda: coordinator.latest.stage is not Stage.PREPARING)
    return coordinator.latest


def until(true):
    with gevent.Timeout(30):
        while not true():
            gevent.sleep(0.01)


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


# --- what is loaded ---------------------------------------------------------------------------------------------------


def test_without_a_host_a_simulated_platform_is_started_for_each_test(make):
    coordinator, environment = make(simulate="hetida-pattern-1", fault="slow-worker")
    coordinator.check()
    assert environment.host == f"{SIMULATED}0"
    assert begun(coordinator).ready.context.simulator.url == environment.host == f"{SIMULATED}1"
    coordinator.stop()
    assert begun(coordinator).ready.context.simulator.url == f"{SIMULATED}2", (
        "its own address is no host that was given"
    )
    assert coordinator.simulated == tuple(f"{SIMULATED}{k}" for k in range(3))
    assert set(coordinator._simulator.started) == {("hetida-pattern-1", "slow-worker", 7)}
    assert coordinator.latest.ready.checked.target == "hetida"
    coordinator.stop()


def test_a_host_of_the_environment_is_loaded_with_the_credentials_that_were_given_for_it(make, monkeypatch, capsys):
    monkeypatch.setenv(hetida.HOST_VARIABLE, HOST)
    coordinator, environment = make(transformation=ID, credentials=BoundCredentials(HOST, TOKEN))
    coordinator.check()
    ready = begun(coordinator).ready
    assert (ready.checked.settings.host, ready.context.simulator, environment.host) == (HOST, None, "")
    assert (ready.context.credentials, ready.context.with_credentials) == (TOKEN, True)
    assert ready.context.platform is hetida
    assert coordinator.reporter.state()["warning"] == ""
    coordinator.stop()


def test_another_host_gets_no_credentials_and_that_is_told(make, capsys):
    coordinator, _ = make(host="https://other.example", transformation=ID, credentials=BoundCredentials(HOST, TOKEN))
    ready = begun(coordinator).ready
    assert (ready.context.credentials, ready.context.with_credentials) == (Credentials(), False)
    told = (
        f"https://other.example gets no credentials: they were given for {HOST}; "
        "start with --host https://other.example to send it there"
    )
    assert f"warning: {told}\n" in capsys.readouterr().err
    assert coordinator.reporter.state()["warning"] == told
    coordinator.stop()


@pytest.mark.parametrize(("runner", "workers"), [(Local, 1), (Master, 2)])
def test_a_test_knows_how_many_workers_share_its_load(make, runner, workers):
    coordinator, _ = make(runner=runner())
    assert begun(coordinator).ready.context.workers == workers
    coordinator.stop()


def test_notes_on_what_was_given_are_told(make, capsys):
    coordinator, _ = make(drain="20", num_users=3)
    begun(coordinator)
    told = capsys.readouterr().err
    assert "-u 3 is ignored" in told
    coordinator.stop()


# --- what the web form is told ----------------------------------------------------------------------------------------


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


# --- the load generator -----------------------------------------------------------------------------------------------


def load_test(host=HOST, problem=""):
    notes = []
    return SimpleNamespace(
        plan=SimpleNamespace(host=host, id="aaaa"), folder="folder", notes=notes, note=lambda *note: notes.append(note),
        observer=SimpleNamespace(cluster_problem=lambda: problem),
    )  # fmt: skip


def test_one_process_sends_by_itself_with_the_credentials_of_the_host(make, monkeypatch):
    made = []
    monkeypatch.setattr(module, "LocalGenerator", lambda *given: made.append(given) or "local")
    coordinator, _ = make(credentials=BoundCredentials(HOST, TOKEN))
    book = object()
    assert coordinator._generator_for(load_test(), SimpleNamespace(book=book)) == "local"
    assert coordinator._generator_for(load_test(SIMULATED), SimpleNamespace(book=book)) == "local"
    assert made == [(TOKEN, book), (Credentials(), book)]
    assert coordinator.reporter.state()["warning"] == ""


@pytest.mark.parametrize(("host", "told"), [(HOST, True), (module.PROCESSES, False)])
def test_a_cluster_that_can_not_be_observed_is_told_with_what_can_not_be_judged(make, monkeypatch, capsys, host, told):
    monkeypatch.setattr(module, "LocalGenerator", lambda *given: None)
    coordinator, _ = make()
    coordinator._generator_for(load_test(host, "no kubeconfig"), SimpleNamespace(book=None))
    warning = (
        "the cluster can't be observed (no kubeconfig): nodes, pods, the artifact store, quotas and the autoscaler "
        "can't be judged"
    )
    assert coordinator.reporter.state()["warning"] == (warning if told else "")
    assert (warning in capsys.readouterr().err) is told


def test_workers_whose_clocks_are_off_are_noted(make, monkeypatch):
    offsets = {0: 0.004, 1: -0.25, 2: 0.01, 3: 3.0}
    generator, made = SimpleNamespace(sync_clocks=lambda: offsets), []
    cluster = SimpleNamespace(generator=lambda *given: made.append(given) or generator, recover_leftovers=lambda: None)
    monkeypatch.setattr(module, "Cluster", lambda runner, runs_dir: cluster)
    coordinator, _ = make(runner=Master())
    test = load_test()
    assert coordinator._generator_for(test, "runner") is generator
    assert made == [("aaaa", "folder", "runner")]
    assert test.notes == [
        ("ClockSkew", "the clock of worker 1 is -0.250 s off the master's; its timestamps are corrected"),
        ("ClockSkew", "the clock of worker 3 is +3.000 s off the master's; its timestamps are corrected"),
    ]


def test_a_master_looks_for_what_earlier_workers_left(make, monkeypatch, tmp_path):
    recovered = []
    monkeypatch.setattr(
        module, "Cluster",
        lambda runner, runs_dir: SimpleNamespace(recover_leftovers=lambda: recovered.append((runner, runs_dir))),
    )  # fmt: skip
    _, environment = make(runner=Master())
    assert recovered == [(environment.runner, tmp_path)]
    make()
    assert len(recovered) == 1
