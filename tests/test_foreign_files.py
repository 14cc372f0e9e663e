"""Whatever a file from somebody else holds, it is read, or refused in one sentence: never a traceback, never gigabytes.

Each reader gets real files whose structure or bytes were changed. ``-m soak`` makes thirty times as many changes.
"""

import contextlib
import io
import json
import resource
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generators import cli as scenarios
from harness import cli, reading
from harness.collectors.metrics import profiles_file
from harness.model.errors import ConfigError
from harness.model.schedules import due_times
from harness.planning.experiment import next_point
from harness.planning.experiment_file import read_experiment
from harness.planning.pipeline_requests import run_requests
from harness.simulator.profile.file import load_profile
from harness.simulator.profile.prices import parse_prices
from harness.targets.kfp.pipeline import read_pipeline
from tests.support import mutations
from tests.support.dumps import LISTING, NODE, RANGE
from tests.support.schedule_files import read_schedule
from tests.support.timelines import burst

ROOT = Path(__file__).parents[1]
IR, HETIDA = ROOT / "harness/targets/training.yaml", ROOT / "harness/targets/hetida"
SPEC = """
seed: 7
rows: 5
fields:
  size: {integer: [1, 100], step: 3}
  rate: {lognormal: {median: 2, p95: 9}, correlation: {with: size, rank: 0.6}}
  kind: {choice: [a, b, c], weights: [1, 2, 3]}
  when: {datetime: [2024-01-01, 2024-02-01]}
  text: {template: "{kind}-{size:>6}-{when:%Y}"}
  name: {faker: name, vocabulary: 20}
  tree: {json: {a: {uniform: [0, 1]}, b: [1, {choice: [x, y]}]}}
  flag: boolean
"""
STAGES = "[{schedule: constant, rate: 2/s, for: 10s}, {schedule: ramp, rate: 1/s..5/s, for: 1m}, {schedule: burst, runs: 5, every: 2s, times: 3}]"
LEVELS = "[{users: 5, for: 10s}, {users: 20, for: 1m}]"
EXPERIMENT = """
name: a
question: grid
loads: 10..20 by 5
nodes: [2, 4]
variants: {one: {}, two: {fault: store-slow}}
repetitions: 2
order: random
seed: 7
slos: ['max(run.duration) < 30m']
simulate: demo
hooks: {set_nodes: 'echo {nodes}', before: 'echo {load} {variant} {repetition}', cool_down: 1s, timeout: 10}
"""
METRICS = "title: t\nmetrics: [{name: a, any_of: [b, c], kind: histogram, by: [x], where: {y: ~z}, rename: {x: w}, labels: {k: v}, fold: max}]"
SCENARIOS = b"id,scenario_name,a,b\n1,x,1,2\n2,y,3,4\n"
ARRIVALS = b"due_s,scenario_id\n0.0,1\n1.5,2\n"
OBSERVATIONS = b"runs,nodes,duration\n10,2,60\n20,2,100\n40,4,1m\n80,4,3m\n"
PRICES = b"at,price\n0s,0.1\n90m,0.3\n"
MEASURED = b"variant,scale,repetition,metric,value\na,1,1,m,1\na,1,2,m,2\nb,1,1,m,3\nb,1,2,m,4\n"


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """What asks for gigabytes fails here."""
    with open("/proc/self/statm") as text:  # noqa: PTH123
        now = int(text.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + 3 * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def verb(*arguments, main=cli.main):
    """One call of a command, as its process would make it; its exit code says whether the file was refused."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = main(list(map(str, arguments)))
    assert code in {0, 2, 3, 4}, said.getvalue()
    if code == 2:
        assert said.getvalue().startswith("error: "), said.getvalue()
        assert "Traceback" not in said.getvalue()


def generated(*arguments):
    with tempfile.TemporaryDirectory() as place:
        verb(*arguments, "-o", Path(place) / "out.csv", "--n", "5", "--quiet", main=scenarios.main)


def workload(path):
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "s.csv").write_bytes(SCENARIOS)
        verb(
            "workload",
            "--spec",
            path,
            "--scenarios",
            Path(place) / "s.csv",
            "-o",
            Path(place) / "o.csv",
            main=scenarios.main,
        )


def schedule(kind):
    def read(path):
        found = read_schedule(kind, path, 5)
        if kind != "concurrency":
            due_times(found, 1)

    return read


def imported(path):
    with tempfile.TemporaryDirectory() as place:
        runs = Path(place) / "runs.json"
        runs.write_text(json.dumps(LISTING))
        verb("import", path, runs, "--runs-dir", place, "--quiet")


# name: the real file, how it is changed, its suffix, its reader
READERS = {
    "spec": (SPEC.encode(), mutations.yaml_documents, ".yaml", lambda path: generated("--spec", path)),
    "workload": ((ROOT / "generators/day.workload.yaml").read_bytes(), mutations.yaml_documents, ".yaml", workload),
    "sample": (SCENARIOS, mutations.tables, ".csv", lambda path: generated("--from-csv", path)),
    "pipeline": (IR.read_bytes(), mutations.yaml_documents, ".yaml", read_pipeline),
    "pipeline's requests": (IR.read_bytes(), mutations.yaml_documents, ".yaml", lambda path: run_requests(path.read_bytes())),
    "pipeline's scenarios": (IR.read_bytes(), mutations.yaml_documents, ".yaml", lambda path: generated("--from-pipeline", path)),
    "stages": (STAGES.encode(), mutations.yaml_documents, ".yaml", schedule("stages")),
    "levels": (LEVELS.encode(), mutations.yaml_documents, ".yaml", schedule("concurrency")),
    "arrivals": (ARRIVALS, mutations.tables, ".csv", schedule("replay")),
    "experiment": (EXPERIMENT.encode(), mutations.yaml_documents, ".yaml", lambda path: next_point(read_experiment(path).experiment, [])),
    "profile": ((ROOT / "harness/simulator/profile/built_in/demo.yaml").read_bytes(), mutations.yaml_documents, ".yaml", lambda path: load_profile(str(path))),
    "prices": (PRICES, mutations.tables, ".csv", lambda path: parse_prices(reading.read_text(path), str(path)).mean(0.0, 9e9)),
    "metrics": (METRICS.encode(), mutations.yaml_documents, ".yaml", lambda path: profiles_file.load(str(path))),
    "observations": (OBSERVATIONS, mutations.tables, ".csv", lambda path: verb("capacity", "--runs", "100", "--nodes", "4", "--from", path)),
    "measurements": (MEASURED, mutations.tables, ".csv", lambda path: verb("compare", "--table", path)),
    "objects": (json.dumps({"kind": "List", "items": [NODE]}).encode(), mutations.json_documents, ".json", imported),
    "listing": (json.dumps(LISTING).encode(), mutations.json_documents, ".json", imported),
    "samples": (json.dumps(RANGE).encode(), mutations.json_documents, ".json", imported),
}  # fmt: skip
MORE = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], max_examples=600)
FEW = settings(MORE, max_examples=8, derandomize=True)


def check(name, content):
    """Read a changed file."""
    *_, suffix, read = READERS[name]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"given{suffix}"
        path.write_bytes(content)
        with contextlib.suppress(ConfigError):
            read(path)


@cache
def changes_of(name):
    content, changes, *_ = READERS[name]
    return changes(content)


@pytest.mark.parametrize("name", READERS)
def test_the_file_itself_is_read(name, tmp_path):
    content, _, suffix, read = READERS[name]
    path = tmp_path / f"given{suffix}"
    path.write_bytes(content)
    read(path)


@pytest.mark.parametrize("name", READERS)
@FEW
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(name, data):
    check(name, data.draw(changes_of(name)))


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
@MORE
@given(data=st.data())
def test_a_file_changed_in_many_ways_is_read_or_refused(name, data):
    check(name, data.draw(changes_of(name)))


# --- run folders ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A sealed folder with records of every kind, prices and a baseline."""
    place = tmp_path_factory.mktemp("runs")
    story = burst(24, store_full_from=0.6)
    story.slos = ("p95(run.duration) < 20m",)
    folder = story.write(place)
    verb("report", folder.path)
    folder.write_schedule([0.0] * story.intended)
    folder.replace("baseline.json", folder.read_bytes("report.json"))
    folder.replace("prices.json", b'{"train": 0.2}')
    folder.write_live("load", {"stage": "dispatching", "intended": 5, "done": 2})
    return folder.path


IN_FOLDER = {
    "manifest.json": mutations.json_documents,
    "submissions.jsonl": mutations.json_lines,
    "spans.jsonl": mutations.json_lines,
    "samples.jsonl": mutations.json_lines,
    "events.jsonl": mutations.json_lines,
    "nodes.jsonl": mutations.json_lines,
    "tables/spans.parquet": mutations.damaged,
    "tables/submissions.parquet": mutations.damaged,
    "schedule.csv": mutations.tables,
    "prices.json": mutations.json_documents,
    "baseline.json": mutations.json_documents,
    "live.json": mutations.json_documents,
    "report.json": mutations.json_documents,
}


def check_folder(real, name, data):
    """Use a folder with one changed file as every verb would that reads it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "runs/a"
        shutil.copytree(real, folder)
        (folder / name).write_bytes(data.draw(IN_FOLDER[name]((folder / name).read_bytes())))
        if name.endswith(".jsonl"):
            shutil.rmtree(folder / "tables")
        if name in {"report.json", "manifest.json"}:
            verb("report", folder.parent)
        if name in {"live.json", "manifest.json"}:
            verb("watch", folder, "--once")
        if name == "schedule.csv":
            with contextlib.suppress(ConfigError):
                read_schedule("replay", folder)
        if name not in {"live.json", "report.json"}:
            verb("report", folder, "--quiet")


@pytest.mark.parametrize("name", IN_FOLDER)
@settings(FEW, max_examples=5)
@given(data=st.data())
def test_a_changed_run_folder_is_read_or_refused(real, name, data):
    check_folder(real, name, data)


@pytest.mark.soak
@pytest.mark.parametrize("name", IN_FOLDER)
@settings(MORE, max_examples=250)
@given(data=st.data())
def test_a_run_folder_changed_in_many_ways_is_read_or_refused(real, name, data):
    check_folder(real, name, data)


def test_the_mutations_reach_every_value_of_a_document():
    tree = yaml.safe_load(EXPERIMENT)
    assert ("hooks", "cool_down") in mutations.places(tree)
    assert mutations.changed(tree, ("hooks", "cool_down"), "replace", [1])["hooks"]["cool_down"] == [1]
    assert tree["hooks"]["cool_down"] == "1s"
