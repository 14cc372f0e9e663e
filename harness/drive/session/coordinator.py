"""The Locust process that controls tests: the only one, or the master. One test at a time."""

import time
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent

from harness.drive.conclusion import Conclusion
from harness.drive.console import say
from harness.drive.http.clients import BoundCredentials
from harness.drive.locust_statistics import Statistics
from harness.drive.processes import LocalSimulator
from harness.drive.session import interrupts
from harness.drive.session.runner import SessionRunner
from harness.drive.session.setup import LoadTest, Ready, RunContext, get_ready
from harness.drive.session.status_reporter import StatusReporter
from harness.drive.session_messages import INTERRUPTED, NO_WORKER, WORKERS_LOST, Cut, Stop
from harness.drive.workers.cluster import Cluster, finish_killed
from harness.drive.workers.load_generator import LoadGenerator
from harness.drive.workers.local import LocalGenerator
from harness.model.errors import PipeswarmError
from harness.model.live.state import Stage
from harness.model.text.inert import one_line
from harness.plan.environment import platform_host, verifies_tls
from harness.plan.form import Form
from harness.plan.options import Settings, check_texts, files_of_schedules, settings
from harness.plan.validate import Checked, check
from harness.targets.target import PROCESSES, Platform

from locust.runners import MasterRunner

_UNJUDGED = "nodes, pods, the artifact store, quotas and the autoscaler can't be judged"
_PREPARING_S = 20.0  # START waits this long for a refusal; the tab shows a later one
_LOOK_EVERY_S = 0.05
_TIMER_S = 1.0  # Locust counts whole seconds, from a little earlier
_CLOCK_NOTE_S = 0.01  # a worker's clock that is off by more is noted


class Coordinator:
    """Starts, stops and concludes the tests of `target` in this process.

    `reporter` shows them; `form` is that of the web UI, if there is one.
    """

    def __init__(
        self, target: str, platform: Platform, environment: Any, bound: BoundCredentials, statistics: Statistics
    ) -> None:
        self._target = target
        self._platform = platform
        self._environment = environment
        self._bound = bound
        self._statistics = statistics
        self._simulator = LocalSimulator()
        self._conclusion = Conclusion(environment)
        self._cluster: Cluster | None = None
        self._runner: SessionRunner | None = None
        self._test: gevent.Greenlet | None = None
        self._interrupted = False
        self._began_s = 0.0  # the latest test
        self._stopping = False  # `stop` waits for the end of the test
        self._closing = False
        self.reporter = StatusReporter()
        self.form: Form | None = None
        runs_dir = Path(environment.parsed_options.runs_dir)
        if isinstance(environment.runner, MasterRunner):
            self._cluster = Cluster(environment.runner, runs_dir)
            self._cluster.recover_leftovers()
        else:
            finish_killed(runs_dir)

    def check(self) -> None:
        """Check the configuration before a test is started, and start the simulated platform if that is to be loaded.

        Raises:
            PipeswarmError: no test can be started like this.
        """
        checked = self._check()
        if not checked.settings.host:
            self._environment.host = self._simulator.prepare(*self._profile(checked)).url

    def start(self) -> None:
        """Start a test in a greenlet of its own."""
        self._interrupted = self._stopping = False
        self.reporter.begin()
        self._runner = SessionRunner(self._prepare, self._generator_for, self._statistics)
        self._test = gevent.spawn(self._run, self._runner)
        self._began_s = time.monotonic()
        interrupts.notify(self._on_interrupt, self._test)

    @property
    def latest(self) -> SessionRunner | None:
        """The test that was started last."""
        return self._runner

    @property
    def simulated(self) -> tuple[str, ...]:
        """The addresses of the simulated platforms of this process, the present one last."""
        return self._simulator.urls

    def refusal_after(self, before: SessionRunner | None) -> str:
        """Why the test that follows `before` can't start; "" if it can, or if that is still open after some time."""
        if self._without_workers or (before is not None and before.stage is not Stage.OVER):
            return ""  # Locust starts none
        until_s = time.monotonic() + _PREPARING_S
        while (latest := self._runner) is before or latest is None or latest.stage is Stage.PREPARING:
            if time.monotonic() >= until_s:
                return ""
            gevent.sleep(_LOOK_EVERY_S)
        return latest.verdict if latest.stage is Stage.OVER and latest.folder is None else ""

    def stop(self) -> None:
        """Stop in the web UI drains, a second Stop does not wait; Locust's ``-t`` is a hard limit.

        Returns when the test is over: Locust's page shows it as stopping until then.
        """
        runner = self._runner
        if runner is None or runner.stage is Stage.OVER or gevent.getcurrent() is self._test:
            return
        if self._interrupted:
            runner.tell(Cut(INTERRUPTED))
        elif self._without_workers:  # Locust stops the test
            runner.tell(Cut(WORKERS_LOST, NO_WORKER))
        elif self._environment.parsed_options.headless:
            runner.tell(Cut("TimeLimit" if self._is_time_up() else INTERRUPTED))
        else:
            runner.tell(Cut("Stopped") if self._stopping else Stop())
        self._stopping = True
        self._join()

    def close(self) -> None:
        """The process ends, perhaps with a test still running: it is sealed as interrupted."""
        self._closing = True
        if self._runner is not None and gevent.getcurrent() is not self._test:
            self._runner.tell(Cut(INTERRUPTED))
        self._join()
        self._simulator.stop()

    def quit(self, exit_code: int) -> None:
        """Locust has printed its tables and exits."""
        self._conclusion.quit(exit_code)

    @property
    def _without_workers(self) -> bool:
        runner = self._environment.runner
        return isinstance(runner, MasterRunner) and runner.worker_count <= 0

    def _is_time_up(self) -> bool:
        """Whether Locust's ``-t`` stops the test: a master's SIGTERM looks the same."""
        limit_s = self._environment.parsed_options.run_time
        return bool(limit_s) and time.monotonic() - self._began_s >= limit_s - _TIMER_S

    def _on_interrupt(self) -> None:
        self._interrupted = True
        if self._environment.web_ui is not None:
            self._environment.web_ui.stop()
        else:
            self._environment.runner.quit()

    def _join(self) -> None:
        if self._test is not None and self._test is not gevent.getcurrent():
            self._test.join()

    # --- a test -------------------------------------------------------------------------------------------------

    def _run(self, runner: SessionRunner) -> None:
        """One test from beginning to end, and what it means for this process."""
        try:
            runner.run()
        finally:
            self.reporter.done(runner)
            self._conclusion.reach(runner.exit_code, runner.verdict, self.reporter.document("report.md"))
            if self._closing:
                pass  # Locust is ending already
            elif self._environment.parsed_options.headless:
                self._environment.runner.quit()
            elif not self._stopping:
                self._environment.runner.stop()

    def _prepare(self) -> Ready:
        check_texts(self._environment.parsed_options, self._platform)
        with self._discreet(files_of_schedules()):
            given = self._settings()
        with self._discreet():
            checked = check(given, self._target, self._platform)
            say(given.notes())
            context = self._context(checked)
            assert self._runner is not None
            self.reporter.follow(self._runner)
            return get_ready(checked, context)

    @contextmanager
    def _discreet(self, options: Collection[str] | None = None) -> Iterator[None]:
        """The page must not show what is in files that its form names; see `Form.discreet`. The terminal may."""
        try:
            yield
        except Exception as error:
            told = self.form.discreet(error, options) if self.form is not None else error
            if told is error:
                raise
            say(f"error: {error}\n" if isinstance(error, PipeswarmError) else traceback.format_exc())
            raise told from None  # Locust's page shows its log, also tracebacks

    def _check(self) -> Checked:
        return check(self._settings(), self._target, self._platform)

    def _settings(self) -> Settings:
        host = self._environment.host or ""
        if host in self._simulator.urls:
            host = ""
        host = host or platform_host(self._platform.HOST_VARIABLE)
        options = self._environment.parsed_options
        found = settings(options, host, self._platform)
        return replace(found, verify_tls=verifies_tls(options, self._platform, found.host))

    def _context(self, checked: Checked) -> RunContext:
        simulator = None
        if not checked.settings.host:
            simulator = self._simulator.load(*self._profile(checked))
            self._environment.host = simulator.url
        elif warning := self._bound.withheld_from(checked.settings.host):
            self._warn(f"{warning}; start with --host {checked.settings.host} to send it there")
        host = simulator.url if simulator else checked.settings.host
        runner = self._environment.runner
        workers = runner.worker_count if isinstance(runner, MasterRunner) else 1
        return RunContext(self._platform, self._bound.for_host(host), self._bound.allows(host), simulator, workers)

    def _warn(self, warning: str) -> None:
        say(f"warning: {one_line(warning)}\n")
        self.reporter.warn(warning)

    def _profile(self, checked: Checked) -> tuple[str, str, int]:
        return checked.settings.simulate, checked.settings.fault, checked.settings.seed

    # --- its load generator -------------------------------------------------------------------------------------

    def _generator_for(self, test: LoadTest, runner: SessionRunner) -> LoadGenerator:
        if test.plan.host != PROCESSES and (problem := test.observer.cluster_problem()):
            self._warn(f"the cluster can't be observed ({problem}): {_UNJUDGED}")
        if self._cluster is None:
            return LocalGenerator(self._bound.for_host(test.plan.host), runner.book)
        generator = self._cluster.generator(test.plan.id, test.folder, runner)
        for index, ahead_s in generator.sync_clocks().items():
            if abs(ahead_s) > _CLOCK_NOTE_S:
                offset = f"the clock of worker {index} is {ahead_s:+.3f} s off the master's"
                test.note("ClockSkew", f"{offset}; its timestamps are corrected")
        return generator
