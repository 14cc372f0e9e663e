"""A coordinator with scripted tests, Locust runners and platforms."""

import argparse
from types import SimpleNamespace

import gevent
import pytest

from harness.drive.http.clients import BoundCredentials
from harness.model.errors import ConfigError, ExitCode
from harness.model.live.state import LiveLoad, Stage
from harness.targets import hetida
from harness.targets.credentials import Credentials

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")  # this process also runs tests that use threads
    from harness.drive.session import coordinator as module

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


def maker(monkeypatch, tmp_path, ctrl_c):
    """Makes coordinators, with options of the command line; `ctrl_c` gets what each Ctrl-C does, by test."""
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
