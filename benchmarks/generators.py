"""What a million scenarios cost: ratios within one run, in CPU time, so that other work on the machine hardly matters.

    python benchmarks/generators.py [--rows 1000000]

The mix is examples/mix.scenario.yaml. "Faker" fills every cell with one call of Faker, as a script would; "merely
writing" puts the finished rows into a new file. Each figure is the best of three.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.benchmarking import Table

SPEC = Path(__file__).parent.parent / "examples" / "mix.scenario.yaml"
REPEATS = 3
FAKER_ROWS = 1500


def cpu_of(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of a whole process."""
    watched = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024); sys.exit(done.returncode)"
    )
    answer = subprocess.run([sys.executable, "-c", watched, *command], check=True, capture_output=True, text=True)
    seconds, megabytes = answer.stdout.split()[-2:]
    return float(seconds), float(megabytes)


def generated(rows: int, output: Path, *more: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "generators", "--n", str(rows), "--seed", "7", "-o", str(output), "--quiet"]
    return cpu_of([*command, *more])


def best(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(REPEATS))


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def one_call_a_cell(rows: int, output: Path) -> None:
    """The same ten columns as a script with Faker writes them: each cell is what one call returns.

    `json` gives a name and an address unless told otherwise, as the mix does.
    """
    import csv
    from collections import OrderedDict
    from datetime import date

    from faker import Faker

    fake = Faker("en_US")
    first, last = date(2025, 1, 1), date(2025, 12, 31)
    tiers = OrderedDict([("bronze", 0.6), ("silver", 0.3), ("gold", 0.1)])
    with output.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        for number in range(rows):
            writer.writerow(
                [
                    number,
                    fake.name(),
                    fake.uuid4(),
                    fake.city(),
                    fake.date_between(first, last),
                    fake.pyfloat(min_value=0, max_value=1, right_digits=4),
                    fake.pyfloat(min_value=1, max_value=99, right_digits=2),
                    fake.random_element(tiers),
                    fake.json(num_rows=1),
                    fake.uri(),
                ]
            )


def write_rows(rows: list[bytes], output: Path) -> None:
    output.unlink(missing_ok=True)
    with output.open("wb") as out:
        out.writelines(rows)


def in_process(rows: int, output: Path) -> Callable[[], object]:
    """Generation without the start of the interpreter, vocabularies drawn anew each time."""
    from generators.formats import Csv
    from generators.generate import Job, generate
    from generators.sources import Sources
    from generators.spec import read_spec
    from harness.documents import read_yaml

    spec = read_spec(read_yaml(SPEC))

    def work() -> None:
        output.unlink(missing_ok=True)
        with output.open("wb", buffering=0) as out:
            generate(Job(spec, 7, rows, Csv(), Sources()), out, lambda _: None)

    return work


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mix.csv"
        spec = ("--spec", str(SPEC))
        whole = [generated(rows, file, *spec) for _ in range(REPEATS)]
        _, small = generated(rows // 4, file, *spec)
        lines = file.read_bytes().splitlines(keepends=True)
        writing = best(lambda: timed(lambda: write_rows(lines, Path(folder) / "again.csv"))) / len(lines)
        size = file.stat().st_size / len(lines)
        faker = best(lambda: timed(lambda: one_call_a_cell(FAKER_ROWS, Path(folder) / "faker.csv"))) / FAKER_ROWS
        ours = best(lambda: timed(in_process(rows, file))) / rows
        default = best(lambda: generated(5000, file)[0])
    process = min(seconds for seconds, _ in whole) / rows
    peak, dearest = max(peak for _, peak in whole), faker / ours
    table = Table()
    table.row("rows per CPU second", f"{1 / ours:,.0f}")
    table.row("  as a whole process, imports included", f"{1 / process:,.0f}")
    table.row("  Faker, one call a cell", f"{1 / faker:,.0f}")
    table.row("  merely writing the same rows", f"{1 / writing:,.0f}")
    table.row("× Faker", f"{dearest:,.0f}", "≥ 400", dearest >= 400)
    table.row("× merely writing", f"{writing / ours:.2f}", "≥ 0.18", writing / ours >= 0.18)
    table.row("bytes a row", f"{size:.0f}")
    table.row(f"peak memory at {rows:,} rows, MB", f"{peak:.0f}", "< 400", peak < 400)
    table.row(f"  at {rows // 4:,} rows, × that", f"{small / peak:.2f}", "≥ 0.8", small / peak >= 0.8)
    table.row("generate-scenarios --n 5000, CPU s", f"{default:.2f}", "< 1", default < 1)
    return int(table.failed)


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # where this script is called like the package that it measures
    os.environ["POLARS_MAX_THREADS"] = "1"  # as the command line sets it
    sys.exit(main())
