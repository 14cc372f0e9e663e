"""``generate-scenarios workload --from-trace``: small files in the shapes of the public traces."""

import csv
import json

import pytest

from generators.cli import main
from generators.inference.traces import FORMATS, Task, longest_s, read_trace, scaled
from harness.collectors.runs.known_runs import KnownRuns
from harness.model import Span
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.store.folder import RunFolder
from harness.targets.target import ListedRun

FILES = {
    "alibaba-2018": "M1,2,1,j1,Terminated,100,160,50,0.5\nR2_1,1,1,j1,Terminated,160,190,100,0.5\ntask_x==,1,1,j2,Failed,130,140,,\n",
    "alibaba-pai-2020": "j1,ps,1.0,Terminated,100.0,190.0,600.0,30.0,0.0,MISC\nj1,worker,2.0,Terminated,101.0,190.0,400.0,10.0,50.0,V100\n"
    "j2,t,1.0,Waiting,,,,,,\nj3,t,1.0,Failed,130.0,140.0,100.0,1.0,100.0,T4\n",
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,vcA,8,16,2,COMPLETED,2020-06-09 18:41:00,x,x,90,0\n2,v,vcB,0,1,1,FAILED,2020-06-09 18:41:30,x,x,10,0\n",
    "acme": "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,type,state,submit_time,duration,queue\n"
    "a,u1,2,8,16,5,Other,FAILED,2023-03-01 00:18:00+08:00,90,1\nb,u2,1,0,1,1,Other,COMPLETED,2023-02-28 16:18:30+00:00,10,1\n",
    "philly": json.dumps([
        {"status": "Pass", "vc": "a", "jobid": "1", "user": "u", "submitted_time": "2017-10-07 01:11:00", "attempts": [
            {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00", "detail": []},
            {"start_time": "2017-10-07 01:14:00", "end_time": "2017-10-07 01:14:30",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3"]}, {"ip": "m2", "gpus": ["gpu0"] * 4}]}]},
        {"status": "Killed", "vc": "b", "jobid": "2", "user": "v", "submitted_time": "2017-10-07 01:11:30", "attempts": [
            {"start_time": None, "end_time": None, "detail": []}]},
    ]),
    "wfformat": json.dumps({"name": "w", "workflow": {
        "specification": {"tasks": [{"id": "b", "name": "b", "parents": ["a"]}, {"id": "a", "name": "a", "parents": []}]},
        "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 60, "coreCount": 2, "memoryInBytes": 2**30},
                                {"id": "b", "runtimeInSeconds": 30}]}}}),
    "csv": "tenant,submitted,duration_s,cpu,gpus\nx,10,90,16,8\ny,40,10,1,0\n",
}  # fmt: skip


@pytest.fixture(params=FILES)
def trace(request, tmp_path):
    path = tmp_path / "trace"
    path.write_text(FILES[request.param])
    return request.param, path


def test_every_format_is_tried_here():
    assert FILES.keys() == FORMATS.keys()


def test_jobs_have_their_submissions_durations_and_requests(trace):
    kind, path = trace
    first, *rest = read_trace(path, kind)
    assert (first.submitted_s, longest_s(first.tasks)) == (0.0, 90.0)
    assert [(job.submitted_s, longest_s(job.tasks)) for job in rest] in ([], [(30.0, 10.0)], [(30.0, 0.0)])
    whole = [
        sum(getattr(task, name) * task.instances for task in first.tasks) for name in ("cpu", "memory_gib", "gpus")
    ]
    assert whole == {
        "alibaba-2018": [2.0, 0.0, 0.0], "alibaba-pai-2020": [14.0, 50.0, 1.0], "helios": [16.0, 0.0, 8.0],
        "acme": [16.0, 10.0, 8.0], "philly": [0.0, 0.0, 8.0], "wfformat": [2.0, 1.0, 0.0], "csv": [16.0, 0.0, 8.0],
    }[kind]  # fmt: skip


def test_dependencies_are_carried_through(tmp_path):
    (tmp_path / "t").write_text(FILES["alibaba-2018"])
    assert [(task.name, task.needs, task.instances) for task in read_trace(tmp_path / "t", "alibaba-2018")[0].tasks] == [
        ("1", (), 2), ("2", ("1",), 1),
    ]  # fmt: skip
    assert longest_s([Task("a", 1.0, needs=("b",)), Task("b", 2.0, needs=("a",))]) == 2.0


def test_users_have_other_names(tmp_path):
    (tmp_path / "t").write_text(FILES["helios"])
    assert [job.user for job in read_trace(tmp_path / "t", "helios")] == ["tenant-1", "tenant-2"]


def run(path, kind, tmp_path, *options):
    code = main(
        ["workload", "--from-trace", str(path), "--format", kind, "-o", str(tmp_path / "s.csv"), "--quiet", *options]
    )
    return code, list(csv.DictReader((tmp_path / "s.csv").open())) if code == 0 else []


def test_a_schedule_and_the_jobs_as_scenarios_are_written(trace, tmp_path):
    code, arrivals = run(trace[1], trace[0], tmp_path, "--jobs", str(tmp_path / "jobs.csv"))
    jobs = list(csv.DictReader((tmp_path / "jobs.csv").open()))
    assert code == 0
    assert [each["scenario_id"] for each in arrivals] == [each["id"] for each in jobs]
    assert (float(arrivals[0]["due_s"]), jobs[0]["duration_s"]) == (0.0, "90")
    assert json.loads(jobs[0]["tasks"])[0]["name"]


def test_a_window_and_a_scale_choose_jobs(tmp_path):
    rows = "\n".join(f"x,{k * 10},5" for k in range(1000))
    (tmp_path / "t").write_text(f"tenant,submitted,duration_s\n{rows}\n")
    jobs = read_trace(tmp_path / "t", "csv", (100.0, 199.0))
    assert [job.submitted_s for job in jobs] == [k * 10.0 for k in range(10)]
    every = read_trace(tmp_path / "t", "csv")
    assert len(scaled(every, 2.0, 1)) == 2000
    assert 400 < len(scaled(every, 0.5, 1)) < 600
    assert scaled(every, 1.5, 1) == scaled(every, 1.5, 1)
    _, arrivals = run(tmp_path / "t", "csv", tmp_path, "--window", "0s..90s", "--scale", "2x")
    assert len(arrivals) == 20


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "\x00",
        "a,b\n1,2\n",
        "{",
        "[]",
        '{"workflow": 1}',
        '[{"attempts": 1}]',
        "x,submitted\ny,1e400\n",
        "\n\n",
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, kind, text):
    (tmp_path / "t").write_text(text)
    with pytest.raises(ConfigError):
        read_trace(tmp_path / "t", kind)


@pytest.mark.parametrize(
    "options",
    [
        ("--window", "1h"),
        ("--window", "2h..1h"),
        ("--window", "9d..10d"),
        ("--scale", "0"),
        ("--scale", "x"),
        ("--scale", "1e9"),
        ("--stages", "s.yaml"),
    ],
)
def test_wrong_options_of_a_trace_are_refused(tmp_path, options):
    (tmp_path / "t").write_text(FILES["csv"])
    assert run(tmp_path / "t", "csv", tmp_path, *options)[0] == 2


def test_options_of_a_trace_need_one(tmp_path):
    assert main(["workload", "--window", "1h..2h", "-o", str(tmp_path / "s.csv")]) == 2
    assert main(["workload", "--from-trace", str(tmp_path / "none"), "--format", "csv"]) == 2


def test_the_runs_of_a_folder_that_was_recorded_without_a_load_are_jobs(tmp_path):
    folder = RunFolder.create(tmp_path / "runs", "r")
    folder.write_plan(Plan("kfp", "http://127.0.0.1", {}, 0, 1, simulated=True))
    with folder.recorder() as recorder:
        for name, begun, tasks in (("b", 40, ("train-driver", "train")), ("a", 10, ())):
            for task in tasks:
                recorder.write(Span(name, f"{task}-pod", "running", begun * 10**9, (begun + 60) * 10**9, task=task))
            recorder.write(Span(name, "", "run", begun * 10**9, (begun + 90) * 10**9))
        recorder.write(Span("team/other", "", "run", 0, 10**9))
    first, second = read_trace(folder.path, "run")
    assert (first.submitted_s, first.tasks) == (0.0, [Task("run", 90.0)])
    assert (second.submitted_s, second.tasks) == (30.0, [Task("train", 60.0)])
    assert run(folder.path, "run", tmp_path, "--scale", "2x")[0] == 0
    with pytest.raises(ConfigError):
        read_trace(tmp_path, "run")


def test_pipelines_and_namespaces_of_observed_runs_are_carried_anonymised_unless_their_names_are_kept(tmp_path):
    folder = RunFolder.create(tmp_path / "runs", "r")
    folder.write_plan(plan := Plan("argo", "http://127.0.0.1", {}, 0, 1, simulated=True))
    runs = (("nightly", "team-a"), ("training", "team-b"), ("nightly", "team-a"), ("", ""))
    with folder.recorder() as recorder:
        known = KnownRuns(plan)
        for k, (pipeline, namespace) in enumerate(runs, 1):
            at = k * 10**9
            listed = ListedRun(f"r{k}", f"r{k}", "SUCCEEDED", at, at + 1, pipeline=pipeline, namespace=namespace)
            for record in known.see(listed, at):
                recorder.write(record)
    assert [(job.user, job.pipeline) for job in read_trace(folder.path, "run", keep_names=True)] == [
        (namespace, pipeline) for pipeline, namespace in runs
    ]
    assert [(job.user, job.pipeline) for job in read_trace(folder.path, "run")] == [
        ("tenant-1", "pipeline-1"), ("tenant-2", "pipeline-2"), ("tenant-1", "pipeline-1"), ("tenant-3", ""),
    ]  # fmt: skip
    code, schedule = run(folder.path, "run", tmp_path, "--keep-names", "--jobs", str(tmp_path / "jobs.csv"))
    assert code == 0
    assert [row["tenant"] for row in schedule] == [namespace for _, namespace in runs]
    with (tmp_path / "jobs.csv").open() as file:
        assert [row["pipeline"] for row in csv.DictReader(file)] == [pipeline for pipeline, _ in runs]


@pytest.mark.attack("Files and run folders")
def test_a_job_of_many_tasks_in_a_row_or_in_a_circle_is_read_in_linear_time():
    tasks = [Task(str(k), 1.0, needs=(str(k - 1),)) for k in range(40_000)]
    assert longest_s(tasks) == 40_000.0
    assert longest_s([*tasks[1:], Task("0", 1.0, needs=("39999",))]) == 1.0


@pytest.mark.attack("Files and run folders")
@pytest.mark.parametrize(
    ("kind", "bound", "says"),
    [
        ("alibaba-2018", "_MOST_TASKS", "holds more than"),
        ("csv", "_MOST_JOBS", "holds more than"),
        ("wfformat", "_MOST_JSON", "is larger than"),
        ("philly", "_MOST_JSON", "is larger than"),
    ],
)
def test_a_trace_that_is_too_large_is_refused(kind, bound, says, tmp_path, monkeypatch):
    (tmp_path / "trace").write_text(FILES[kind])
    monkeypatch.setattr(f"generators.inference.traces.{bound}", 1)
    with pytest.raises(ConfigError, match=says):
        read_trace(tmp_path / "trace", kind)


@pytest.mark.attack("Files and run folders")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("csv", "submitted,duration_s\n0,1\n1e14,1\n"),
        ("csv", "submitted,duration_s,node_num\n0,-5,1e14\n5,nan,1\n"),
        ("csv", "submitted,duration_s\n" + "9" * 200_000 + ",1\n"),
        ("csv", "submitted\n0001-01-01T00:00:00\n9999-12-31T23:59:59\n"),
        ("csv", "submitted,tenant\n0,\"=cmd|' /C calc'!A0\"\n"),
        ("csv", "PK\x03\x04\0\0../../etc/passwd"),
        ("alibaba-2018", "M1_1,1e14,1,j,T,0,1e14,1e14,1e14\n"),
        ("alibaba-2018", "M" + "9" * 5000 + ",1,1,j,T,0,1,1,1\n"),
        ("wfformat", '{"workflow": {"specification": {"tasks": [{"id": "a", "parents": ["a", "a", "b"]}]}}}'),
        ("wfformat", '{"workflow": {"specification": {"tasks": {"id": 1}}}}'),
        ("wfformat", '{"workflow": {"specification": {"tasks": [{"id": "a"}]}, "execution": [1]}}'),
        ("wfformat", "[" * 100_000),
        ("philly", '[{"attempts": [{"detail": 5}], "submitted_time": "0", "vc": {}}]'),
        ("philly", '{"a": 1}'),
    ],
)
def test_a_hostile_trace_gives_a_schedule_or_one_sentence(kind, content, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace").write_text(content)
    code = main(["workload", "--from-trace", "trace", "--format", kind, "--jobs", "jobs.csv", "--plot", "plot.svg"])
    assert code in {0, 2}
    said = capsys.readouterr().err
    assert "Traceback" not in said
    if code:
        assert said.startswith("error: ")
        assert {each.name for each in tmp_path.iterdir()} == {"trace"}
    else:
        (first, *_) = csv.DictReader((tmp_path / "jobs.csv").open())
        assert not first["tenant"].startswith("=")
