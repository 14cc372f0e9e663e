"""``pipeswarm observe``: records a platform, beside a load (``--run``) or without one (``--for``)."""

import argparse
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import printing
from harness.cli.parent import stop_with_parent
from harness.model.arguments import duration_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.options import OBSERVING, several

if TYPE_CHECKING:
    from harness.collectors.observer import ObserverSettings
    from harness.model.plan import Plan
    from harness.store.folder import RunFolder
    from harness.targets.target import Target


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", type=Path, help="record into this run folder until told to stop")
    what.add_argument(
        "--for", dest="length_s", type=duration_above_0, metavar="TIME",
        help="observe so long, as 30m, into a folder of its own",
    )  # fmt: skip
    alone = parser.add_argument_group("without a load (--for)")
    alone.add_argument("--host", default="", help="address of the platform's API (default: as its own tools read it)")
    configure_folder(alone)
    reach = parser.add_argument_group("what is observed, and how it is reached")
    for name, default, text, more in OBSERVING:
        given = {key: value for key, value in more.items() if key != "include_in_web_ui"}
        reach.add_argument(f"--{name}", default=default, help=text, **given)
    reach.add_argument("--redact-from", type=Path, metavar="CSV", help="scenarios with these values (the run's own)")
    parser.add_argument("--die-with-parent", action="store_true", help="end when the starting process is gone")
    printing.configure(parser)


def configure_folder(parser: "argparse._ArgumentGroup | argparse.ArgumentParser") -> None:
    """Options of verbs that make a run folder without a load."""
    parser.add_argument("--target", default="kfp", help="the platform's kind (kfp)")
    parser.add_argument("--namespace", default="", help="of the runs, and of their pods")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="narrows the runs down, as experiment_id=…"
    )
    parser.add_argument("--slo", action="append", default=[], help="what must hold; may be given several times")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where the run folder goes (runs)")
    parser.add_argument("--run-name", default="", help="its name (default: time, target, what, how much)")


def run(arguments: argparse.Namespace) -> int:
    """Observe until SIGTERM, SIGINT, or the time is over; without a load, write the report then."""
    from harness.collectors.observer import observe
    from harness.store.folder import RunFolder
    from harness.targets.target import find

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if arguments.die_with_parent:
        stop_with_parent(stop)
    if arguments.run is None:
        return _observe_alone(arguments, stop)
    folder = RunFolder.open(arguments.run)
    plan = folder.read_plan()
    observe(folder, find(plan.target).from_plan(plan), settings(arguments, plan), stop)
    return ExitCode.OK


def _observe_alone(arguments: argparse.Namespace, stop: threading.Event) -> int:
    """Somebody else's load: a folder of its own, so long as was asked for, and a report."""
    from harness.cli import report
    from harness.collectors.observer import observe
    from harness.model.units import format_duration
    from harness.targets.target import find

    length_s = arguments.length_s
    platform = find(arguments.target)
    host = arguments.host or os.environ.get(platform.HOST_VARIABLE, "")
    if not host:
        raise ConfigError("there is no platform to observe", f"give --host, or set {platform.HOST_VARIABLE}")
    plan = plan_of(arguments, host, time.time_ns())
    target = platform.from_plan(plan)
    reached = settings(arguments, plan)
    _try_out(target, reached)
    folder = new_folder(arguments, plan, "observed", round(length_s))
    print(f"observing for {format_duration(length_s)} into {folder.path}; Ctrl-C ends it earlier", file=sys.stderr)
    timer = threading.Timer(length_s, stop.set)
    timer.daemon = True
    timer.start()
    try:
        observe(folder, target, reached, stop)
    except ConfigError:
        shutil.rmtree(folder.path)  # nothing has been observed yet
        raise
    finally:
        timer.cancel()
    return report.write(folder, arguments)


def plan_of(arguments: argparse.Namespace, host: str, started_at: int) -> "Plan":
    """The plan of a run folder without a load of ours, with the objectives that were given.

    Raises:
        ConfigError: an option or objective can't be understood.
    """
    from dataclasses import replace

    from harness.collectors.importing import plan_without_load
    from harness.model.slo import parse_slo

    for slo in arguments.slo:
        parse_slo(slo)
    options = {"namespace": arguments.namespace, **dict(_pair("--option", text) for text in arguments.option)}
    plan = plan_without_load(arguments.target, host.rstrip("/"), options, started_at)
    return replace(plan, slos=tuple(arguments.slo))


def new_folder(arguments: argparse.Namespace, plan: "Plan", what: str, size: int) -> "RunFolder":
    """A run folder with this plan; `what` and `size` are the schedule's place in its name."""
    from harness.store.folder import RunFolder, run_name

    folder = RunFolder.create(
        arguments.runs_dir, arguments.run_name or run_name(plan.target, what, size, time.time_ns())
    )
    folder.write_plan(plan)
    return folder


def settings(arguments: argparse.Namespace, plan: "Plan") -> "ObserverSettings":
    """How to reach the platform of `plan`. Its token comes from a file or the environment (PIPESWARM_TOKEN).

    Raises:
        ConfigError: an option can't be understood.
    """
    from harness.collectors.metrics import profiles_file
    from harness.collectors.observer import ObserverSettings
    from harness.collectors.probes.s3 import Bucket
    from harness.model.units import parse_rate
    from harness.targets.bearer import read_token

    defaults = ObserverSettings(plan.host)
    profiles = several(arguments.metric_profile)
    for name in profiles:
        profiles_file.load(name)
    requests_per_s = parse_rate(arguments.kube_requests)
    if requests_per_s <= 0:
        raise ConfigError(f"--kube-requests {arguments.kube_requests} allows none", "write it as 20/s")
    return ObserverSettings(
        host=plan.host,
        token=read_token(arguments.token_file, os.environ),
        namespace=str(plan.target_options.get("namespace", "")),
        platform_namespaces=several(arguments.platform_namespace) or defaults.platform_namespaces,
        kube_context=arguments.kube_context or None,
        prometheus=arguments.prometheus or None,
        metrics=tuple(_pair("--metrics", text) for text in several(arguments.metrics)),
        profiles=profiles or None,
        verify_tls=not arguments.insecure,
        requests_per_s=requests_per_s,
        store_probe=Bucket.parse(arguments.store_probe, os.environ) if arguments.store_probe else None,
        redact=several(arguments.redact),
        redact_from=arguments.redact_from,
    )


def _try_out(target: "Target", reached: "ObserverSettings") -> None:
    """List runs once, before a folder is made: a wrong address or token is to be told at once.

    Raises:
        ConfigError: the platform lists no runs.
        TargetUnreachableError: it does not answer as this platform.
    """
    from harness.collectors.http import Http, Timeouts
    from harness.targets.target import Listing

    if not isinstance(target, Listing):
        raise ConfigError("this platform tells of a run only whoever started it", "load it: observe --run RUN")
    timeouts = Timeouts(reached.connect_timeout_s, reached.answer_timeout_s)
    target.list_runs(Http("try", reached.host, reached.token, timeouts, verify_tls=reached.verify_tls))


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ConfigError(f"{option} {text} is no pair", f"write it as {option} NAME=VALUE")
    return name, value
