"""``pipeswarm doctor``: what this machine, the platform and the cluster offer a load test, and what is missing."""

import argparse
import json
import os
import platform
import resource
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.cli import printing
from harness.cli.look.observe import configure_folder, plan_of
from harness.collectors import checkup
from harness.collectors.checkup import Check, State
from harness.collectors.collector import ObserverSettings, read_options
from harness.collectors.rights import rights_to_load
from harness.model.errors import ExitCode, PipeswarmError
from harness.model.plan import Plan
from harness.plan.environment import credentials, platform_host, variables
from harness.plan.kubeconfig import resolved, route_of
from harness.plan.options import OBSERVER
from harness.targets.discovery import find, own_host
from harness.targets.target import Platform

_MIN_OPEN_FILES, _MIN_FREE_BYTES = 1024, 2**30


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options: those of an observation."""
    parser.add_argument("--host", default="", help="address of the platform's API (default: as its own tools read it)")
    configure_folder(parser)
    for option in OBSERVER:
        option.add_to(parser)
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look at everything and say what each finding costs; ends with the code of a load test that can't start."""
    checks, role = _checks(arguments)
    printing.show(
        arguments,
        lambda: _text(checks, role),
        lambda: json.dumps({"checks": [asdict(check) for check in checks], "missing_rights": role}, indent=2),
    )
    states = {check.state for check in checks}
    if State.INVALID in states:
        return ExitCode.BAD_CONFIG
    return ExitCode.UNREACHABLE if State.BROKEN in states else ExitCode.OK


def _checks(arguments: argparse.Namespace) -> tuple[list[Check], str]:
    """All checks in order, and the ClusterRole of the missing rights."""
    target = find(arguments.target)
    host = arguments.host or platform_host(target.HOST_VARIABLE)
    plan = plan_of(arguments, host, time.time_ns())
    read_options(plan.observer.collector_options)
    settings = ObserverSettings.of(plan, credentials(arguments, target), variables())
    checks = [*_machine(Path(arguments.runs_dir))]
    if host:
        plan, of_platform = _reached(target, plan, settings)
        checks += of_platform
    elif own_host(target, {name: str(value) for name, value in plan.target_options.items()}):
        checks += [checkup.token("", 0.0), checkup.Check("platform", State.OK, "runs are processes of the load test")]
    else:
        variable = f", or set {target.HOST_VARIABLE}" if target.HOST_VARIABLE else ""
        missing = f"no address: give --host{variable}"
        cost = "load tests use the simulated platform"
        checks += [checkup.token("", 0.0), checkup.Check("platform", State.LIMITED, missing, cost)]
    of_cluster, role = checkup.cluster(settings, rights_to_load(plan))
    return [*checks, *of_cluster, checkup.prometheus(settings), *checkup.past(settings), *checkup.pages(settings)], role


def _reached(target: Platform, plan: Plan, settings: ObserverSettings) -> tuple[Plan, list[Check]]:
    """The plan with the platform's address, what the token is worth there, and whether the platform answers."""
    try:
        plan = resolved(plan)
        route = route_of(plan, settings.credentials)
        proof = route.credentials.fields(route.address)
    except PipeswarmError as error:
        return plan, [Check.failed("platform", error)]
    bearer = proof.pop("Authorization", "").removeprefix("Bearer ")
    others = (*(f"header {name}" for name in proof), *(["client certificate"] if route.credentials.certificate else ()))
    source = route.credentials.token_file or ("the kubeconfig" if route.credentials.token_command else "")
    return plan, [
        checkup.token(bearer, time.time(), others, source),
        *checkup.platform(target.from_plan(plan), plan, settings),
    ]


def _machine(runs_dir: Path) -> Iterable[Check]:
    packages = ("pipeswarm", "locust", "gevent", "kfp", "kubernetes")
    yield Check("Python", State.OK, f"{platform.python_version()} with {', '.join(map(_version, packages))}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cost = "load and observer share a core: arrivals may be late" if cores == 1 else ""
    yield Check("cores", State.LIMITED if cost else State.OK, str(cores), cost)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = hard != resource.RLIM_INFINITY and hard < _MIN_OPEN_FILES
    cost = f"at most about {hard:,} requests open at once: raise it with ulimit -n" if few else ""
    limit = "unlimited" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    yield Check("open files", State.LIMITED if few else State.OK, limit, cost)
    place = next(path for path in (runs_dir.resolve(), *runs_dir.resolve().parents) if path.exists())
    free = shutil.disk_usage(place).free
    cost = "a test stops sending when its run folder is full" if free < _MIN_FREE_BYTES else ""
    yield Check("disk", State.LIMITED if cost else State.OK, f"{free / 2**30:,.1f} GiB free at {runs_dir}", cost)


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


def _text(checks: Iterable[Check], role: str) -> str:
    lines = []
    for check in checks:
        lines += printing.wrapped(f"{check.name}: {check.found}", f"{check.state:8}", " " * 8)
        first, *others = check.cost.split("\n")
        lines += printing.wrapped(first, f"{'':8}→ ", " " * 10) if not others else []
        lines += [f"{'':10}{line}" for line in (first, *others) if others]  # to be copied
    if role:
        lines += ["", "To grant what is missing, apply this and bind it to the account:", "", role]
    return "\n".join(lines)
