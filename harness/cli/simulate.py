"""``pipeswarm simulate``: serve a simulated platform, list the ones there are, or run a test in simulated time."""

import argparse
import json
import sys
import time
from array import array
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from harness.cli import printing, report
from harness.model.errors import ConfigError, ExitCode
from harness.model.options import Join
from harness.simulator import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.plan import Plan
    from harness.model.scenario import Scenario
    from harness.plan.validate import Checked
    from harness.simulator.fast import Arrival, Record
    from harness.simulator.profile import FaultPlan, Profile
    from harness.store.folder import RunFolder

# Simulated time begins here, whenever it is simulated: the same seed gives the same bytes.
_ORIGIN_AT = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
SIMULATED_TIME = "simulated:"  # the host's address of what was tested in simulated time begins so
_CHUNK = 2_000  # records that are written at once

# The options of a load test that make sense in simulated time, by the same names and with the same defaults.
_LOAD: tuple[tuple[str, str, str], ...] = (
    ("schedule", "spread", "when runs are due: constant, spread, burst, poisson, ramp, stages, replay"),
    ("runs", "", "number of runs: burst, spread"),
    ("over", "1m", "spread: the time over which the runs are spread evenly"),
    ("jitter", "0", "spread: moves each arrival by up to this share of the spacing"),
    ("rate", "1/s", "constant, poisson: arrivals, as 2/s, 120/m or 500/h; ramp: as 1/s..10/s"),
    ("for", "1m", "constant, poisson, ramp: for how long"),
    ("every", "", "burst: time between bursts"),
    ("ramp-in", "", "burst: time within which each leaves (default: at once)"),
    ("times", "1", "burst: number of bursts"),
    ("schedule-file", "", "stages: a YAML list of schedules; replay: a CSV with due_s, or a run's folder"),
    ("drain", "24h", "simulated time to wait for the last runs after the last arrival"),
    ("scenarios", "", "CSV of scenarios; none: they are generated from the pipeline's inputs"),
    ("param-mode", "columns", "columns: a column a parameter; json:NAME: the whole row as a JSON list in NAME"),
    ("seed", "7", "the same seed gives the same run folder, byte by byte"),
    ("slo", "", "what must hold, as 'p95(run.duration) < 20m'; may be given several times"),
    ("pipeline", "", "compiled pipeline (IR YAML); none: a training pipeline of three steps"),
    ("caching", "off", "off: every task runs; keep: tasks may be answered from the cache"),
    ("runs-dir", "runs", "where run folders go"),
    ("run-name", "", "name of the run folder (default: time, target, schedule, runs)"),
)

_CHOICES = {"caching": ("off", "keep")}


class _Defaults:
    """Takes the load's options as a parser would, and keeps their defaults: those not offered here have these."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {"num_users": 1, "spawn_rate": 1}  # Locust's own

    def add_argument_group(self, *_: object) -> "_Defaults":
        return self

    def add_argument(self, flag: str, *, default: str, **_: object) -> SimpleNamespace:
        self.values[flag.removeprefix("--").replace("-", "_")] = default
        return SimpleNamespace()


def configure(parser: argparse.ArgumentParser) -> None:
    """The verbs and their options."""
    verbs = commands.configure(parser)
    running = verbs.add_parser(
        "run",
        help="a whole test in simulated time: writes a run folder and its report",
        description="Simulates a test as fast as it goes, and writes the run folder that the test would have left.",
    )
    commands.add_platform_options(running)
    for name, default, text in _LOAD:
        shown = f" (default: {default})" if default else ""
        action = Join if name == "slo" else "store"
        added = running.add_argument(f"--{name}", default=default, action=action, help=text.replace("%", "%%") + shown)
        added.choices = _CHOICES.get(name)
    for verb in (running, verbs.choices["serve"]):
        verb.add_argument(
            "--calibrate-from", type=Path, metavar="RUN",
            help="a recorded run: steps, drivers, pod starts, pulls, the API and new nodes take as long as there",
        )  # fmt: skip
    running.add_argument("--no-report", action="store_true", help="write the records only")
    printing.configure(running)


def run(arguments: argparse.Namespace) -> int:
    """Carry out the verb that was given; returns the exit code."""
    if arguments.verb == "run":
        return _simulate(arguments)
    return commands.run(arguments, lambda profile: _calibrated(profile, arguments))


def _calibrated(profile: "Profile", arguments: argparse.Namespace) -> "Profile":
    """The profile, with what a recorded run teaches it where one is given."""
    if arguments.calibrate_from is None:
        return profile
    from harness.planning.calibration import calibrated
    from harness.planning.observations import timeline_of

    profile, learned = calibrated(profile, timeline_of(arguments.calibrate_from))
    for each in learned or ("nothing could be learned",):
        sys.stderr.write(f"from {arguments.calibrate_from}: {each}\n")
    return profile


def _simulate(arguments: argparse.Namespace) -> int:
    """Everything that may be wrong is looked at first; the folder is made last."""
    from harness.plan.options import register, settings
    from harness.plan.validate import check, scenarios_for
    from harness.simulator.faults import parse_faults
    from harness.simulator.profile_file import load_profile
    from harness.targets.target import find

    faults = parse_faults(arguments.fault)
    profile = _calibrated(load_profile(arguments.profile), arguments)
    target = "kfp" if profile.hetida is None else "hetida"
    platform = find(target)
    register(defaults := _Defaults(), platform.OPTIONS, platform.DEFAULTS)
    given = settings(argparse.Namespace(**{**defaults.values, **vars(arguments)}), "", platform.OPTIONS)
    checked = check(given, target, platform)
    sys.stderr.write(given.ignored_options())
    assert checked.prepared.inputs is not None  # a pipeline that is at hand says what it takes
    scenarios, kept = scenarios_for(checked, checked.prepared.inputs)
    folder, offsets = _folder(arguments, checked, len(scenarios), kept)
    _write(folder, _records(profile, faults, checked, _arrivals(folder, scenarios, offsets)))
    return _tell(arguments, folder)


def _folder(
    arguments: argparse.Namespace, checked: "Checked", scenarios: int, kept: bytes
) -> "tuple[RunFolder, list[float]]":
    """The run folder with its plan and schedule, and the schedule's due times."""
    from harness.model.concurrency import Concurrency
    from harness.model.run_name import run_name
    from harness.store.folder import PIPELINE, SCENARIOS, RunFolder

    given, package = checked.settings, checked.prepared.package
    schedule = given.schedule_for(scenarios)
    if isinstance(schedule, Concurrency):
        raise ConfigError("a closed schedule can't be simulated", "give --schedule burst, spread, constant, …")
    offsets = list(schedule.offsets(given.seed))
    if not offsets:
        raise ConfigError("the schedule holds no arrival", "give a higher rate or a longer time")
    kind = f"{schedule.name}-simulated"
    name = given.text("run-name") or run_name(checked.target, kind, len(offsets), time.time_ns())
    folder = RunFolder.create(Path(given.text("runs-dir") or "runs"), name)
    count, digest = folder.write_schedule(offsets)
    digests = {"schedule": digest, "scenarios": folder.keep(SCENARIOS, kept)}
    if package is not None:
        digests["pipeline"] = folder.keep(PIPELINE, package)
    folder.write_plan(_plan(arguments, checked, count, digests))
    return folder, offsets


def _plan(arguments: argparse.Namespace, checked: "Checked", count: int, digests: dict[str, str]) -> "Plan":
    from harness.model.plan import Plan
    from harness.model.schedule import to_mapping
    from harness.plan.validate import versions

    given = checked.settings
    schedule = to_mapping(given.schedule_for(count))
    return Plan(
        target=checked.target,
        host=f"{SIMULATED_TIME}{arguments.profile}",
        schedule=schedule,
        intended=count,
        seed=given.seed,
        simulated=True,
        target_options={**checked.prepared.options, "profile": arguments.profile, "fault": " ".join(arguments.fault)},
        limits=given.limits,
        slos=given.slos,
        digests=digests,
        versions=versions(),
        command=("pipeswarm", *sys.argv[1:]),
        started_at=_ORIGIN_AT,
    )


def _arrivals(folder: "RunFolder", scenarios: "list[Scenario]", offsets: list[float]) -> "list[Arrival]":
    """The scenarios in turn, named as the load names them."""
    from harness.plan.assignment import Assignment
    from harness.simulator.fast import Arrival

    order = Assignment(folder.path.name, folder.read_plan(), scenarios, array("d", offsets), _ORIGIN_AT)
    return [Arrival(offsets[each.seq], each.scenario) for each in order.arrivals()]


def _records(
    profile: "Profile", faults: "tuple[FaultPlan, ...]", checked: "Checked", arrivals: "list[Arrival]"
) -> "Iterator[Record]":
    from harness.simulator.fast import simulate

    given, package = checked.settings, checked.prepared.package
    assert package is not None
    return simulate(
        profile, package, arrivals,
        faults=faults, seed=given.seed, origin_at=_ORIGIN_AT, drain_s=given.limits.drain_s,
    )  # fmt: skip


def _write(folder: "RunFolder", records: "Iterator[Record]") -> None:
    """Nobody reads along, so that many records of a kind are one write."""
    from harness.store.folder import encode

    lines: defaultdict[type, list[bytes]] = defaultdict(list)
    with folder.recorder() as recorder:
        for record in records:
            kind = type(record)
            lines[kind].append(encode(record))
            if len(lines[kind]) == _CHUNK:
                recorder.append(kind, b"".join(lines.pop(kind)))
        for kind, rest in lines.items():
            recorder.append(kind, b"".join(rest))


def _tell(arguments: argparse.Namespace, folder: "RunFolder") -> int:
    """Seal and report, as ``pipeswarm report`` does."""
    if arguments.no_report:
        printing.show(arguments, lambda: f"run: {folder.path}", lambda: json.dumps({"run": str(folder.path)}))
        return ExitCode.OK
    return report.write(folder, arguments)
