"""Runs benchmarks one after the other and keeps what they print in `benchmarks/results`, with machine and commit.

    python benchmarks/run.py                        # all: half an hour or more, on a machine with nothing else to do
    python benchmarks/run.py drive --long           # one of them, with its options
    python benchmarks/run.py detectors --seed 77

What stands before the figures in a results file is kept. The exit code is 1 where a bound was missed, or could not be
measured because the machine was busy with something else.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.benchmarking import described, kept, written

HERE = Path(__file__).parent
NAMES = ("drive", "simulator", "analysis", "observer", "generators", "capacity", "comparisons", "detectors",
         "what_if")  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    chosen, options = ((arguments[0],), arguments[1:]) if arguments else (NAMES, ())
    if not set(chosen) <= set(NAMES):
        print(f"error: there is no benchmark {chosen[0]}\n  → choose one of {', '.join(NAMES)}", file=sys.stderr)
        return 2
    return max([run(name, options) for name in chosen])


def run(name: str, options: Sequence[str]) -> int:
    """Run one and write its results; its exit code, 1 when it says that a bound was missed."""
    where, begun = described(HERE.parent), time.monotonic()
    command = ["python", f"benchmarks/{name}.py", *options]
    print(f"== {' '.join(command)}", flush=True)
    lines = []
    with subprocess.Popen(
        [sys.executable, "-u", HERE / f"{name}.py", *options], stdout=subprocess.PIPE, text=True, cwd=HERE.parent
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if "--help" in options or process.returncode not in {0, 1}:
        return process.returncode  # it measured nothing: what stands in its page stays
    failed = process.returncode != 0
    minutes = (time.monotonic() - begun) / 60
    end = "a bound was missed or not measured" if failed else "all bounds were met"
    told = f"`{' '.join(command)}`, {minutes:.0f} min: {end} (exit code {process.returncode}). {where}"
    page = HERE / "results" / f"{name.replace('_', '-')}.md"
    page.write_text(kept(page, name) + written(told, "".join(lines)), encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
