"""Tests as a user starts them, too long for every day: a million arrivals, and a master with four workers."""

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import orjson

from harness.model import Sample, Submission
from harness.model.phases import GENERATOR_CPU
from harness.store import RunFolder

HERE = Path(__file__).parent
LOCUST = Path(sys.executable).with_name("locust")
BUS = 15557


def four_workers(table, server, place, rate=2000, seconds=30):
    """A master with four workers: does each row arrive, and what does the master cost?"""
    locustfile = HERE.parents[1] / "locustfiles/kfp.py"
    workers = [_start(place, locustfile, "--worker", "--master-port", BUS) for _ in range(4)]
    master = _start(
        place, locustfile, "--headless", "--master", "--master-bind-port", BUS, "--expect-workers", 4,
        "--host", server.url, "--pipeline-id", "p", "--scenarios", _scenarios(place), "--run-name", "four", "--yes",
        "--schedule", "constant", "--rate", f"{rate}/s", "--for", f"{seconds}s", "--drain", "0s",
    )  # fmt: skip
    for process in (master, *workers):
        process.wait()
    rows = [row for row in RunFolder.open(place / "runs/four").records(Submission) if row.sent_at is not None]
    lags = sorted((row.sent_at - row.due_at) / 1e6 for row in rows)
    count = rate * seconds
    whole = sorted(row.seq for row in rows) == list(range(count)) and {row.worker for row in rows} == {0, 1, 2, 3}
    told = f"lag p50 {lags[len(lags) // 2]:.1f}, p99 {lags[int(0.99 * len(lags))]:.1f} ms"
    table.row(f"{rate}/s by four workers: rows in the master's ledger", f"{len(rows):,}", f"{count:,}", whole, told)
    shares = _cpu(place / "runs/four")
    told = "the workers: " + ", ".join(f"{share:.2f}" for worker, share in sorted(shares.items()) if worker != "master")
    table.row("   the master's share of a core", f"{shares['master']:.2f}", "0.7", shares["master"] <= 0.7, told)


def million(table, server, place, count=1_000_000, rate=2000):
    """A million arrivals in one test: how much memory the load has after a tenth, a half and all of them."""
    process = _start(
        place, HERE / "instant_load.py", "--headless", "--host", server.url, "--scenarios", _scenarios(place),
        "--schedule", "constant", "--rate", f"{rate}/s", "--for", f"{count // rate}s", "--yes", "--run-name", "million",
    )  # fmt: skip
    folder, sizes = place / "runs/million", {}
    while process.poll() is None and len(sizes) < 3:
        time.sleep(0.5)
        sent = RunFolder(folder).read_live("load").get("sent", 0)
        for mark in (count // 10, count // 2, count - count // 50):
            if sent >= mark and mark not in sizes:
                sizes[mark] = _resident_mib(process.pid)
    process.wait()
    with (folder / "submissions.jsonl").open("rb") as lines:
        rows = [(row["seq"], row["sent_at"] - row["due_at"]) for row in map(orjson.loads, lines)]
    seqs, lag_s = sorted(seq for seq, _ in rows), max(lag for _, lag in rows) / 1e9
    table.row(f"{count:,} arrivals in one test: rows", f"{len(seqs):,}", f"{count:,}", seqs == list(range(count)))
    first, _, last = sizes.values()
    told = ", ".join(f"{size:.0f} MiB at {mark:,}" for mark, size in sizes.items())
    what, busy = "   memory at the end, × that after a tenth", lag_s > 0.25  # hundreds of late ones were open at once
    table.row(what, f"{last / first:.2f}", "1.1", last / first <= 1.1, f"{told}; lag up to {lag_s:.2f} s", busy=busy)
    (share,) = _cpu(folder).values()
    table.row(f"   share of a core, at {rate}/s", f"{share:.2f}", "0.7", share <= 0.7)


def _scenarios(place):
    path = place / "scenarios.csv"
    path.write_text("id,scenario_name\n" + "".join(f"{k},s\n" for k in range(500)))
    return path


def _start(place, locustfile, *arguments):
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("LOCUST_", "PIPESWARM_"))}
    command = [LOCUST, "-f", locustfile, "--only-summary", "--skip-log", *arguments]
    with (place / "locust.log").open("ab") as log:
        return subprocess.Popen(
            list(map(str, command)), cwd=place, stdout=log, stderr=log, env={**environment, "KUBECONFIG": os.devnull}
        )


def _cpu(folder):
    """The mean share of a core of each process that sent, as the run folder has it."""
    shares = {}
    for sample in RunFolder.open(folder).records(Sample):
        if sample.metric == GENERATOR_CPU:
            shares.setdefault(sample.labels["worker"], []).append(sample.value)
    return {worker: statistics.fmean(values) for worker, values in shares.items()}


def _resident_mib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024
