"""``pipeswarm explain --since …``: why a past batch was slow, without a load: a run folder and its report."""

import argparse
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from harness import reading
from harness.cli import printing
from harness.cli.look import observe
from harness.cli.sweep_bar import SweepBar
from harness.collectors.collector import PROMETHEUS_TOKEN, ObserverSettings
from harness.collectors.explaining import Store, Window, explain
from harness.collectors.metrics.past_asks import parse_matchers
from harness.model.arguments import count, instant
from harness.model.errors import ConfigError, ExitCode, TargetUnreachableError
from harness.model.plan import Plan
from harness.model.records import Event, Sample, Span
from harness.model.text.inert import for_output
from harness.model.text.redaction import without_credentials
from harness.model.units import format_duration
from harness.plan.environment import credentials, platform_host, variables
from harness.plan.kubeconfig import resolved
from harness.plan.options import CREDENTIALS, INSECURE, OBSERVER
from harness.plan.reach import confirm
from harness.store.answers import Answers
from harness.store.folder import RunFolder
from harness.targets.credentials import Credentials, parse_field
from harness.targets.discovery import find

_MOST_SAMPLES = 20_000_000
_OBSERVED = ("platform-namespace", "kube-context", "kube-requests", "prometheus", "metric-profile", "redact")
_REQUEST = "request"  # key of what was asked for, among the answers


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--since", help="begin, as 2026-11-26T22:00:00Z, 22:00 (local time) or '8h ago'")
    what.add_argument("--resume", type=Path, metavar="RUN", help="go on with a reading that was aborted")
    parser.add_argument("--until", help="end, written likewise (default: now)")
    parser.add_argument("--host", default="", help="address of the platform's API (default: as its own tools read it)")
    for option in OBSERVER:
        if option.name in _OBSERVED:
            option.add_to(parser)
    store = parser.add_argument_group("Prometheus, or what has its API")
    store.add_argument("--match", default="", help="labels of all series, as 'cluster=\"x\"' where a store has several")
    store.add_argument(
        "--prometheus-header", action="append", default=[], metavar="'NAME: VALUE'",
        help="header of the requests, as 'X-Scope-OrgID: team-a'; may be repeated",
    )  # fmt: skip
    store.add_argument(
        "--prometheus-token-command", default="", metavar="COMMAND",
        help="prints a bearer token (default: that of the variable PIPESWARM_PROMETHEUS_TOKEN)",
    )  # fmt: skip
    store.add_argument("--max-samples", type=count, default=_MOST_SAMPLES, metavar="COUNT",
                       help="read no more than about this (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--opencost", default="", type=without_credentials, metavar="URL",
        help="address of an OpenCost, or of a Kubecost with its /model: what each pod cost",
    )  # fmt: skip
    observe.configure_folder(parser)
    printing.configure_effects(parser)
    for option in (INSECURE, *CREDENTIALS):
        option.add_to(parser)
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Fill a run folder from what is reachable, and write its report."""
    from harness.cli.look import rebuilding  # with data frames

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    store = _store(arguments, variables())
    folder, plan, window = _resumed(arguments) if arguments.resume else _new(arguments)
    platform = find(plan.target)
    settings = ObserverSettings.of(plan, credentials(arguments, platform), variables())
    try:
        with SweepBar("", things="requests to Prometheus") as bar:
            whole = explain(folder, platform.from_plan(plan), settings, window, store, stop, bar.expect, bar.advance)
    except ConfigError:
        if not arguments.resume:
            shutil.rmtree(folder.path)  # nothing has been read yet
        raise
    if not whole:
        again = f"pipeswarm explain --resume {folder.path}"
        print(f"interrupted; what was fetched is kept: go on with {again} and the same options", file=sys.stderr)
        return ExitCode.INTERRUPTED
    _tell(folder, plan)
    return rebuilding.write(folder, arguments)


def _new(arguments: argparse.Namespace) -> tuple[RunFolder, Plan, Window]:
    now_at = time.time_ns()
    since_at = instant(arguments.since, now_at)
    until_at = instant(arguments.until, now_at) if arguments.until else now_at
    if not since_at < until_at:
        raise ConfigError(
            f"there is no time from --since {arguments.since} to --until {arguments.until or 'now'}",
            "the end comes after the beginning; local time is that of this machine, and Z stands for UTC",
        )
    if since_at > now_at:
        raise ConfigError(f"--since {arguments.since} lies in the future", "give a time that is over")
    host = arguments.host or platform_host(find(arguments.target).HOST_VARIABLE)
    window = Window(since_at, min(until_at, now_at))
    plan = resolved(observe.plan_of(arguments, host, since_at))
    length_s = (window.until_at - window.since_at) / 1e9
    folder = observe.new_folder(arguments, plan, "explained", round(length_s))
    Answers(folder).keep(_REQUEST, asdict(window))
    print(f"explaining {format_duration(length_s)} in {folder.path}", file=sys.stderr)
    return folder, plan, window


def _resumed(arguments: argparse.Namespace) -> tuple[RunFolder, Plan, Window]:
    """What was asked for, to be read from where the options say, as the folder may come from anybody.

    Raises:
        ConfigError: there is nothing to go on with, or the options differ from those of the first time.
    """
    path = arguments.resume
    folder = RunFolder.open(path)
    for request in Answers(folder).read(_REQUEST):
        with reading.structured(path):
            window = Window(int(request["since_at"]), int(request["until_at"]))
            if not 0 <= window.since_at < window.until_at <= time.time_ns():
                raise ValueError("no time that is over was asked for")
        recorded = folder.read_plan()
        host = arguments.host or platform_host(find(arguments.target).HOST_VARIABLE)
        plan = resolved(observe.plan_of(arguments, host, window.since_at))
        confirm(recorded.observer, plan.observer)
        if (recorded.target, recorded.host) != (plan.target, plan.host):
            raise ConfigError(
                f"only the run folder names {recorded.target} at {recorded.host or 'no host'}, which would be asked",
                "if it is yours, add the same --target and --host as the first time",
            )
        return folder, plan, window
    raise ConfigError(f"{path} has no reading to go on with", "it is complete, or not of pipeswarm explain")


def _store(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Store:
    command = tuple(shlex.split(arguments.prometheus_token_command))
    if command and shutil.which(command[0]) is None:
        raise ConfigError(f"--prometheus-token-command: no program {command[0]}", "give one on the PATH")
    try:
        headers = tuple(map(parse_field, arguments.prometheus_header))
    except ConfigError as error:
        raise ConfigError(f"--prometheus-header: {error.message}", "write it as 'NAME: VALUE'") from error
    token = "" if command else environment.get(PROMETHEUS_TOKEN, "")
    proof = Credentials(token=token, token_command=command, headers=headers)
    return Store(proof, parse_matchers(arguments.match), arguments.max_samples, arguments.opencost)


def _tell(folder: RunFolder, plan: Plan) -> None:
    """Which sources had what, and which were not reachable.

    Raises:
        TargetUnreachableError: none was.
    """
    notes = [event for event in folder.records(Event) if event.kind == "Observer"]
    lines = [f"{note.object}: {note.message}" for note in notes]
    if not plan.host:
        lines.append("runs: no address of the platform's API is given (--host)")
    if not plan.observer.prometheus:
        lines.append("prometheus: none is given (--prometheus)")
    if not folder.records(Span) and not folder.records(Sample):
        shutil.rmtree(folder.path)
        raise TargetUnreachableError("nothing is known of this time", "\n  → ".join(lines))
    for line in dict.fromkeys(lines):
        print(for_output(line), file=sys.stderr)
