"""What the analysis costs on a large run: seconds and peak memory, beside plain pandas for the same answers.

    python benchmarks/analysis.py [--runs 1000000] [--pods 6]

A sealed run folder is drawn at random (a million runs of six pods with three stretches each are 19 million spans); each
side works in a process of its own. Plain pandas gives fewer answers: seconds by phase without the parallel steps of a
run being merged, quantiles without intervals, throughput in windows, pods by task. It writes no report.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.model import Event, Node, Plan, Sample, Span, Submission
from harness.model.phases import RUN, RUNNING, SCHEDULING, STARTING, SUCCEEDED
from harness.store import RunFolder
from harness.store.tables import schema

ORIGIN_AT = 1_790_000_000 * 10**9
NODES = 1000
LIMIT_S, LIMIT_GB = 40.0, 3.0  # for a million runs on two cores


def main() -> int:
    """Print seconds and memory of both sides; 1 when a million runs take more than is promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--pods", type=int, default=6)
    parser.add_argument("--side", choices=("report", "pandas"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return measure(options.side, options.folder)
    with tempfile.TemporaryDirectory() as place:
        folder = draw(Path(place), options.runs, options.pods)
        sides = {}
        for side in ("pandas", "report"):
            command = [sys.executable, __file__, "--side", side, "--folder", str(folder)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            sides[side] = float(said[-2]), float(said[-1])
    print(f"{options.runs:,} runs of {options.pods} pods{'':12}{'seconds':>10}{'GB':>8}")
    for side, (seconds, memory) in sides.items():
        what = "plain pandas, part of the answers" if side == "pandas" else "analysis, diagnosis, all reports"
        print(f"{what:40}{seconds:10.1f}{memory:8.2f}")
    ratio = [sides["report"][k] / sides["pandas"][k] for k in (0, 1)]
    print(f"{'ratio':40}{ratio[0]:10.2f}{ratio[1]:8.2f}")
    large = options.runs >= 1_000_000
    return int(large and (sides["report"][0] > LIMIT_S or sides["report"][1] > LIMIT_GB))


def measure(side: str, path: Path) -> int:
    """One side, in this process: prints its wall-clock seconds and its peak memory in GB."""
    begun = time.perf_counter()
    if side == "report":
        import reports

        reports.rebuild(RunFolder.open(path))
    else:
        plain(path / "tables")
    taken = time.perf_counter() - begun
    print(taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)
    return 0


def plain(tables: Path) -> None:
    """What one would write with pandas alone."""
    import pandas as pd

    spans = pd.read_parquet(tables / "spans.parquet")
    submissions = pd.read_parquet(tables / "submissions.parquet")
    of_run = spans[spans["step"] == ""].set_index("run")
    pods = spans[spans["step"] != ""]
    pods = pods.assign(seconds=(pods["ended_at"] - pods["started_at"]) / 1e9)
    by_phase = pods.pivot_table(index="run", columns="phase", values="seconds", aggfunc="sum")
    runs = submissions.merge(of_run[["ended_at"]], left_on="run", right_index=True).merge(
        by_phase, left_on="run", right_index=True
    )
    duration = (runs["ended_at"] - runs["due_at"]) / 1e9
    found = duration.quantile([0.5, 0.95, 0.99]), by_phase.mean(), pods.groupby("task")["seconds"].mean()
    windows = pd.cut(runs["ended_at"], 100).value_counts()
    first, last = pods.groupby("run")["started_at"].min(), pods.groupby("run")["ended_at"].max()
    assert len(found) + len(windows) + len(first) + len(last)


def draw(place: Path, runs: int, pods: int) -> Path:
    """A sealed folder: runs evenly over time, pods one after the other, each on a node drawn at random."""
    folder = RunFolder.create(place, "large")
    folder.write_plan(
        Plan("kfp", "simulated", {"name": "spread"}, runs, 7, simulated=True, started_at=ORIGIN_AT)
    )  # fmt: skip
    tables = folder.path / "tables"
    tables.mkdir()
    random = np.random.default_rng(7)
    seq = np.arange(runs)
    names = pa.array([f"{k:08x}-0000-4000-8000-{k:012x}" for k in range(runs)])
    due = ORIGIN_AT + seq * 20_000_000
    answered = due + random.integers(8_000_000, 60_000_000, runs)
    lengths = random.integers(1, 30, (runs, pods)) * 10**9
    ends = answered[:, None] + np.cumsum(lengths + 3 * 10**9, axis=1)
    over = ends[:, -1] + 10**9
    _write(tables, Submission, seq=seq, scenario_id=seq.astype(str), run_name=names, due_at=due, sent_at=due + 10**6,
           answered_at=answered, outcome=_same("accepted", runs), run=names, worker=seq % 4, status=_number(200, runs),
           error=pa.nulls(runs, pa.string()))  # fmt: skip
    _write(tables, Event, at=over, kind=_same("Run", runs), object=names, reason=_same(SUCCEEDED, runs),
           message=_same("", runs), source=_same("kfp", runs), run=names, count=_number(1, runs),
           type=_same("Normal", runs))  # fmt: skip
    nodes = [f"aks-steps-{k:06d}" for k in range(NODES)]
    _write(tables, Node, name=nodes, pool=_same("steps", NODES), created_at=_number(ORIGIN_AT, NODES) - 10**12,
           ready_at=_number(ORIGIN_AT, NODES) - 10**11, gone_at=pa.nulls(NODES, pa.int64()), cpu=np.full(NODES, 4.0),
           memory=np.full(NODES, 16e9), gpu=np.zeros(NODES), pods=_number(110, NODES), spot=np.zeros(NODES, bool),
           price=np.full(NODES, 0.23), source=_same("kubernetes", NODES))  # fmt: skip
    pq.write_table(schema(Sample).empty_table(), tables / "samples.parquet")
    _write_spans(tables, names, nodes, answered, lengths, ends, over, random)
    return folder.path


def _write_spans(tables, names, nodes, answered, lengths, ends, over, random) -> None:  # type: ignore[no-untyped-def]  # arrays
    """Sorted by run and step as sealing leaves them: of each run its own span, then its pods' three stretches."""
    runs, pods = lengths.shape
    a_run = 1 + 3 * pods
    with pq.ParquetWriter(tables / "spans.parquet", schema(Span), compression="zstd") as writer:
        for low in range(0, runs, 100_000):
            part = slice(low, min(low + 100_000, runs))
            count = part.stop - low
            begun = ends[part] - lengths[part]
            start = np.stack((begun - 2 * 10**9, begun - 10**9, begun), axis=2).reshape(count, -1)
            end = np.stack((begun - 10**9, begun, ends[part]), axis=2).reshape(count, -1)
            steps = [
                f"training-{k:07d}-system-container-impl-{p:010d}" for k in range(low, part.stop) for p in range(pods)
            ]
            step = pa.array(
                np.insert(np.repeat(np.array(steps, dtype=object), 3).reshape(count, -1), 0, "", axis=1).ravel()
            )
            phases = pa.array([RUN, *([SCHEDULING, STARTING, RUNNING] * pods)] * count)
            tasks = pa.array(["", *(f"task-{p}" for p in range(pods) for _ in range(3))] * count)
            where = np.repeat(random.integers(0, NODES, (count, pods)), 3, axis=1)
            node = pa.array(np.insert(np.array(nodes, dtype=object)[where], 0, None, axis=1).ravel())
            columns = {
                "run": names.slice(low, count).take(np.repeat(np.arange(count), a_run)), "step": step, "phase": phases,
                "started_at": np.column_stack((answered[part], start)).ravel(),
                "ended_at": np.column_stack((over[part], end)).ravel(),
                "task": tasks, "attempt": _number(0, count * a_run), "node": node,
                "source": _same("kubernetes", count * a_run), "resolution_s": np.ones(count * a_run),
            }  # fmt: skip
            writer.write_table(pa.table([pa.array(columns[f.name], f.type) for f in schema(Span)], schema=schema(Span)))


def _write(tables: Path, kind: type, /, **columns: object) -> None:
    table = pa.table([pa.array(columns[f.name], f.type) for f in schema(kind)], schema=schema(kind))
    pq.write_table(table, tables / f"{kind.__name__.lower()}s.parquet", compression="zstd")


def _same(text: str, count: int) -> list[str]:
    return [text] * count


def _number(value: int, count: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.full(count, value, dtype=np.int64)


if __name__ == "__main__":
    sys.exit(main())
