"""``pipeswarm simulate``: serves a simulated platform, lists the built-in ones, or runs a test in simulated time."""

import argparse
import atexit
import gc
import json
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.cli import printing
from harness.cli.platform import adapter, corpus
from harness.model.errors import ConfigError, ExitCode
from harness.model.options import Option, with_defaults
from harness.model.run_name import run_name
from harness.model.schedules import Concurrency, Replay, schedule_options
from harness.plan.assignment import Assignment
from harness.plan.options import SCHEDULE, named, settings
from harness.plan.plans import PlannedTest, plan_arrivals, plan_load
from harness.plan.validate import Checked, check, demand_known_tenants
from harness.planning.timelines import timeline_of
from harness.simulator import commands
from harness.simulator.fast import Arrival, Compact, simulate_compactly
from harness.simulator.fast.submitting import ignored
from harness.simulator.faults import check as check_faults
from harness.simulator.faults import parse_faults
from harness.simulator.profile import FaultPlan, Profile
from harness.store.folder import ORIGINAL, PIPELINE, SCENARIOS, RunFolder, encode, kind_of
from harness.targets import argo, kfp
from harness.targets.discovery import find

# Simulated time always begins here, so that the same seed gives the same bytes.
_ORIGIN_AT = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
SIMULATED_TIME = "simulated:"  # prefix of the host of a test in simulated time
_CHUNK = 2_000  # records per write

# The options of a load test that mean something in simulated time.
_LOAD = ("scenarios", "param-mode", "seed", "slo", "undecided", "runs-dir", "run-name", "overwrite")
_DRAIN = "24h"
_OF_KFP, _OF_ARGO = ("pipeline", "prepare", "caching"), ("workflow", "with")


def _options() -> tuple[Option, ...]:
    drain = with_defaults(named("drain"), {"drain": _DRAIN})
    of_target = (option for option in (*kfp.OPTIONS, *argo.OPTIONS) if option.name in {*_OF_KFP, *_OF_ARGO})
    return (SCHEDULE, *schedule_options(), *drain, *named(*_LOAD), *of_target)


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs and their options."""
    verbs = commands.configure(parser)
    running = verbs.add_parser(
        "run",
        help="run a whole test in simulated time: writes a run folder and its report",
        description="Simulates a load test faster than real time, and writes its run folder and report.",
    )
    commands.add_platform_options(running)
    for option in _options():
        option.add_to(running, help=option.meaning.replace("%", "%%"))
    running.add_argument(
        "--target", choices=("argo", "hetida", "kfp"),
        help="platform that the runs are for (default: argo with --workflow, otherwise the profile's)",
    )  # fmt: skip
    trying = verbs.add_parser(
        "corpus",
        help="try every pipeline and workflow of a folder, and say what would run",
        description="Tries every compiled pipeline and Argo manifest of a folder in simulated time, one run each.",
    )
    commands.add_platform_options(trying)
    corpus.configure(trying)
    for verb in (running, verbs.choices["serve"]):
        verb.add_argument(
            "--calibrate-from", type=Path, metavar="RUN",
            help="take nodes, limits and durations from a recorded run",
        )  # fmt: skip
    printing.configure_effects(running)
    running.add_argument("--no-report", action="store_true", help="write the records, but no report")
    printing.configure(running)
    adapter.configure(
        verbs.add_parser(
            "adapter",
            help="serve an adapter for hetida designer with synthetic plants",
            description="Serves a generic REST adapter with synthetic plants and injected limits until interrupted.",
        )
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen verb; returns the exit code."""
    if arguments.verb == "run":
        return _simulate(arguments)
    if arguments.verb == "adapter":
        return adapter.run(arguments)
    if arguments.verb == "corpus":
        return corpus.run(arguments, commands.chosen(arguments))
    return commands.run(arguments, lambda profile: _calibrated(profile, arguments))


def _calibrated(profile: Profile, arguments: argparse.Namespace) -> Profile:
    """The profile, calibrated from a recorded run if one is given."""
    if arguments.calibrate_from is None:
        return profile
    from harness.planning.identify import identify, recorded_test

    timeline = timeline_of(arguments.calibrate_from)
    identified = identify(timeline, recorded_test(RunFolder.open(arguments.calibrate_from), timeline), profile)
    for setting in (*identified.settings, identified.reproduction):
        sys.stderr.write(f"from {arguments.calibrate_from}: {setting}\n")
    return identified.profile


def _simulate(arguments: argparse.Namespace) -> int:
    """Check everything first; make the folder last."""
    faults = parse_faults(arguments.fault)
    profile = _calibrated(commands.chosen(arguments), arguments)
    check_faults((*profile.faults, *faults), profile)
    target = _target(arguments, profile)
    platform = find(target)
    load = argparse.Namespace(**{option.dest: getattr(arguments, option.dest) for option in _options()})
    checked = check(settings(load, "", platform), target, platform)
    sys.stderr.write(checked.settings.notes())
    if isinstance(checked.settings.schedule, Concurrency):
        raise ConfigError("a closed schedule can't be simulated", "give --schedule burst, spread, constant, …")
    plan = plan_load(
        checked, f"{SIMULATED_TIME}{arguments.profile}", simulated=True, command=("pipeswarm", *sys.argv[1:]),
        started_at=_ORIGIN_AT,
    )  # fmt: skip
    if profile.tenants:
        tenants = ";".join(tenant.namespace for tenant in profile.tenants)
        plan = replace(plan, target_options={**plan.target_options, "tenants": tenants})
    if target == "argo":
        _note_ignored(checked, profile)
    if checked.prepared.inputs is None:
        raise ConfigError("the workflow refers to a template that is not here", "give its file: --with FILE")
    test = plan_arrivals(checked, plan, checked.prepared.inputs)
    demand_known_tenants(test.scenarios, plan.tenants)
    folder = _folder(checked, test)
    # The parts of a simulated platform know each other: to look for such garbage before the process ends anyway takes a
    # sixth of the command's time.
    atexit.register(gc.freeze)
    with _removed_unless_written(folder):
        _plan(folder, arguments, checked, test)
        _write(folder, _records(profile, faults, checked, _arrivals(folder, test)))
        return _finish(arguments, folder)


def _target(arguments: argparse.Namespace, profile: Profile) -> str:
    """The platform that the runs are for, which the other options fit."""
    own = "kfp" if profile.hetida is None else "hetida"
    target: str = arguments.target or ("argo" if arguments.workflow and own == "kfp" else own)
    if (target == "hetida") != (own == "hetida"):
        raise ConfigError(
            f"--target {target}: the profile {arguments.profile} has no {target}", "give another --profile"
        )
    for other, names in (("kfp", _OF_KFP[:2]), ("argo", _OF_ARGO)):
        given = next((name for name in names if getattr(arguments, name)), "")
        if given and other != target and not (other, target) == ("kfp", "hetida"):
            raise ConfigError(
                f"--{given} is an option of --target {other}, and the target is {target}",
                f"add --target {other}, or leave it out",
            )
    return target


def _note_ignored(checked: Checked, profile: Profile) -> None:
    """Say which fields of the workflow the simulated platform ignores, and refuse it if it can't run it."""
    assert checked.prepared.package is not None
    if fields := ignored(checked.prepared.package, profile.ignore):
        sys.stderr.write(f"ignored, without a bearing on the times here: {', '.join(fields)}\n")


@contextmanager
def _removed_unless_written(folder: RunFolder) -> Iterator[None]:
    """Leave no part of a test behind, as on a full disk: to repeat it is cheaper than to recover it."""
    try:
        yield
    except (ConfigError, OSError, KeyboardInterrupt) as error:
        shutil.rmtree(folder.path, ignore_errors=True)
        if isinstance(error, OSError):
            error.filename = error.filename or str(folder.path)
        raise


def _folder(checked: Checked, test: PlannedTest) -> RunFolder:
    given, kind = checked.settings, f"{test.schedule.name}-simulated"
    name = given.run_name or run_name(checked.target, kind, len(test.offsets), time.time_ns())
    return RunFolder.create(given.runs_dir, name, exactly=bool(given.run_name), overwrite=given.overwrite)


def _plan(folder: RunFolder, arguments: argparse.Namespace, checked: Checked, test: PlannedTest) -> None:
    """Write the plan, the schedule and the inputs."""
    package = checked.prepared.package
    named = (test.schedule.scenarios, test.schedule.tenants) if isinstance(test.schedule, Replay) else ()
    _, digest = folder.write_schedule(test.offsets, *named)
    digests = {"schedule": digest, "scenarios": folder.keep(SCENARIOS, test.table)}
    if package is not None:
        digests["pipeline"] = folder.keep(PIPELINE, package)
    if checked.prepared.original is not None:
        folder.keep(ORIGINAL, checked.prepared.original)
    simulated = {"profile": arguments.profile, "fault": " ".join(arguments.fault)}
    options = {**test.plan.target_options, **simulated}
    folder.write_plan(replace(test.plan, digests=digests, target_options=options))


def _arrivals(folder: RunFolder, test: PlannedTest) -> list[Arrival]:
    """The scenarios in turn, named as the load names them."""
    assignment = Assignment(folder.path.name, test.plan, test.scenarios, test.offsets, _ORIGIN_AT)
    return [Arrival(test.offsets[arrival.seq], arrival.scenario) for arrival in assignment.arrivals()]


def _records(
    profile: Profile, faults: tuple[FaultPlan, ...], checked: Checked, arrivals: list[Arrival]
) -> Iterator[Compact]:

    given, package = checked.settings, checked.prepared.package
    assert package is not None
    return simulate_compactly(
        profile, package, arrivals,
        faults=faults, seed=given.seed, origin_at=_ORIGIN_AT, drain_s=given.limits.drain_s,
    )  # fmt: skip


def _write(folder: RunFolder, records: Iterator[Compact]) -> None:
    """Write many records of a kind at once: nobody reads the folder yet."""
    lines: defaultdict[type, list[bytes]] = defaultdict(list)
    with folder.recorder() as recorder:
        for record in records:
            kind = kind_of(record)
            lines[kind].append(encode(record))
            if len(lines[kind]) == _CHUNK:
                recorder.append(kind, b"".join(lines.pop(kind)))
        for kind, rest in lines.items():
            recorder.append(kind, b"".join(rest))


def _finish(arguments: argparse.Namespace, folder: RunFolder) -> int:
    """Seal and report, as ``pipeswarm report`` does."""
    if arguments.no_report:
        printing.show(arguments, lambda: f"run: {folder.path}", lambda: json.dumps({"run": str(folder.path)}))
        return ExitCode.OK

    from harness.cli.look import rebuilding  # with data frames

    return rebuilding.write(folder, arguments)
