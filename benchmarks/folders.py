"""What commands over many run folders cost, as a month of nightly tests leaves them."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.benchmarking import Table
from tests.support.command_cost import measured

RUNS = 5000  # of a folder
_LIMIT_S, _LIMIT_GB = 10.0, 1.0  # of a command over a thousand folders
_PIPESWARM = [sys.executable, "-m", "harness.cli"]


def measure(table: Table, first: Path, count: int) -> None:
    """Add rows of commands over a run folder and its copies, `count` in all, each with its report."""
    print(f"\n{count:,} folders of {RUNS:,} runs")
    begun = time.perf_counter()
    subprocess.run([*_PIPESWARM, "report", first, "--quiet"], check=True, capture_output=True)
    table.row("the report of one: seconds", f"{time.perf_counter() - begun:.1f}")
    for name, arguments in _commands(first, count).items():
        taken, cpu_s, gigabytes = measured([*_PIPESWARM, *arguments])
        few = count < 1000
        table.row(f"{name}: seconds", f"{taken:.1f}", f"{_LIMIT_S:g}", few or taken <= _LIMIT_S)
        table.row("  CPU seconds", f"{cpu_s:.1f}")
        table.row("  gigabytes", f"{gigabytes:.2f}", f"{_LIMIT_GB:g}", few or gigabytes <= _LIMIT_GB)


def _commands(first: Path, count: int) -> Mapping[str, list[str]]:
    folders = [first, *(first.with_name(f"{first.name}-{k:04d}") for k in range(1, count))]
    for folder in folders[1:]:
        shutil.copytree(first, folder, copy_function=os.link)
    halves = [",".join(map(str, part)) for part in (folders[: count // 2], folders[count // 2 :])]
    return {
        "index": ["report", str(first.parent)],
        "compare, half with half": ["compare", *halves],
        "capacity": ["capacity", "--from", *map(str, folders), "--runs", "10000", "--within", "12h"],
    }
