"""The cost of the analysis of a large test in seconds and peak memory, against plain pandas for the same answers.

    python benchmarks/analysis.py [--runs 1000000] [--pods 6] [--alike 200000]

Sealed run folders are drawn at random (a million runs of six pods with three stretches each are 19 million spans); each
side runs in its own process and starts from the Parquet files. First both sides compute the same answers on `--alike`
runs, which are compared: where the runs' time went, quantiles of their duration, throughput and active pods by window,
and pod durations by task. Then the full report of `--runs` runs is computed and written. At last `--folders` folders of
5,000 runs each, with their reports as a test leaves them, are listed, compared and used for a capacity answer.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import folders
from harness.model import Event, Node, Plan, Sample, Span, Submission
from harness.model.phases import REQUESTED_CPU_CORES, REQUESTED_GPUS, RUN, RUNNING, SCHEDULING, STARTING, SUCCEEDED
from harness.store import RunFolder
from harness.store.parquet import schema, write
from tests.support.benchmarking import Table

ORIGIN_AT = 1_790_000_000 * 10**9
NODES = 1000
LIMIT_S, LIMIT_GB = 25.0, 1.5  # for a million runs on two cores
LIMIT_RATIO = 0.5  # of plain pandas' time
WINDOWS = 100

Answers = Mapping[str, list[float]]


def main() -> int:
    """Print seconds and memory of both sides; 1 when they exceed the limits or disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--alike", type=int, default=200_000)
    parser.add_argument("--pods", type=int, default=6)
    parser.add_argument("--folders", type=int, default=1000)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return _measure(SIDES[options.side], options.folder)
    with tempfile.TemporaryDirectory() as place:
        folder = draw(Path(place), options.alike, options.pods)
        theirs, ours = (_side(side, folder) for side in ("pandas", "numpy"))
    ratio = ours.seconds / theirs.seconds
    print(
        f"{f'{options.alike:,} runs of {options.pods} pods, the same answers':48}{'seconds':>10}{'CPU s':>8}{'GB':>8}"
    )
    print(theirs.line("plain pandas"))
    print(ours.line("analysis"))
    memory = ours.gigabytes / theirs.gigabytes
    print(f"{'ratio':48}{ratio:10.2f}{ours.cpu_s / theirs.cpu_s:8.2f}{memory:8.2f}\n", flush=True)
    both = ((name, theirs.answers[name], ours.answers[name]) for name in theirs.answers)
    wrong = [name for name, their, our in both if not np.allclose(their, our, rtol=1e-6, atol=1e-6)]
    if wrong:
        print(f"the answers differ: {', '.join(wrong)}")
    with tempfile.TemporaryDirectory() as place:
        whole = _side("report", draw(Path(place), options.runs, options.pods))
    print(f"{f'{options.runs:,} runs of {options.pods} pods':48}{'seconds':>10}{'CPU s':>8}{'GB':>8}")
    print(whole.line("analysis, diagnosis, all reports"))
    large = options.runs >= 1_000_000
    table = Table((48, 10, 8))
    table.row("the same answers, × plain pandas' time", f"{ratio:.2f}", f"{LIMIT_RATIO:g}", ratio <= LIMIT_RATIO)
    table.row("  and equal", "no" if wrong else "yes", "yes", not wrong)
    if large:
        table.row("all reports: seconds", f"{whole.seconds:.1f}", f"{LIMIT_S:g}", whole.seconds <= LIMIT_S)
        table.row("  gigabytes", f"{whole.gigabytes:.2f}", f"{LIMIT_GB:g}", whole.gigabytes <= LIMIT_GB)
    with tempfile.TemporaryDirectory() as place:
        folders.measure(table, draw(Path(place), folders.RUNS, options.pods), options.folders)
    return int(table.failed)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one side, and its answers."""

    seconds: float
    cpu_s: float
    gigabytes: float
    answers: Answers

    def line(self, name: str) -> str:
        return f"{name:48}{self.seconds:10.1f}{self.cpu_s:8.1f}{self.gigabytes:8.2f}"


def _side(side: str, folder: Path) -> Cost:
    command = [sys.executable, __file__, "--side", side, "--folder", str(folder)]
    return Cost(*json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def _measure(work: Callable[[Path], Answers], path: Path) -> int:
    """Run one side in this process; print its wall and CPU seconds, peak memory in GB, and answers."""
    begun = time.perf_counter()
    answers = work(path)
    taken = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([taken, used.ru_utime + used.ru_stime, _peak_gigabytes(), answers]))
    return 0


def _peak_gigabytes() -> float:
    """The peak memory of this process; `getrusage` counts what the one that started it had, too."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024 / 1e9


def report(path: Path) -> Answers:
    """Everything."""
    from harness.cli.look.rebuilding import rebuild

    rebuild(RunFolder.open(path))
    return {}


def with_numpy(path: Path) -> Answers:
    """The answers of the analysis."""
    from harness.analysis.latency import latencies
    from harness.analysis.timeline import Timeline, floats
    from harness.analysis.timeline.curves import mean_active
    from harness.analysis.waits.tasks import tasks
    from harness.analysis.waits.waits import waits
    from harness.model.phases import CONTROLLER, PUBLISHING
    from harness.store.tables import load

    folder = RunFolder.open(path)
    timeline = Timeline.from_frames(folder.read_plan(), load(folder))
    split = waits(timeline)
    phases = (SCHEDULING, STARTING, RUNNING, CONTROLLER, PUBLISHING)
    over, running = floats(timeline.runs, "over_s"), timeline.stretches(RUNNING)
    edges = np.linspace(0.0, float(over.max()) + 1, WINDOWS + 1)
    at_work = mean_active(floats(running, "start_s"), floats(running, "end_s"), edges)
    found = tasks(timeline)
    return {
        "phases": [float(split.of(name).mean()) for name in phases],
        "durations": [latencies(timeline).duration.at(level).value or 0.0 for level in (0.5, 0.95, 0.99)],
        "throughput": np.histogram(over, edges)[0].tolist(),
        "at work": at_work.tolist(),
        "tasks": (np.nansum(found.seconds, axis=1) / found.pods).tolist(),
    }


def with_pandas(path: Path) -> Answers:
    """The same answers in plain pandas."""
    import pandas as pd

    columns = ["run", "step", "phase", "task", "started_at", "ended_at"]
    spans = pd.read_parquet(path / "tables" / "spans.parquet", columns=columns)
    submissions = pd.read_parquet(path / "tables" / "submissions.parquet")
    start_at = submissions["due_at"].min()
    for name in ("started_at", "ended_at"):
        spans[name] = (spans[name] - start_at) / 1e9
    runs = submissions.merge(spans.loc[spans["step"] == "", ["run", "ended_at"]], on="run").set_index("run")
    answered, over = (runs["answered_at"] - start_at) / 1e9, runs["ended_at"]
    duration = over - (runs["due_at"] - start_at) / 1e9
    pods = spans[spans["step"] != ""]
    of_run = pods.groupby("run").agg(first=("started_at", "min"), last=("ended_at", "max"))

    # The most advanced phase among a run's concurrent pods counts: sort starts and ends, count, and take the lengths.
    begun = pods[["run", "phase", "started_at"]].rename(columns={"started_at": "at"}).assign(change=1)
    ended = pods[["run", "phase", "ended_at"]].rename(columns={"ended_at": "at"}).assign(change=-1)
    changes = pd.concat([begun, ended]).sort_values(["run", "at"])
    changes["length"] = (changes.groupby("run")["at"].shift(-1) - changes["at"]).fillna(0.0)
    changes["level"] = "between"
    for phase in (SCHEDULING, STARTING, RUNNING):
        alive = changes["change"].where(changes["phase"] == phase, 0).cumsum() > 0
        changes["level"] = changes["level"].mask(alive, phase)
    seconds = changes.groupby("level")["length"].sum() / len(runs)
    controller = (of_run["first"] - answered).mean() + seconds.get("between", 0.0)

    edges = np.linspace(0.0, float(over.max()) + 1, WINDOWS + 1)
    running = changes[changes["phase"] == RUNNING].sort_values("at")
    active = running["change"].cumsum()
    area = (active.shift(fill_value=0) * running["at"].diff().fillna(0.0)).cumsum()
    at_work = np.diff(np.interp(edges, running["at"], area)) / np.diff(edges)
    tasks = pods.assign(length=pods["ended_at"] - pods["started_at"]).groupby("task")
    of_task = tasks["length"].sum() / tasks["step"].nunique()
    found = [seconds.get(phase, 0.0) for phase in (SCHEDULING, STARTING, RUNNING)]
    return {
        "phases": [*found, controller, (over - of_run["last"]).mean()],
        "durations": duration.quantile([0.5, 0.95, 0.99], interpolation="lower").tolist(),
        "throughput": pd.cut(over, edges, right=False).value_counts(sort=False).tolist(),
        "at work": at_work.tolist(),
        "tasks": of_task.tolist(),
    }


SIDES: Mapping[str, Callable[[Path], Answers]] = {"report": report, "numpy": with_numpy, "pandas": with_pandas}


def draw(place: Path, runs: int, pods: int) -> Path:
    """A sealed run folder: runs evenly over time, sequential pods, each on a random node."""
    folder = RunFolder.create(place, "large")
    folder.write_plan(
        Plan("kfp", "simulated", {"name": "spread"}, runs, 7, simulated=True, started_at=ORIGIN_AT)
    )  # fmt: skip
    tables = folder.path / "tables"
    tables.mkdir()
    random = np.random.default_rng(7)
    seq = np.arange(runs)
    ids = pa.array([f"{k:08x}-0000-4000-8000-{k:012x}" for k in range(runs)])
    names = [_name(k) for k in range(runs)]
    due = ORIGIN_AT + seq * 20_000_000
    answered = due + random.integers(8_000_000, 60_000_000, runs)
    lengths = random.integers(1, 30, (runs, pods)) * 10**9
    ends = answered[:, None] + np.cumsum(lengths + 3 * 10**9, axis=1)
    over = ends[:, -1] + 10**9
    _write(tables, Submission, seq=seq, scenario_id=seq.astype(str), run_name=names, due_at=due, sent_at=due + 10**6,
           answered_at=answered, outcome=_same("accepted", runs), run=ids, worker=seq % 4, status=_number(200, runs),
           error=pa.nulls(runs, pa.string()), tenant=_same("", runs))  # fmt: skip
    _write(tables, Event, at=over, kind=_same("Run", runs), object=ids, reason=_same(SUCCEEDED, runs),
           message=_same("", runs), source=_same("kfp", runs), run=ids, count=_number(1, runs),
           type=_same("Normal", runs), namespace=_same("", runs))  # fmt: skip
    nodes = [f"aks-steps-{k:06d}" for k in range(NODES)]
    _write(tables, Node, name=nodes, pool=_same("steps", NODES), created_at=_number(ORIGIN_AT, NODES) - 10**12,
           ready_at=_number(ORIGIN_AT, NODES) - 10**11, gone_at=pa.nulls(NODES, pa.int64()), cpu=np.full(NODES, 4.0),
           memory=np.full(NODES, 16e9), gpu=np.zeros(NODES), pods=_number(110, NODES), spot=np.zeros(NODES, bool),
           price=np.full(NODES, 0.23), source=_same("kubernetes", NODES), gpus_at=pa.nulls(NODES, pa.int64()),
           virtual=np.zeros(NODES, bool), machine=_same("", NODES), ephemeral=np.zeros(NODES))  # fmt: skip
    metrics, tasks = (REQUESTED_CPU_CORES, REQUESTED_GPUS), [f"task-{p}" for p in range(pods)]
    _write(tables, Sample, metric=[m for m in metrics for _ in tasks], at=_number(ORIGIN_AT, 2 * pods),
           value=np.repeat((1.0, 0.0), pods), labels=[json.dumps({"task": task}) for task in tasks] * 2)  # fmt: skip
    _write_spans(tables, ids, nodes, answered, lengths, ends, over, random)
    return folder.path


def _name(run: int) -> str:
    return f"pipeswarm-{run:08d}-training"


def _write_spans(tables, ids, nodes, answered, lengths, ends, over, random) -> None:  # type: ignore[no-untyped-def]  # arrays
    """Spans sorted by run and step, as after sealing: each run's own span, then three stretches of each of its pods."""
    runs, pods = lengths.shape
    a_run = 1 + 3 * pods

    def parts() -> Iterator[pa.Table]:
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
            of_pods = [f"task-{p}" for p in range(pods) for _ in range(3)]
            tasks = pa.array([task for k in range(low, part.stop) for task in (_name(k), *of_pods)])
            where = np.repeat(random.integers(0, NODES, (count, pods)), 3, axis=1)
            node = pa.array(np.insert(np.array(nodes, dtype=object)[where], 0, None, axis=1).ravel())
            columns = {
                "run": ids.slice(low, count).take(np.repeat(np.arange(count), a_run)), "step": step, "phase": phases,
                "started_at": np.column_stack((answered[part], start)).ravel(),
                "ended_at": np.column_stack((over[part], end)).ravel(),
                "task": tasks, "attempt": _number(0, count * a_run), "node": node,
                "source": _same("kubernetes", count * a_run), "resolution_s": np.ones(count * a_run),
                "reason": _same("", count * a_run),
            }  # fmt: skip
            yield pa.table([pa.array(columns[f.name], f.type) for f in schema(Span)], schema=schema(Span))

    with (tables / "spans.parquet").open("wb") as out:
        write(out, schema(Span), parts())


def _write(tables: Path, kind: type, /, **columns: object) -> None:
    table = pa.table([pa.array(columns[f.name], f.type) for f in schema(kind)], schema=schema(kind))
    with (tables / f"{kind.__name__.lower()}s.parquet").open("wb") as out:
        write(out, table.schema, [table])


def _same(text: str, count: int) -> list[str]:
    return [text] * count


def _number(value: int, count: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.full(count, value, dtype=np.int64)


if __name__ == "__main__":
    sys.exit(main())
