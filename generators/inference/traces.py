"""Public traces of clusters as arrivals: when jobs were submitted, by whom, what they requested and how long they took.

The columns are those that the projects describe: Alibaba's cluster-trace-v2018 (``batch_task.csv``) and
cluster-trace-gpu-v2020 (``pai_task_table.csv``), Helios (``cluster_log.csv``), Acme (``trace_*.csv``), Philly
(``cluster_job_log``), and WfCommons' WfFormat 1.5. Names are replaced: users become ``tenant-1``, ``tenant-2`` …
"""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from harness import reading
from harness.model import Event, Span, Submission
from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.errors import ConfigError
from harness.model.phases import LISTED, RUN, RUNNING, is_workload
from harness.store.folder import RunFolder

RUN_FOLDER = "run"  # the format of a run folder
_MOST_JOBS, _MOST_TASKS = 1_000_000, 4_000_000
_MOST_BYTES, _MOST_JSON = 2**34, 2**28  # JSON is read as a whole
_DEPENDENCIES = re.compile(r"[A-Za-z]+(\d+)((?:_\d+)*)")
_PERCENT, _GIB = 100.0, 2.0**30
# The first one's memory is a share of some machine's.
_ALIBABA_2018 = ("task", "instances", "kind", "job", "status", "start", "end", "cpu", "share")
_ALIBABA_PAI = ("job", "task", "instances", "status", "start", "end", "cpu", "memory", "gpu", "gpu_type")
# The names of a column, the first that a file has counts.
_SUBMITTED = ("submit_time", "submitted_time", "submitted", "due_s", "start_time")
_USER, _JOB = ("vc", "tenant", "user"), ("job_id", "job", "id")
_DURATION, _CPU = ("duration", "duration_s"), ("cpu_num", "cpu", "cpus")
_MEMORY, _GPUS = ("mem_per_pod_GB", "memory_gib"), ("gpu_num", "gpus", "gpu")


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a job: seconds, cores, GiB and GPUs of each of its instances; 0 where the trace does not say."""

    name: str
    duration_s: float
    cpu: float = 0.0
    memory_gib: float = 0.0
    gpus: float = 0.0
    instances: int = 1
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class Job:
    """A job, and how many seconds after the first one of the trace it was submitted."""

    submitted_s: float
    user: str
    tasks: list[Task] = field(default_factory=list)
    pipeline: str = ""  # that it is a run of


def read_trace(
    path: Path, kind: str, window: tuple[float, float] | None = None, *, keep_names: bool = False
) -> list[Job]:
    """The jobs of a trace by submission; `window` is a part of it, in seconds.

    Unless `keep_names`, users and pipelines get other names: tenant-1, pipeline-1 …

    Raises:
        ConfigError: it can't be read, or holds no job.
    """
    hint = f"give a file of {kind}, or another --format: {', '.join(FORMATS)}"
    try:
        if kind == RUN_FOLDER:
            jobs = _of_run(path)
        else:
            with reading.structured(path, hint), reading.open_file(path, _MOST_BYTES) as file:
                jobs = FORMATS[kind](io.TextIOWrapper(file, "utf-8-sig", newline=""), path)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", hint) from error
    except csv.Error as error:
        raise ConfigError(f"{path} is damaged: {error}", hint) from error
    if not jobs:
        raise ConfigError(f"{path} holds no job", hint)
    jobs.sort(key=lambda job: job.submitted_s)
    first = jobs[0].submitted_s + (window[0] if window else 0.0)
    last = jobs[0].submitted_s + window[1] if window else jobs[-1].submitted_s
    kept = [job for job in jobs if first <= job.submitted_s <= last]
    if not kept:
        whole_s = jobs[-1].submitted_s - jobs[0].submitted_s
        raise ConfigError("--window: no job was submitted in it", f"the trace lasts {whole_s:,.0f} s")
    for job in kept:
        job.submitted_s -= first
    if not keep_names:
        users, pipelines = dict[str, str](), {"": ""}
        for job in kept:
            job.user = users.setdefault(job.user, f"tenant-{len(users) + 1}")
            job.pipeline = pipelines.setdefault(job.pipeline, f"pipeline-{len(pipelines)}")
    return kept


def scaled(jobs: Sequence[Job], factor: float, seed: int) -> list[Job]:
    """`factor` times as many jobs: each is left out or repeated at random, repeated ones before the next job."""
    random, found = Random(f"{seed}/scale"), []
    for k, job in enumerate(jobs):
        until_s = jobs[k + 1].submitted_s - job.submitted_s if k + 1 < len(jobs) else 0.0
        copies = int(factor) + (random.random() < factor % 1)
        found += [
            replace(job, submitted_s=job.submitted_s + (random.random() * until_s if copy else 0.0))
            for copy in range(copies)
        ]
    return sorted(found, key=lambda job: job.submitted_s)


def table(jobs: Sequence[Job]) -> bytes:
    """The scenarios of the jobs as CSV: the whole job's duration and requests, and its tasks as JSON."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    header = ["id", "scenario_name", "tenant", "duration_s", "cpu", "memory_gib", "gpus", "pods", "tasks"]
    named = any(job.pipeline for job in jobs)
    writer.writerow([*header, "pipeline"] if named else header)
    for number, job in enumerate(jobs, start=1):
        whole = [
            sum(getattr(task, name) * task.instances for task in job.tasks) for name in ("cpu", "memory_gib", "gpus")
        ]
        tasks = json.dumps([asdict(task) for task in job.tasks], separators=(",", ":"))
        pods = sum(task.instances for task in job.tasks)
        lasts = f"{longest_s(job.tasks):g}"
        row = [number, f"job-{number}", job.user, lasts, *(f"{each:g}" for each in whole), pods, tasks]
        writer.writerow([*row, job.pipeline] if named else row)
    return out.getvalue().encode()


def longest_s(tasks: Sequence[Task]) -> float:
    """How long a job takes with unlimited resources: its critical path; tasks that wait for each other don't wait."""
    needs = {task.name: [need for need in task.needs if need != task.name] for task in tasks}
    left = {name: sum(each in needs for each in of_task) for name, of_task in needs.items()}
    then = defaultdict[str, list[str]](list)
    for name, of_task in needs.items():
        for each in of_task:
            then[each].append(name)
    lasts, begins = {task.name: task.duration_s for task in tasks}, defaultdict[str, float](float)
    ready = [name for name, count in left.items() if not count]
    for name in ready:  # grows
        for each in then[name]:
            begins[each] = max(begins[each], begins[name] + lasts[name])
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    return max((begins[name] + lasts[name] for name in lasts), default=0.0)


def _named(file: io.TextIOWrapper, path: Path) -> list[Job]:
    """A row for each job, with a header: Helios, Acme, and tables of one's own."""
    reader = csv.DictReader(file)
    header = reader.fieldnames or []
    columns = {names[0]: next((name for name in names if name in header), "") for names in
               (_SUBMITTED, _USER, _JOB, _DURATION, _CPU, _MEMORY, _GPUS)}  # fmt: skip
    if not columns[_SUBMITTED[0]]:
        raise ConfigError(f"{path} has no column of submissions", f"name one of {', '.join(_SUBMITTED)}")
    return _bounded((_job(row, columns) for row in reader), path)


def _job(row: Mapping[str, str], columns: Mapping[str, str]) -> Job:
    lasts, cpu, memory, gpus = (_amount(row, columns[names[0]]) for names in (_DURATION, _CPU, _MEMORY, _GPUS))
    nodes = max(1, int(_amount(row, "node_num")))
    task = Task("job", lasts, cpu / nodes, memory, gpus / nodes, nodes)
    return Job(_instant(row[columns[_SUBMITTED[0]]]), row.get(columns[_USER[0]]) or "", [task])


def _grouped(rows: Iterator[tuple[str, Task, float]], path: Path) -> list[Job]:
    """Jobs of several rows, each with a task; a job begins with its first task."""
    jobs: dict[str, Job] = {}
    for number, (name, task, started) in enumerate(rows, start=1):
        job = jobs.setdefault(name, Job(started, ""))
        job.submitted_s = min(job.submitted_s, started)
        job.tasks.append(task)
        if len(jobs) > _MOST_JOBS or number > _MOST_TASKS:
            raise _too_many(path)
    return list(jobs.values())


def _alibaba(columns: Sequence[str], file: io.TextIOWrapper, path: Path) -> list[Job]:
    def rows() -> Iterator[tuple[str, Task, float]]:
        for row in (dict(zip(columns, cells, strict=False)) for cells in csv.reader(file)):
            if columns is _ALIBABA_PAI and row["start"] in {"", "start_time"}:  # it never started, or is the header
                continue
            known = _DEPENDENCIES.fullmatch(row["task"]) if columns is _ALIBABA_2018 else None
            needs = tuple(filter(None, known[2].split("_"))) if known else ()
            started, instances = _number(row["start"]), max(1, int(_amount(row, "instances")))
            requests = _amount(row, "cpu") / _PERCENT, _amount(row, "memory"), _amount(row, "gpu") / _PERCENT
            lasts = max(0.0, _amount(row, "end") - started)
            yield row["job"], Task(known[1] if known else row["task"], lasts, *requests, instances, needs), started

    return _grouped(rows(), path)


def _amount(row: Mapping[str, str], name: str) -> float:
    return _number(row.get(name) or "0")


def _philly(file: io.TextIOWrapper, path: Path) -> list[Job]:
    def jobs() -> Iterator[Job]:
        for each in _json(file, path):
            ran = [it for it in each["attempts"] if _known(it.get("start_time")) and _known(it.get("end_time"))]
            lasts = sum(_instant(it["end_time"]) - _instant(it["start_time"]) for it in ran)
            gpus = sum(len(it["gpus"]) for it in (each["attempts"][-1]["detail"] if each["attempts"] else ()))
            yield Job(_instant(each["submitted_time"]), str(each["vc"]), [Task("job", lasts, gpus=float(gpus))])

    return _bounded(jobs(), path)


def _json(file: io.TextIOWrapper, path: Path) -> Any:
    text = file.read(_MOST_JSON)
    if len(text) == _MOST_JSON:
        raise ConfigError(f"{path} is larger than {_MOST_JSON >> 20} MiB", "give a part of the file")
    return reading.parse_json(text, path)


def _wfformat(file: io.TextIOWrapper, path: Path) -> list[Job]:
    """One workflow, submitted at once."""
    whole = _json(file, path)["workflow"]
    ran = {str(task["id"]): task for task in (whole.get("execution") or {}).get("tasks") or ()}
    tasks = []
    for task in whole["specification"]["tasks"]:
        its = ran.get(str(task["id"]), {})
        memory = float(its.get("memoryInBytes") or 0.0) / _GIB
        lasts, cores = float(its.get("runtimeInSeconds") or 0.0), float(its.get("coreCount") or 0.0)
        tasks.append(Task(str(task["id"]), lasts, cores, memory, needs=tuple(map(str, task.get("parents") or ()))))
    return [Job(0.0, "", tasks)] if tasks else []


def _of_run(path: Path) -> list[Job]:
    """The runs that a folder recorded, of a load or without one: ``pipeswarm explain``, ``import`` and ``observe``."""
    folder = RunFolder.open(path)
    tenants = {record.run: record.tenant for record in folder.records(Submission)}
    about = {
        record.object: record for record in folder.records(Event) if record.kind == "Run" and record.reason == LISTED
    }
    jobs, tasks = dict[str, Job](), defaultdict[str, list[Task]](list)
    for span in {
        (record.run, record.step, record.phase, record.attempt): record for record in folder.records(Span)
    }.values():
        lasts = ((span.ended_at or span.started_at) - span.started_at) / 1e9
        if span.phase == RUN and not is_workload(span.run):
            jobs[span.run] = Job(span.started_at / 1e9, tenants.get(span.run, ""), [Task("run", lasts)])
        elif span.phase == RUNNING and not span.task.endswith(DRIVER_SUFFIX):
            tasks[span.run].append(Task(span.task, lasts))
    for run, job in jobs.items():
        job.tasks = tasks.get(run, job.tasks)
        if listed := about.get(run):
            job.user, job.pipeline = job.user or listed.namespace, listed.message
    return list(jobs.values())


def _bounded(jobs: Iterator[Job], path: Path) -> list[Job]:
    found: list[Job] = []
    for job in jobs:
        found.append(job)
        if len(found) > _MOST_JOBS:
            raise _too_many(path)
    return found


def _too_many(path: Path) -> ConfigError:
    most = f"{_MOST_JOBS:,} jobs, or {_MOST_TASKS:,} tasks"
    return ConfigError(f"{path} holds more than {most}", "give a part of the file")


def _known(text: str | None) -> bool:
    return text not in {None, "", "None"}


def _number(text: str) -> float:
    value = float(text)
    if not abs(value) < 1e15:
        raise ValueError(f"{text} is no amount")
    return value


def _instant(text: str) -> float:
    """Seconds of a number or a timestamp; one without a zone is in UTC."""
    try:
        return _number(text)
    except ValueError:
        at = datetime.fromisoformat(text.removesuffix(" PST").removesuffix(" PDT"))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


FORMATS: Mapping[str, Callable[[io.TextIOWrapper, Path], list[Job]]] = {
    "alibaba-2018": partial(_alibaba, _ALIBABA_2018), "alibaba-pai-2020": partial(_alibaba, _ALIBABA_PAI),
    "helios": _named, "acme": _named, "philly": _philly, "wfformat": _wfformat, "csv": _named,
}  # fmt: skip
