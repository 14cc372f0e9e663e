"""In simulated time: against the same platform on simpy, as it grows, and as a command."""

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from math import log2
from pathlib import Path

from benchmarks.simulating.platforms import COMMAND, PIPELINE, PODS_A_RUN, ROOT
from harness.model import Scenario
from harness.simulator.cluster.ranking import Ranks
from harness.simulator.fast import Arrival, simulate_compactly
from harness.simulator.kfp.records import OVER
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.profile.file import load_profile
from tests.support.benchmarking import Table
from tests.support.on_simpy import simulated
from tests.support.simpy_parts import Search

MANY = 10_000  # runs
MOST = 142_858  # runs of 1,000,000 pods
TRIES = 3


def profile(nodes: int) -> Profile:
    """Many equal machines from the start, and a store without waiting."""
    base = load_profile("aks-20-nodes")
    pools = tuple(
        replace(pool, initial=nodes, min=nodes, max=nodes) if pool.name == "steps" else pool for pool in base.pools
    )
    fast = {"qps": 500.0, "burst": 1000}
    store = replace(base.store, capacity=1e15, bytes_per_s=1e12)
    return replace(
        base, pools=pools, autoscaler=None, store=store,
        api=replace(base.api, **fast), controller=replace(base.controller, **fast),
    )  # fmt: skip


# --- against simpy --------------------------------------------------------------------------------------------------


def ours(its_profile: Profile, runs: int) -> float:
    """The model alone; returns when the mean run was over."""
    platform = Platform(its_profile, 1)
    version = platform.server.catalogue.create_pipeline(PIPELINE)
    (version,) = platform.server.catalogue.versions_of(version.id)
    started = [platform.server.prepare_run(f"r{k}", "", version, {}, by_reference=True) for k in range(runs)]
    for run in started:
        platform.server.start_run(run, lambda _: None)
    while any(run.state not in OVER for run in reversed(started)):
        platform.loop.run(platform.loop.now + 60)
    return sum(run.finished or 0.0 for run in started) / runs


def on_simpy(its_profile: Profile, runs: int, ranks: type[Ranks | Search]) -> float:
    return sum(run.finished or 0.0 for run in simulated(its_profile, PIPELINE, [0.0] * runs, 1, ranks)) / runs


def cpu_of(work: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds with garbage collection off: neither model leaves cycles."""
    gc.collect()
    gc.disable()
    begun = time.process_time()
    result = work()
    used = time.process_time() - begun
    gc.enable()
    return used, result


def against_simpy(table: Table, runs: int = 2000, nodes: int = 200) -> None:
    its_profile = profile(nodes)
    models: dict[str, Callable[[], float]] = {
        "ours": lambda: ours(its_profile, runs),
        "on simpy, looking for a node among all": lambda: on_simpy(its_profile, runs, Search),
        "on simpy, with our ranking of nodes": lambda: on_simpy(its_profile, runs, Ranks),
    }
    tries = [{name: cpu_of(model) for name, model in models.items()} for _ in range(TRIES)]
    best = {name: min(each[name][0] for each in tries) for name in models}
    means = {name: tries[0][name][1] for name in models}
    print(f"\n{runs:,} runs, {PODS_A_RUN * runs:,} pods, {nodes:,} nodes, model alone")
    for name, used in best.items():
        table.row(f"CPU µs a pod, {name}", f"{used / runs / PODS_A_RUN * 1e6:.1f}")
    mine, plain, ranked = best.values()
    table.row("the same platform on simpy, × ours", f"{plain / mine:.1f}", "≥ 3", kept=plain >= 3 * mine)
    table.row("the same with our ranking of nodes, × ours", f"{ranked / mine:.1f}")
    off = max(abs(mean / means["ours"] - 1) for mean in means.values())
    table.row("mean end of a run, by how much the models differ", f"{off:.2%}", "< 1 %", kept=off < 0.01)


# --- growth ---------------------------------------------------------------------------------------------------------

_ONE = (
    "import json, resource, sys, time; from benchmarks.simulating.fast import records; "
    "used = time.process_time(); records(int(sys.argv[1]), int(sys.argv[2])); "
    "print(json.dumps([time.process_time() - used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))"
)


def records(runs: int, nodes: int) -> int:
    """Everything that ends up in a run folder."""
    return _count(profile(nodes), runs)


def records_of(path: str, runs: int) -> int:
    """The same on the platform of a profile's file."""
    return _count(load_profile(path), runs)


def _count(its_profile: Profile, runs: int) -> int:
    arrivals = [Arrival(0.0, Scenario(str(number), "run", {}, {})) for number in range(runs)]
    return sum(1 for _ in simulate_compactly(its_profile, PIPELINE, arrivals, seed=1))


def alone(runs: int) -> tuple[float, float]:
    """CPU seconds and MB of a process that simulates so many runs on a tenth as many nodes."""
    command = [sys.executable, "-c", _ONE, str(runs), str(runs // 10)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    used, megabytes = json.loads(done.stdout)
    return used, megabytes


def growth(table: Table, *, long: bool) -> None:
    print("\nall records of a test; a tenth as many nodes as runs")
    per_log: dict[int, float] = {}
    for runs in (1000, MANY, MOST) if long else (1000, MANY):
        used, megabytes = min(alone(runs) for _ in range(TRIES if runs < MOST else 1))
        pods = runs * PODS_A_RUN
        per_log[runs] = used / pods / log2(pods) * 1e6
        crowded = os.getloadavg()[0] > (os.cpu_count() or 1)  # others in a core's caches cost CPU seconds, too
        bounded = {"bound": "< 5", "kept": used < 5, "busy": crowded} if runs == MANY else {}
        table.row(f"{runs:,} runs, {pods:,} pods: CPU s", f"{used:.2f}", **bounded)
        bounded = {"bound": "< 1000", "kept": megabytes < 1000} if runs == MANY else {}
        table.row(f"{runs:,} runs, {pods:,} pods: MB", f"{megabytes:.0f}", **bounded)
    first, last = per_log[1000], per_log[max(per_log)]
    # A core's caches are a hundred times faster than its memory, which n log n doesn't know.
    most = 1.5
    name = f"CPU a pod / log(pods), {max(per_log) * PODS_A_RUN:,} pods × 7,000 pods"
    table.row(name, f"{last / first:.2f}", f"< {most}", kept=last < most * first)


def as_a_command(table: Table) -> None:
    """From the interpreter's start to the run folder on disk."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "thousand.yaml").write_text(COMMAND)
        command = [
            sys.executable, "-m", "harness.cli", "simulate", "run", "--profile", f"{place}/thousand.yaml",
            "--schedule", "burst", "--runs", str(MANY), "--runs-dir", place, "--no-report",
        ]  # fmt: skip
        used, alone_s = [], []
        counted = f"from benchmarks.simulating.fast import records_of; records_of('{place}/thousand.yaml', {MANY})"
        for _ in range(TRIES):
            alone_s.append(_used(sys.executable, "-c", counted))
            used.append(_used(*command))
    table.row(f"pipeswarm simulate run --runs {MANY}, with its run folder: CPU s", f"{min(used):.2f}")
    ratio = min(used) / min(alone_s)
    table.row("  × the same records made and dropped by one process", f"{ratio:.2f}", "≤ 1.4", kept=ratio <= 1.4)


def _used(*command: str) -> float:
    """CPU seconds of a process and its children, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
