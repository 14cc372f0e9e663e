"""``pipeswarm cleanup RUN``: terminate, archive or delete the runs that a test created."""

import argparse
from dataclasses import replace
from pathlib import Path

import orjson

from harness.cli import printing
from harness.drive.http.clients import Client, client_of
from harness.model.arguments import rate_above_0
from harness.model.errors import ConfigError, ExitCode
from harness.model.phases import TERMINAL_STATES
from harness.model.plan import Plan
from harness.model.records import Event, Submission
from harness.plan.environment import credentials, platform_host, verifies_tls
from harness.plan.options import CREDENTIALS, INSECURE
from harness.store.folder import RunFolder
from harness.targets.cleaning import clean_up
from harness.targets.credentials import for_folder
from harness.targets.discovery import find_recorded
from harness.targets.target import CleansUp, Cleanup, Target


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    ways = [str(how) for how in Cleanup if how is not Cleanup.NONE]
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--host", default="", help="platform that the token is for (default: as its tools read it)")
    parser.add_argument("--how", choices=ways, default="terminate", help="terminate (default): unfinished runs only")
    parser.add_argument("--rate", type=rate_above_0, default="20/s", help="limit on requests (default: 20/s)")
    configure_access(parser)
    printing.configure(parser)


def configure_access(parser: argparse.ArgumentParser) -> None:
    """Declare what `connected` reads in addition to ``--host``."""
    parser.add_argument("--target", default="", help="kind of platform, if it is a module of your own")
    parser.add_argument("--kube-context", default="", help="kubeconfig context (default: that of the test)")
    for option in CREDENTIALS:
        option.add_to(parser)
    INSECURE.add_to(parser)


def run(arguments: argparse.Namespace) -> int:
    """Clean up the runs in the ledger, on the platform that the manifest names; nothing else is touched."""
    folder = RunFolder.open(arguments.run)
    target, client = connected(folder.read_plan(), arguments)
    if not isinstance(target, CleansUp):
        raise ConfigError(f"{folder.read_plan().target} keeps no runs", "there is nothing to clean up")
    ended = {e.object for e in folder.records(Event) if e.kind == "Run" and e.reason in TERMINAL_STATES}
    runs = [(row.run, row.run in ended) for row in folder.records(Submission) if row.run is not None]
    try:
        cleaned = clean_up(target, runs, Cleanup(arguments.how), client, rate=arguments.rate)
    finally:
        client.close()
    printing.show(arguments, lambda: str(cleaned), lambda: orjson.dumps(cleaned).decode())
    return ExitCode.UNREACHABLE if cleaned.failed else ExitCode.OK


def connected(plan: Plan, arguments: argparse.Namespace) -> tuple[Target, Client]:
    """The platform of a run folder's plan, and a client that sends credentials only where the user says.

    Raises:
        ConfigError: the platform was a simulated one, or is not that of ``--host``.
    """
    if plan.simulated:
        raise ConfigError("this run's simulated platform no longer exists", "there is nothing to do there")
    platform = find_recorded(plan.target, arguments.target)
    given_for = arguments.host or platform_host(platform.HOST_VARIABLE)
    given = for_folder(plan.host, given_for, credentials(arguments, platform))
    context = arguments.kube_context or plan.observer.kube_context
    # The folder may come from anybody: it does not say whether certificates are checked.
    checked = verifies_tls(arguments, platform, plan.host)
    reached = replace(plan, verify_tls=checked, observer=replace(plan.observer, kube_context=context))
    return platform.from_plan(plan), client_of(reached, given)
