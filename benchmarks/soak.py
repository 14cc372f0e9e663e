"""A long load in real time: whether memory, files and live views stay as they are while runs pass through.

    python benchmarks/soak.py                           # an hour at 20/s
    python benchmarks/soak.py --minutes 5 --rate 20     # a look
    python benchmarks/soak.py --nice -15                # as root, on a machine that others use: CPU before theirs

A master with two workers, its observer and its live diagnosis load the served simulated platform, whose runs have
one step (three pods). Every ten seconds the memory of each process, the sizes of all files and the live views are
sampled, into build/soak/samples.jsonl; `--samples FILE` judges such a file again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.support.benchmarking import Table
from tests.support.e2e import BIN, ROOT, free_port
from tests.support.serving import simulated

HERE = Path(__file__).parent
PLACE = ROOT / "build/soak"
EVERY_S = 10.0
FLAT = 1.1
STRAIGHT = 0.05

Sample = dict[str, Any]


def main() -> int:
    """Print how each process, file and view developed; 1 when something grew, or the ledger is not exact."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--place", type=Path, default=PLACE)
    options = parser.parse_args()
    place = options.place
    if options.samples is None:
        shutil.rmtree(place, ignore_errors=True)
        (place / "temporary").mkdir(parents=True)
        soak(place, options.minutes, options.rate, options.nice)
    samples = [json.loads(line) for line in (options.samples or place / "samples.jsonl").read_text().splitlines()]
    table = Table((48, 16, 8))
    judge(table, samples)
    exact(table, next((place / "runs").iterdir()), round(options.minutes * 60 * options.rate))
    return int(table.failed)


def soak(place: Path, minutes: float, rate: int, nice: int) -> None:
    """Load the simulated platform for so long, and sample meanwhile."""
    master, metrics = str(free_port()), free_port()
    with simulated("--profile", str(HERE / "loopback/fast_platform.yaml")) as served:
        command = [
            BIN / "locust", "-f", ROOT / "locustfiles/kfp.py", "--headless", "--only-summary", "--host", served.url,
            "--pipeline", HERE / "loopback/one_step.yaml", "--caching", "off", "--schedule", "constant",
            "--rate", f"{rate}/s", "--for", f"{minutes:g}m", "--yes", "--runs-dir", place / "runs", "--processes", "2",
            "--master-bind-port", master, "--master-port", master, "--serve-metrics", str(metrics),
        ]  # fmt: skip
        environment = {**os.environ, "KUBECONFIG": served.kubeconfig, "TMPDIR": str(place / "temporary")}
        begun = time.monotonic()
        with (
            (place / "locust.txt").open("w") as output,
            (place / "samples.jsonl").open("w") as samples,
            subprocess.Popen(list(map(str, command)), stdout=output, stderr=output, env=environment) as locust,
        ):
            processes = {"platform": psutil.Process(served.process.pid)}
            while locust.poll() is None:
                for each in processes_of(psutil.Process(locust.pid), processes, nice):
                    processes.setdefault(*each)
                sample = {"at_s": time.monotonic() - begun, **look(place, processes, metrics)}
                print(json.dumps(sample), file=samples, flush=True)
                time.sleep(EVERY_S)


def processes_of(
    locust: psutil.Process, known: dict[str, psutil.Process], nice: int
) -> Iterator[tuple[str, psutil.Process]]:
    """The processes of the test by what they do; each gets `nice` in place of its session's."""
    with suppress(psutil.Error):
        children = [locust, *locust.children(recursive=True)]
        workers = 0
        for process in children:
            words = process.cmdline()
            if nice:
                with suppress(OSError):
                    Path(f"/proc/{process.pid}/autogroup").write_text(str(nice))
            if "observe" in words:
                yield "observer", process
            elif "--findings" in words:
                yield "live diagnosis", process
            elif process is locust:
                yield "master", process
            elif "--processes" in words:
                workers += 1
                yield f"worker {workers}", process
    if nice:
        with suppress(OSError):
            Path(f"/proc/{known['platform'].pid}/autogroup").write_text(str(nice))


def look(place: Path, processes: dict[str, psutil.Process], metrics: int) -> Sample:
    """MiB, open files and CPU seconds by process, bytes by file, and the live views."""
    memory, cpu, files = {}, {}, {}
    for name, process in processes.items():
        with suppress(psutil.Error):
            memory[name] = process.memory_info().rss / 2**20
            cpu[name] = sum(process.cpu_times()[:2])
            files[name] = process.num_fds()
    sizes = {each.name: each.stat().st_size for each in place.glob("runs/*/*.json*")}
    spooled = sum(each.stat().st_size for each in (place / "temporary").rglob("*") if each.is_file())
    views: dict[str, float] = {}
    begun = time.monotonic()
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=60) as answer:
        views["metrics"] = len(answer.read())
        views["metrics_ms"] = (time.monotonic() - begun) * 1e3
    for each in place.glob("runs/*/live.json"):
        views["live_age_s"] = time.time() - each.stat().st_mtime
        views["live"] = json.loads(each.read_text())
    return {"memory": memory, "cpu": cpu, "files": files, "sizes": sizes, "spooled": spooled, "views": views}


def judge(table: Table, samples: list[Sample]) -> None:
    """Rows on what the samples show between the warm-up, a quarter of the load, and its end."""
    going = [each for each in samples if each["views"].get("live", {}).get("load", {}).get("stage") == "dispatching"]
    steady = going[len(going) // 4 :]
    minutes = (steady[-1]["at_s"] - steady[0]["at_s"]) / 60
    print(f"from {steady[0]['at_s'] / 60:.0f} min on, for {minutes:.0f} min")
    for name in sorted({name for each in steady for name in each["memory"]}, key="platform".__eq__):
        column = [each["memory"][name] for each in steady if name in each["memory"]]
        begin, end = (float(np.median(part)) for part in (column[: len(column) // 10], column[-len(column) // 10 :]))
        bound = f"{FLAT:g} ×" if name != "platform" else ""
        cpu = [each["cpu"][name] for each in steady if name in each["cpu"]]
        beside = f"at most {max(column):.0f}; {(cpu[-1] - cpu[0]) / max(minutes, 0.1) / 0.6:.0f} % of a core"
        table.row(f"memory of the {name} (MiB)", f"{begin:.0f} → {end:.0f}", bound, end <= FLAT * begin, beside)
    for name in sorted({name for each in steady for name in each["sizes"] if name.endswith(".jsonl")}):
        mib = np.array([each["sizes"].get(name, 0) for each in steady]) / 2**20
        if mib[-1] < 1:
            continue  # not written with the runs
        at_min = np.array([each["at_s"] for each in steady]) / 60
        slope, level = np.polyfit(at_min, mib, 1)
        bent = float(abs(mib - slope * at_min - level).max() / mib[-1])
        told = f"{mib[-1]:.0f} MiB at the end, {slope:.2f} a minute"
        table.row(f"{name}: farthest from a straight line", f"{bent:.1%}", f"{STRAIGHT:.0%}", bent <= STRAIGHT, told)
    for name, unit, most in (("live.json", "bytes", FLAT), ("/metrics", "bytes", FLAT), ("/metrics", "ms", 2.0)):
        column = list(filter(None, (viewed(each, name, unit) for each in steady)))
        begin, end = (float(np.median(part)) for part in (column[: len(column) // 4], column[-len(column) // 4 :]))
        grown = f"{begin:.4g} → {end:.4g}"
        table.row(f"{name} ({unit})", grown, f"{most:g} ×", end <= most * begin, f"at most {max(column):.4g}")
    ages = [each["views"]["live_age_s"] for each in steady]
    table.row("age of live.json, p99 (s)", f"{np.quantile(ages, 0.99):.1f}", "10", np.quantile(ages, 0.99) <= 10)


def viewed(sample: Sample, name: str, unit: str) -> float:
    """One figure of the live views, 0 where it is missing; findings, which come and go, do not count."""
    views = sample["views"]
    if name == "live.json":
        return len(json.dumps({part: state for part, state in views["live"].items() if part != "findings"}))
    return float(views.get("metrics" if unit == "bytes" else "metrics_ms", 0.0))


def exact(table: Table, folder: Path, count: int) -> None:
    """Rows on the ledger: each arrival once, each run once, and the report's sum."""
    rows = [json.loads(line) for line in (folder / "submissions.jsonl").open()]
    once = sorted(row["seq"] for row in rows) == list(range(count))
    table.row("arrivals in the ledger, each once", f"{len(rows):,} of {count:,}", "all", once)
    runs = len({row["run"] for row in rows if row["run"]})
    table.row("runs, each of one arrival", f"{runs:,}", f"{count:,}", runs == count)
    report = json.loads((folder / "report.json").read_text())
    ledger = report["ledger"]
    ended = ledger["succeeded"] + ledger["failed"]
    told = f"{report['validity']['verdict']}; {'; '.join(report['validity']['reasons'])[:120]}".rstrip("; ")
    table.row("ends in the report", f"{ended:,}", f"{count:,}", ended == count, told)


if __name__ == "__main__":
    sys.exit(main())
