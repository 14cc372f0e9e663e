"""Tests one point of an experiment: in simulated time, or by a load test with Locust on a platform."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harness.model.cluster import PoolNode
from harness.model.errors import ConfigError, ExitCode, PipeswarmError, TargetUnreachableError
from harness.model.experiment import Point, Result
from harness.model.slo import RUN_DURATION, Slo, parse_slo
from harness.model.units import counted
from harness.planning import simulated_burst
from harness.planning.experiment_file import ExperimentFile, Hooks
from harness.planning.sweeps import DaskWorkers, Sweep, Workers
from harness.planning.timelines import timeline_of
from harness.store.names import free_name, safe_name

_POLL_S = 2.0


class Cordoning(Protocol):
    """A cluster whose nodes can be cordoned."""

    def nodes(self) -> Sequence[PoolNode]:
        """All nodes of the cluster, of every pool."""
        ...

    def cordon(self, node: str, *, cordoned: bool) -> None:
        """Keep new pods off a node, or allow them again."""
        ...


def set_nodes(cluster: Cordoning, pool: str, count: int, timeout_s: float) -> None:
    """Leave the `count` oldest ready nodes of `pool` schedulable and cordon the rest.

    Raises:
        ConfigError: the pool has fewer ready nodes, even after `timeout_s`.
        TargetUnreachableError: the cluster does not answer.
    """
    until = time.monotonic() + timeout_s
    while True:
        nodes = [node for node in cluster.nodes() if node.node.pool == pool]
        nodes.sort(key=lambda node: (node.node.created_at, node.node.name))
        ready = [node.node.name for node in nodes if node.node.ready_at is not None]
        if len(ready) >= count:
            break
        if time.monotonic() > until:
            raise ConfigError(
                f"pool '{pool}' has {counted(len(ready), 'ready node')}, the experiment needs {count}",
                "enlarge the pool: nodes are only cordoned, never added",
            )
        time.sleep(_POLL_S)
    for node in nodes:
        cordoned = node.node.name not in ready[:count]
        if node.cordoned != cordoned:
            cluster.cordon(node.node.name, cordoned=cordoned)


if TYPE_CHECKING:
    from harness.simulator.profile import Profile


class Tester(Protocol):
    """What makes the tests of an experiment, such as a `Sweep`."""

    @property
    def width(self) -> int:
        """How many points it can work on at present."""

    def first(self, arguments: Sequence[Point], /) -> Result:
        """Test the first point; the others may be asked for next."""


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Makes one test after the other: a platform has no room for two."""

    test: Callable[[Point], Result]
    width = 1

    def first(self, arguments: Sequence[Point], /) -> Result:
        """See `Tester`."""
        return self.test(arguments[0])


_ANY = simulated_burst.SimulatedBurst(1, 1.0, (1.0,), 1)  # any result shows whether an SLO can be measured
_ATTEMPTS = 3  # at a test that is invalid
_SIMULATED = {"simulate", "fault", "pipeline", "prepare", "pool"}


class _Simulated(NamedTuple):
    """What a variant tests: a platform, its pipeline, and the pool that is sized; see `with_nodes`."""

    profile: "Profile"
    package: bytes
    pool: str


def tester(
    plan: ExperimentFile, folder: Path, connect: Callable[[], Cordoning], workers: Workers | DaskWorkers
) -> Tester:
    """What tests the points of this plan; mistakes in the plan are found here, before anything is written.

    Args:
        plan: of the experiment.
        folder: of the experiment; load tests leave their run folders in it.
        connect: connects to the cluster, for plans that cordon nodes.
        workers: what simulations run on.

    Raises:
        ConfigError: a variant's options, an objective or the locustfile can't work.
    """
    if not plan.simulate:
        if not plan.locustfile.is_file():
            raise ConfigError(f"there is no locustfile {plan.locustfile}", "give a path relative to the plan's folder")
        return OneByOne(partial(_load_test, plan, folder, connect))
    platforms = {name: _platform(plan, name) for name in plan.variants}
    slos = tuple(map(parse_slo, plan.slos))
    for slo in slos:
        _measure(slo, _ANY)
    return Sweep(partial(_simulate, platforms, slos, plan.experiment.seed), workers)


def _platform(plan: ExperimentFile, variant: str) -> _Simulated:
    from harness.prepare.options import parse_settings
    from harness.simulator.faults import parse_fault
    from harness.simulator.profile.file import load_profile

    options = plan.variants[variant]
    unknown = sorted(set(options) - _SIMULATED)
    if unknown:
        raise ConfigError(
            f"variant '{variant}': '{unknown[0]}' has no meaning in simulated time",
            f"{', '.join(sorted(_SIMULATED))} do",
        )
    profile = load_profile(str(options.get("simulate") or plan.simulate))
    fault = parse_fault(str(options.get("fault") or "none"))
    if fault is not None:
        profile = replace(profile, faults=(*profile.faults, fault))
    pipeline = Path(str(options["pipeline"])) if "pipeline" in options else plan.pipeline
    changes, pool = parse_settings(str(options.get("prepare") or "")), str(options.get("pool") or "")
    package = simulated_burst.package(pipeline, profile, changes)
    if pool:
        simulated_burst.with_nodes(profile, 1, package, pool)
    return _Simulated(profile, package, pool)


def _simulate(platforms: Mapping[str, _Simulated], slos: Sequence[Slo], base_seed: int, point: Point) -> Result:
    platform = platforms[point.variant]
    # Variants of one repetition share random numbers; repetitions and sizes do not.
    seed = Random(f"{base_seed}/{point.load}/{point.nodes}/{point.repetition}").getrandbits(32)
    profile = simulated_burst.with_nodes(platform.profile, point.nodes, platform.package, platform.pool)
    test = simulated_burst.burst(profile, platform.package, point.load, seed)
    met = all(slo.holds(_measure(slo, test)) for slo in slos)
    values = {
        "makespan (s)": test.duration_s,
        "run.duration p95 (s)": _quantile(test.run_s, 95.0),
        "failed_ratio": 1 - test.succeeded / test.runs,
        **({"cost": test.cost, "goodput (runs/money)": test.succeeded / test.cost} if test.cost else {}),
    }
    return Result(point, met, values)


def _measure(slo: Slo, test: simulated_burst.SimulatedBurst) -> float:
    """The SLO's quantity in a simulated test.

    Raises:
        ConfigError: a simulated test does not have it.
    """
    if slo.quantity == RUN_DURATION:
        match slo.measure:
            case "percentile":
                return _quantile(test.run_s, slo.percentile or 0.0)
            case "mean":
                return sum(test.run_s) / len(test.run_s) if test.run_s else float("inf")
            case "min":
                return min(test.run_s, default=0.0)
            case _:
                return max(test.run_s, default=float("inf"))
    match slo.measure:
        case "throughput":
            return test.succeeded / test.duration_s if test.duration_s else 0.0
        case "failed_ratio":
            return 1 - test.succeeded / test.runs
        case "succeeded_ratio":
            return test.succeeded / test.runs
    raise ConfigError(
        f"the SLO '{slo.text}' can't be judged in simulated time",
        f"{RUN_DURATION}, throughput, failed_ratio and succeeded_ratio can; for others, load a platform with Locust",
    )


def _quantile(values: tuple[float, ...], percentile: float) -> float:
    import numpy as np

    return float(np.quantile(values, percentile / 100, method="inverted_cdf")) if values else float("inf")


def _load_test(plan: ExperimentFile, folder: Path, connect: Callable[[], Cordoning], point: Point) -> Result:
    """One load test after the hooks; an invalid test is repeated.

    Raises:
        PipeswarmError: there is no valid result.
    """
    name = safe_name(f"{point.variant}-{point.load}-{point.nodes}-{point.repetition}")
    for _ in range(_ATTEMPTS):
        _prepare(plan.hooks, connect, point)
        done = subprocess.run(_command(plan, folder, point, free_name(folder / "runs", name)), check=False)  # noqa: S603  # the user's own load
        if done.returncode in {ExitCode.OK, ExitCode.SLO_FAILED}:
            latest = max((folder / "runs").glob(f"{name}*"), key=lambda path: path.stat().st_mtime)
            return Result(point, done.returncode == ExitCode.OK, _values(latest), latest.name)
        if done.returncode == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if done.returncode != ExitCode.INVALID:
            break
    code = done.returncode
    meaning = ExitCode(code).meaning if code in set(ExitCode) else "it ended abnormally"
    raise _TestError(f"the test of {point.size(plan.experiment.unit)} ended with {code}: {meaning}", code)


class _TestError(PipeswarmError):
    """A test of the experiment failed; its exit code is passed on."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message, "fix it and call again: the experiment continues with this test")
        if code in set(ExitCode):
            self.exit_code = ExitCode(code)


def _command(plan: ExperimentFile, folder: Path, point: Point, name: str) -> list[str]:
    options: dict[str, object] = {
        "schedule": "burst",
        "runs": point.load,
        "seed": plan.experiment.seed + point.repetition,
        "runs-dir": folder / "runs",
        "run-name": name,
        **({"pipeline": plan.pipeline} if plan.pipeline else {}),
        **plan.options,
        **plan.variants[point.variant],
    }
    given = [f"--{key}={value}" for key, value in options.items()]
    slos = [f"--slo={slo}" for slo in plan.slos]
    start = [sys.executable, "-m", "locust", "-f", str(plan.locustfile), "--headless", "--only-summary", "--skip-log"]
    return [*start, *given, *slos]


def _values(run: Path) -> Mapping[str, float]:
    from harness.analysis.stats.measures import measured

    return measured(timeline_of(run))


def _prepare(hooks: Hooks, connect: Callable[[], Cordoning], point: Point) -> None:
    if hooks.pool:
        set_nodes(connect(), hooks.pool, point.nodes, hooks.timeout)
    _run_hook("set_nodes", hooks.set_nodes, hooks.timeout, point)
    _run_hook("before", hooks.before, hooks.timeout, point)
    time.sleep(hooks.cool_down)


def _run_hook(name: str, command: str, timeout_s: float, point: Point) -> None:
    """Run a user's command.

    Raises:
        ConfigError: it fails.
        TargetUnreachableError: it exceeds the timeout.
    """
    if not command:
        return
    filled = command.format(nodes=point.nodes, load=point.load, variant=point.variant, repetition=point.repetition)
    try:
        done = subprocess.run(filled, shell=True, timeout=timeout_s, check=False)  # noqa: S602  # the user's own command
    except subprocess.TimeoutExpired:
        raise TargetUnreachableError(
            f"hook '{name}' did not finish within {timeout_s:g} s: {filled}", "raise hooks.timeout"
        ) from None
    if done.returncode:
        raise ConfigError(f"hook '{name}' failed with {done.returncode}: {filled}", "try it by hand, then call again")
