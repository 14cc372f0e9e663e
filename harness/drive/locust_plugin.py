"""Forwards Locust's events. `connect` reads as a table of contents: which event leads where."""

from typing import Any

from harness.drive.conclusion import fail_on_listener_error, refuse
from harness.drive.console import leave_out_users, say
from harness.drive.http.clients import BoundCredentials
from harness.drive.locust_statistics import Statistics
from harness.drive.session import interrupts
from harness.drive.session.coordinator import Coordinator
from harness.drive.web import form as web_form
from harness.drive.web import metrics_page
from harness.drive.web import tab as web_tab
from harness.drive.web.guard import Guard, is_loopback
from harness.drive.workers import descriptors
from harness.drive.workers import secret as cluster_secret
from harness.drive.workers.orders import WorkerEndpoint
from harness.model.errors import ConfigError, PipeswarmError
from harness.model.live.metrics import exposition
from harness.plan import kubeconfig
from harness.plan.environment import credentials, keep_grpc_from_forks, platform_host
from harness.plan.options import SERVE_METRICS, WEB_HOST_NAME, register
from harness.targets.credentials import Credentials
from harness.targets.discovery import find

from locust import events
from locust.runners import WorkerRunner

_FAREWELL_S = 10.0
_LOOPBACK = "127.0.0.1"
_CLOSED = "concurrency"  # the one schedule whose load depends on users
_OPEN = (
    "the web UI has no login: whoever reaches port {} of this machine can start tests and read their results\n"
    "  → leave --web-host out, or add --web-login"
)
_READABLE = (
    "whoever reaches port {} of this machine can read the test's figures\n  → give --serve-metrics the port only"
)


def _log_in(host: str, credentials: Credentials, context: str) -> None:
    """Ask the kubeconfig and its plugins: it takes seconds, for which the first arrivals must not wait."""
    try:
        if kubeconfig.names_kubeconfig(host):
            kubeconfig.read_access(context)
        elif credentials.token_command:
            credentials.fields(host)
    except ConfigError as error:
        refuse(error)


def connect(target: str) -> None:
    """Wire a load test of `target` to Locust's events. An unknown target is refused when Locust parses its options."""
    try:
        plugin = LocustPlugin(target)
    except ConfigError as error:
        unknown = error
        events.init_command_line_parser.add_listener(lambda **_: refuse(unknown))
        return
    events.init_command_line_parser.add_listener(plugin.add_options)
    events.init.add_listener(plugin.open)
    events.test_start.add_listener(plugin.start_test)
    events.test_stopping.add_listener(plugin.stop_test)
    events.quitting.add_listener(plugin.close)
    events.quit.add_listener(plugin.quit)


# Locust calls the listeners of `quitting` in reverse: this one comes after those of the locustfile.
events.quitting.add_listener(fail_on_listener_error)


class LocustPlugin:
    """One Locust process: it coordinates tests, or it is a worker.

    Raises:
        ConfigError: there is no such target.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._platform = find(target)
        self._coordinator: Coordinator | None = None
        self._endpoint: WorkerEndpoint | None = None
        self._metrics: Any = None  # the server of --serve-metrics

    def add_options(self, parser: Any, **_: object) -> None:
        """`init_command_line_parser`: add Pipeswarm's options, also to the form of the web UI."""
        if self._coordinator is None and self._endpoint is None:
            interrupts.exit_quietly()
            interrupts.end_forks_with_this_process()
            descriptors.raise_limit()
            keep_grpc_from_forks()
        if parser.prog == "__main__.py":  # `pipeswarm load` starts Locust as a module
            parser.prog = "locust"
        register(parser, self._platform)
        cluster_secret.configure(parser)
        parser.set_defaults(web_host=_LOOPBACK)  # Locust's default is all interfaces

    def open(self, environment: Any, runner: Any, web_ui: Any, **_: object) -> None:
        """`init`: become a worker or the coordinator, which checks the configuration before anything is started."""
        options = environment.parsed_options
        # As this process was started: a web form can't change them.
        host = environment.host or platform_host(self._platform.HOST_VARIABLE)
        try:
            given = credentials(options, self._platform)
        except ConfigError as error:
            refuse(error)
        bound = BoundCredentials(host, given)
        statistics = Statistics(environment, self._target)
        # The progress line replaces the table that Locust prints every two seconds.
        options.only_summary = options.only_summary or not options.print_stats
        if isinstance(runner, WorkerRunner):
            _log_in(host, given, options.kube_context)
            self._endpoint = WorkerEndpoint(runner, bound.for_master, statistics.row)
            self._endpoint.register()
        else:
            self._coordinator = Coordinator(self._target, self._platform, environment, bound, statistics)
            self._serve_metrics(self._coordinator, options)
            self._check(self._coordinator, web_ui, headless=options.headless)
            cluster_secret.say_exposure(runner, options)
        if options.headless and options.schedule != _CLOSED and len(environment.user_classes) == 1:
            leave_out_users()
        if not options.headless or options.worker:  # else nothing happens before the test starts
            interrupts.leave_to_locust()

    def _check(self, coordinator: Coordinator, web_ui: Any, *, headless: bool) -> None:
        if web_ui is not None:
            try:
                self._serve(coordinator, web_ui)
            except ConfigError as error:
                refuse(error)
        try:
            coordinator.check()
        except PipeswarmError as error:
            if headless:
                refuse(error)
            warning = f"the test can't start with the present options: {error}"
            coordinator.reporter.refuse(warning)
            say(f"warning: {warning}\n")

    def _serve(self, coordinator: Coordinator, web_ui: Any) -> None:
        """Extend the web UI.

        Raises:
            ConfigError: it can't be served like this.
        """
        options = web_ui.environment.parsed_options
        web_tab.check_address(web_ui.host, web_ui.port)
        coordinator.form = web_form.form_of(self._platform, options, options.web_files)
        names = WEB_HOST_NAME.read(options.web_host_name)
        layout = web_form.layout_of(self._platform)
        web_form.add(web_ui, coordinator.form, layout, coordinator, Guard((*names, options.web_host)))
        web_tab.add(web_ui, coordinator.reporter)
        if not (is_loopback(web_ui.host) or web_ui.web_login):
            say(f"warning: {_OPEN.format(web_ui.port)}\n")

    def _serve_metrics(self, coordinator: Coordinator, options: Any) -> None:
        """Serve the page of ``--serve-metrics``, if it is given, from now until the process ends."""
        try:
            where = SERVE_METRICS.read(options.serve_metrics)
            if where is None:
                return
            host, port = where
            guard = Guard((*WEB_HOST_NAME.read(options.web_host_name), host))
            self._metrics = metrics_page.serve(host, port, lambda: exposition(coordinator.reporter.state()), guard)
        except ConfigError as error:
            refuse(error)
        port = self._metrics.server_port
        say(f"metrics: http://{f'[{host}]' if ':' in host else host}:{port}/metrics\n")
        if not is_loopback(host):
            say(f"warning: {_READABLE.format(port)}\n")

    def start_test(self, **_: object) -> None:
        """`test_start`: start a test, unless this is a worker, where Locust may fire this even before `init`."""
        if self._coordinator is not None:
            self._coordinator.start()

    def stop_test(self, **_: object) -> None:
        """`test_stopping`: wait until the test has stopped."""
        if self._coordinator is not None:
            self._coordinator.stop()

    def close(self, **_: object) -> None:
        """`quitting`: also after Ctrl-C and SIGTERM, with a test still running."""
        if self._endpoint is not None:
            self._endpoint.close(_FAREWELL_S)
        if self._coordinator is not None:
            self._coordinator.close()
        if self._metrics is not None:
            self._metrics.stop(timeout=1)

    def quit(self, exit_code: int, **_: object) -> None:
        """`quit`: Locust has printed its tables."""
        if self._coordinator is not None:
            self._coordinator.quit(exit_code)
