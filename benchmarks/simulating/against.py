"""The same simulations in another checkout or a compiled copy, and on simpy, in turn: user CPU seconds as ratios."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.simulating.platforms import COMMAND, PODS_A_RUN, ROOT
from tests.support.benchmarking import Table

TRIES = 4
RUNS = 10_000
# In seconds of user time, without imports; every checkout has these functions.
_MODEL, _ALONE = "the model alone, 2,000 runs on 200 nodes", 2000
_ON_SIMPY = f"fast.on_simpy(fast.profile(200), {_ALONE}, fast.Ranks)"
_MEASURED = {
    _MODEL: (f"fast.ours(fast.profile(200), {_ALONE})", _ALONE),
    f"with all records, {RUNS:,} runs on 1,000 nodes": (f"fast.records({RUNS}, 1000)", RUNS),
}
_WORK = (
    "import gc, json, os; from benchmarks.simulating import fast; gc.disable(); "
    "used = os.times().user; %s; print(json.dumps(os.times().user - used))"
)
_COMMAND = f"pipeswarm simulate run --runs {RUNS}"


def _in(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}


def _work_s(tree: Path, work: str) -> float:
    command = [sys.executable, "-c", _WORK % work]
    done = subprocess.run(command, cwd=tree, env=_in(tree), check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


def _command_s(tree: Path) -> float:
    """From the interpreter's start to the run folder on disk."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "thousand.yaml").write_text(COMMAND)
        command = [
            sys.executable, "-m", "harness.cli", "simulate", "run", "--profile", f"{place}/thousand.yaml",
            "--schedule", "burst", "--runs", str(RUNS), "--runs-dir", place, "--no-report",
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command, cwd=tree, env=_in(tree), check=True, capture_output=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def against(table: Table, trees: list[Path]) -> None:
    """Measure `trees` and this checkout in turn; the best of a few tries counts."""
    print("\nagainst other checkouts, user CPU seconds")
    every = [ROOT, *trees]
    names = ["this one", *(tree.name for tree in trees)]
    for name, (work, runs) in _MEASURED.items():
        # Simpy's model is Python, and uses this checkout's.
        simpy = [(ROOT, _ON_SIMPY)] if name == _MODEL else []
        works = [*((tree, work) for tree in every), *simpy]
        tries = [[_work_s(tree, work) for tree, work in works] for _ in range(TRIES)]
        _rows(table, name, [*names, *("on simpy, with our ranking of nodes" for _ in simpy)], tries, runs)
    _rows(table, _COMMAND, names, [[_command_s(tree) for tree in every] for _ in range(TRIES)], RUNS)


def _rows(table: Table, what: str, names: list[str], tries: list[list[float]], runs: int) -> None:
    best = [min(each) for each in zip(*tries, strict=True)]
    for name, used in zip(names, best, strict=True):
        ratio = f" = {used / best[0]:.2f} × this one" if name != names[0] else ""
        table.row(f"{what}, {name}: s", f"{used:.2f}")
        table.row(f"  µs a pod{ratio}", f"{used / runs / PODS_A_RUN * 1e6:.1f}")
