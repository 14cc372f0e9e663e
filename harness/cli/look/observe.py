"""``pipeswarm observe``: records a platform during a load (``--run``), for a time (``--for``) or ``--continuous``ly."""

import argparse
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.cli import printing
from harness.cli.parent import stop_with_parent
from harness.collectors.collector import to_platform
from harness.collectors.observer import ObserverSettings, observe
from harness.model.arguments import duration_above_0
from harness.model.errors import ConfigError, ExitCode, suggestion
from harness.model.options import Option, parse_pair
from harness.model.plan import Limits, Plan
from harness.model.run_name import run_name
from harness.model.units import format_duration, parse_quantity
from harness.plan.environment import (
    credentials,
    default_namespace,
    handing,
    platform_host,
    python_path,
    variables,
    verifies_tls,
)
from harness.plan.kubeconfig import resolved
from harness.plan.options import CREDENTIALS, INSECURE, OBSERVER, SERVE_METRICS, named, observer_plan
from harness.plan.plans import plan_observation
from harness.plan.reach import REACHING, confirm
from harness.store.folder import RunFolder
from harness.targets.credentials import for_folder
from harness.targets.discovery import find, find_recorded, observed_by
from harness.targets.target import ListsRuns, Target, WatchesRuns

_OF_FOLDERS = ("namespace", "slo", "undecided", "runs-dir", "run-name")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", type=Path, help="record into this run folder, by its plan, until stopped")
    what.add_argument(
        "--for", dest="length_s", type=duration_above_0, metavar="TIME",
        help="observe for this time, as 30m, into a new run folder",
    )  # fmt: skip
    what.add_argument(
        "--continuous", action="store_true",
        help="observe until stopped, into a new run folder each day, and report on each that is over",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="",
        help="address of the platform's API (default: as its own tools read it); with --run: the one the token is for",
    )  # fmt: skip
    service = parser.add_argument_group("without an end (--continuous)")
    service.add_argument(
        "--idle-gap", type=duration_above_0, metavar="TIME",
        help="begin a new folder when no run was in flight for this time, as 30m, instead of at midnight (UTC)",
    )  # fmt: skip
    service.add_argument(
        "--keep", type=parse_quantity, default="10Gi", metavar="BYTES",
        help="delete the oldest of its folders when all take more than this (default: %(default)s)",
    )  # fmt: skip
    service.add_argument(f"--{SERVE_METRICS.name}", type=SERVE_METRICS.read, help=SERVE_METRICS.help)
    alone = parser.add_argument_group("without a load (--for, --continuous)")
    configure_folder(alone)
    printing.configure_effects(alone)
    for option in OBSERVER:
        option.add_to(alone)
    parser.add_argument(
        "--redact-from", type=Path, metavar="CSV", help="scenarios with redacted values (the run's own)"
    )
    parser.add_argument(
        "--die-with-parent", action="store_true", help="end when the process that started this one ends"
    )
    printing.configure(parser)


def configure_folder(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Options of verbs that make a run folder without a load."""
    parser.add_argument("--target", default="kfp", help="kind of platform (default: kfp), or a module of your own")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="restricts the runs, as experiment_id=…"
    )
    for option in named(*_OF_FOLDERS):
        option.add_to(parser)


def run(arguments: argparse.Namespace) -> int:
    """Observe until SIGTERM or SIGINT, or until the time is over; without a load, write the report then."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if arguments.die_with_parent:
        stop_with_parent(stop)
    if arguments.continuous:
        return _observe_continuously(arguments, stop)
    if arguments.run is None:
        return _observe_alone(arguments, stop)
    _refuse_own_options(arguments)
    folder = RunFolder.open(arguments.run)
    plan = folder.read_plan()
    told = observer_plan(_values(arguments, OBSERVER))
    confirm(plan.observer, told)
    platform = find_recorded(plan.target, arguments.target)
    given_for = arguments.host or platform_host(platform.HOST_VARIABLE)
    given = for_folder(plan.host, given_for, credentials(arguments, platform))
    # The folder may come from anybody: it does not say whether certificates are checked.
    checked = replace(
        plan,
        verify_tls=verifies_tls(arguments, platform, plan.host),
        observer=replace(plan.observer, verify_tls=told.verify_tls),
    )
    settings = ObserverSettings.of(checked, given, variables(), arguments.redact_from)
    observe(folder, platform.from_plan(plan), settings, stop)
    return ExitCode.OK


def _refuse_own_options(arguments: argparse.Namespace) -> None:
    """The plan of a run says what is observed; options on the command line would be ignored.

    Raises:
        ConfigError: naming the first option that does not go with ``--run``.
    """
    allowed = {INSECURE.name, *(option.name for option in CREDENTIALS), *REACHING}
    for option in OBSERVER:
        if option.name not in allowed and getattr(arguments, option.dest) != option.default:
            raise ConfigError(
                f"--{option.name} does not go with --run", "the run's manifest.json has it: see 'observer'"
            )


def _observe_alone(arguments: argparse.Namespace, stop: threading.Event) -> int:
    """Observe without a load of ours: into a new folder, with a report at the end."""
    from harness.cli.look import rebuilding  # with data frames, which an observer beside a load does without

    length_s = arguments.length_s
    plan, target, settings = _tried(arguments)
    folder = new_folder(arguments, plan, "observed", round(length_s))
    print(f"observing for {format_duration(length_s)} into {folder.path}; Ctrl-C ends it early", file=sys.stderr)
    timer = threading.Timer(length_s, stop.set)
    timer.daemon = True
    timer.start()
    try:
        observe(folder, target, settings, stop)
    except ConfigError:
        shutil.rmtree(folder.path)  # nothing has been observed yet
        raise
    finally:
        timer.cancel()
    return rebuilding.write(folder, arguments)


def _observe_continuously(arguments: argparse.Namespace, stop: threading.Event) -> int:
    """Observe until stopped, into one folder after the other."""
    from harness.drive.continuous import Continuous, Parts, serve
    from harness.drive.processes import folder_of

    plan, _, _ = _tried(arguments)
    platform = find(arguments.target)
    environment = handing(credentials(arguments, platform))
    if own := folder_of(platform):
        environment["PYTHONPATH"] = python_path(own)
    service = Continuous(
        Path(arguments.runs_dir), arguments.run_name or f"{plan.target}-continuous",
        lambda started_at: replace(plan, started_at=started_at), environment,
        Parts(arguments.idle_gap, round(arguments.keep)),
    )  # fmt: skip
    server = serve(arguments.serve_metrics, service.page) if arguments.serve_metrics else None
    try:
        service.run(stop)
    finally:
        if server is not None:
            server.stop()
    return ExitCode.OK


def _tried(arguments: argparse.Namespace) -> tuple[Plan, Target, ObserverSettings]:
    """The plan of an observation that begins now, after a first look at the platform.

    Raises:
        ConfigError: there is no platform to observe, or it lists no runs.
        TargetUnreachableError: it does not answer as this platform.
    """
    platform = find(arguments.target)
    host = arguments.host or platform_host(platform.HOST_VARIABLE)
    if not host:
        variable = platform.HOST_VARIABLE
        hint = f"give --host, or set {variable}" if variable else "its runs are processes that only a load test starts"
        raise ConfigError("there is no platform to observe", hint)
    plan = resolved(plan_of(arguments, host, time.time_ns()))
    target = platform.from_plan(plan)
    settings = ObserverSettings.of(plan, credentials(arguments, platform), variables(), arguments.redact_from)
    _try_listing(target, plan, settings)
    return plan, target, settings


def plan_of(arguments: argparse.Namespace, host: str, started_at: int) -> Plan:
    """The plan of a run folder without a load of ours, for what `configure_folder` and `OBSERVER` added.

    Raises:
        ConfigError: an option or objective is unknown, or can't be parsed.
    """
    given, platform = _values(arguments, (*OBSERVER, *named(*_OF_FOLDERS))), find(arguments.target)
    host = host.rstrip("/")
    try:
        options = {"namespace": arguments.namespace, **dict(map(parse_pair, arguments.option))}
        _refuse_unknown(options, observed_by(platform), arguments.target)
        for option in platform.OPTIONS:
            option.read(options.get(option.name), option.name)
    except ConfigError as error:
        raise ConfigError(f"--option: {error.message}", error.hint) from error
    if host:  # a dump has namespaces of its own
        options["namespace"] = options["namespace"] or default_namespace(platform)
    return replace(
        plan_observation(arguments.target, host, options, started_at), slos=tuple(slo.text for slo in given["slo"]),
        limits=Limits(fail_undecided=given["undecided"] == "fail"), redact=tuple(given["redact"]),
        verify_tls=verifies_tls(arguments, platform, host), observer=observer_plan(given),
    )  # fmt: skip


def _refuse_unknown(given: Iterable[str], known: Sequence[str], target: str) -> None:
    for name in given:
        if name not in {"namespace", *known}:
            hint = f"{suggestion(name, known)}options: {', '.join(known) or 'none'}"
            raise ConfigError(f"{target} has no option '{name}' for observations", hint)


def _values(arguments: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    return {option.name: option.read(getattr(arguments, option.dest, None)) for option in options}


def new_folder(arguments: argparse.Namespace, plan: Plan, what: str, size: int) -> RunFolder:
    """A run folder with this plan; `what` and `size` are the schedule's place in its name."""
    name = arguments.run_name or run_name(plan.target, what, size, time.time_ns())
    folder = RunFolder.create(Path(arguments.runs_dir), name, exactly=bool(arguments.run_name))
    folder.write_plan(replace(plan, name=arguments.run_name or ""))
    return folder


def _try_listing(target: Target, plan: Plan, settings: ObserverSettings) -> None:
    """List runs once, before a folder is made, so that a wrong address or token shows at once.

    Raises:
        ConfigError: the platform lists no runs.
        TargetUnreachableError: it does not answer as this platform.
    """
    if isinstance(target, WatchesRuns):
        return  # a watch can't be tried: the observation says whether it works
    if not isinstance(target, ListsRuns):
        raise ConfigError(
            "this platform lists no runs: only the load that starts a run sees it",
            "run a load test (locust): it is observed as well",
        )
    target.list_runs(to_platform("try", plan, settings))
