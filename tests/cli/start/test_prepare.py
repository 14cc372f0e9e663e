"""The command, from file to file; what it changes is tested in tests/prepare."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml

from harness.cli import main
from harness.model.errors import ExitCode
from harness.prepare.check import check
from harness.simulator.kfp.packages import parse_package
from harness.targets.kfp.pipeline import read_pipeline
from tests.support.compiled import CURRENT, OLDER, documents
from tests.support.stories import measured

SPOT = ["--spot", "aks", "--task", "train*", "--retries", "5", "--backoff", "5m", "--backoff-factor", "1"]


def test_the_result_is_a_pipeline_for_the_load_and_the_simulated_platform(tmp_path, capsys):
    out = tmp_path / "out.yaml"
    assert main(["prepare", str(CURRENT), *SPOT, "-o", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "+              kubernetes.azure.com/scalesetpriority: spot" in shown
    assert "maxRetryCount: 5" in shown
    assert f"written: {out}" in shown
    assert read_pipeline(out).inputs == read_pipeline(CURRENT).inputs
    _, platform = parse_package(out.read_bytes())
    assert platform["exec-train"]["nodeSelector"]["labels"] == {"kubernetes.azure.com/scalesetpriority": "spot"}


def test_the_compilers_heading_stays_and_a_second_time_changes_nothing(tmp_path, capsys):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    main(["prepare", str(CURRENT), *SPOT, "-o", str(first)])
    assert first.read_text().startswith("# PIPELINE DEFINITION\n# Name: lab\n")
    capsys.readouterr()
    assert main(["prepare", str(first), *SPOT, "-o", str(second), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"changed": False, "output": str(second), "diff": ""}
    assert second.read_bytes() == first.read_bytes()


def test_without_an_output_only_the_changes_are_shown(tmp_path, capsys):
    copy = tmp_path / "p.yaml"
    shutil.copy(OLDER, copy)
    assert main(["prepare", str(copy), "--cpu-request", "2", "--task", "prepare"]) == 0
    shown = capsys.readouterr().out
    assert "+          resourceCpuRequest: '2'" in shown
    assert "nothing written" in shown
    assert [*tmp_path.iterdir()] == [copy]
    assert copy.read_bytes() == OLDER.read_bytes()


def test_the_advice_of_a_run_is_applied_as_its_command_prints_it(tmp_path, capsys):
    folder = measured().write(tmp_path)
    assert main(["resources", str(folder.path), "--json"]) == 0
    advice, out = tmp_path / "advice.json", tmp_path / "out.yaml"
    advice.write_text(capsys.readouterr().out)
    assert main(["prepare", str(OLDER), "--resources", str(advice), "-o", str(out), "--quiet"]) == 0
    executors = documents(out)[0]["deploymentSpec"]["executors"]
    assert executors["exec-train"]["container"]["resources"]["resourceCpuRequest"] == "2100m"


NO_EXECUTORS = """\
pipelineInfo: {name: x}
root: {dag: {tasks: {a: {componentRef: {name: c}}}}}
components: {c: {executorLabel: e}}
"""
REFUSED = [
    (["--task", "trian"], "did you mean 'train'"),
    (["--memory-request", "24G!"], "'24G!' is not a Kubernetes quantity"),
    (["--node-selector", "pool=a", "--node-selector", "pool=b"], "both 'a' and 'b'"),
    (["--check", "--retries", "3"], "--check looks at the pipeline as it is"),
    (["--timeout", "0s"], "--timeout"),
    (["--run", "runs/x"], "--run is for --check"),
    (["--profile", "demo", "--cpu-request", "99", "--cpu-limit", "99"], "is above every node of the profile 'demo'"),
    (["--profile", "none-such"], "no simulated platform 'none-such'"),
    (["--kube-context", "none-such"], "the kubeconfig can't be used"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_bad_options_leave_nothing_behind(options, says, tmp_path, capsys):
    assert main(["prepare", str(OLDER), *options, "-o", str(tmp_path / "out.yaml")]) == ExitCode.BAD_CONFIG
    assert says in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: [", "p.yaml:2: not valid YAML"),
        ("kind: Pod", "p.yaml is not a compiled pipeline"),
        ("pipelineInfo: {name: x}\nroot: {}\nschemaVersion: 2.2.0\n", "p.yaml:3: its schema 2.2.0 is newer than 2.1"),
        ("pipelineInfo: {name: x}\nroot: {dag: {tasks: [a]}}\n", "p.yaml is damaged"),
        (NO_EXECUTORS, "'deploymentSpec' is missing"),
    ],
)
@pytest.mark.parametrize("verb", [["-o", "out.yaml", "--caching", "off"], ["--check"]])
def test_what_is_no_pipeline_is_refused(verb, content, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(content)
    assert main(["prepare", "p.yaml", *verb]) == ExitCode.BAD_CONFIG
    assert says in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["p.yaml"]


def test_missing_files_and_folders_are_refused(tmp_path, capsys):
    missing = str(tmp_path / "none" / "x")
    for command in ([missing], [f"{missing}.py"], [str(OLDER), "-o", missing], [str(OLDER), "--resources", missing]):
        assert main(["prepare", *command]) == ExitCode.BAD_CONFIG
        assert "none" in capsys.readouterr().err


def test_check_lists_each_finding_with_its_tasks_and_ends_with_3(capsys):
    assert main(["prepare", str(OLDER), "--check"]) == ExitCode.SLO_FAILED
    shown = capsys.readouterr().out
    assert "train: image registry.example/train:latest has the moving tag latest" in shown
    assert main(["prepare", str(OLDER), "--check", "--json"]) == ExitCode.SLO_FAILED
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(each["kind"], each["task"]) for each in found] == [(e.kind, e.task) for e in check(documents(OLDER))]
    assert found[0].keys() == {"kind", "task", "found", "cost", "remedy", "at_most_s"}


def test_a_run_folder_bounds_what_installing_costs(tmp_path, capsys):
    folder = measured().write(tmp_path)
    assert main(["prepare", str(OLDER), "--check", "--run", str(folder.path), "--json"]) == ExitCode.SLO_FAILED
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {each["task"]: each["at_most_s"] for each in found if each["kind"] == "pip-install"} == {
        "prepare": 9.0,
        "train": 50.0,
    }
    assert {each["at_most_s"] for each in found if each["kind"] != "pip-install"} == {None}
    assert main(["prepare", str(OLDER), "--check", "--run", str(folder.path)]) == ExitCode.SLO_FAILED
    assert "at most 9 s per start" in " ".join(capsys.readouterr().out.split())


def test_a_clean_pipeline_passes_the_check(tmp_path, capsys):
    spec, platform = documents(OLDER)
    for executor in spec["deploymentSpec"]["executors"].values():
        executor["container"] |= {"command": ["true"], "image": "a:1"}
    path, clean = tmp_path / "p.yaml", tmp_path / "clean.yaml"
    path.write_text(yaml.safe_dump_all([spec, platform]))
    requests = ["--cpu-request", "100m", "--memory-request", "64Mi"]
    assert main(["prepare", str(path), *requests, "-o", str(clean), "--quiet"]) == 0
    assert main(["prepare", str(clean), "--check"]) == 0
    assert "nothing would spoil" in capsys.readouterr().out
    assert main(["prepare", str(clean), "--node-selector", "pool=cheap", "-o", str(clean), "--quiet"]) == 0
    assert main(["prepare", str(clean), "--check", "--spot", "pool=cheap"]) == ExitCode.SLO_FAILED
    assert "train: may run on spot nodes without retries" in capsys.readouterr().out


_RECOMPILE = """
import sys
from kfp import compiler, components
loaded = components.load_component_from_file(sys.argv[1])
compiler.Compiler().compile(loaded, sys.argv[2])
"""


def test_sources_are_compiled_and_the_sdk_compiles_the_result_to_the_same(tmp_path):
    source = tmp_path / "pipeline.py"
    source.write_text(
        "from kfp import dsl\n"
        "@dsl.container_component\n"
        "def step(n: int):\n"
        "    return dsl.ContainerSpec(image='busybox', command=['true'], args=[n])\n"
        "@dsl.pipeline(name='small')\n"
        "def small(n: int = 1):\n"
        "    with dsl.If(n == 1):\n"
        "        step(n=n)\n"
    )
    out, again = tmp_path / "out.yaml", tmp_path / "again.yaml"
    everything = ["--spot", "gke", "--retries", "3", "--gpu", "1", "--cpu-request", "500m", "--memory-limit", "2Gi",
                  "--label", "test=a", "--timeout", "1h", "--affinity", "disk=ssd@10",
                  "--image-pull-policy", "Always", "--pool-parameter", "pool"]  # fmt: skip
    assert main(["prepare", str(source), *everything, "-o", str(out), "--quiet"]) == 0
    subprocess.run([sys.executable, "-W", "ignore", "-c", _RECOMPILE, out, again], check=True, timeout=120)
    assert documents(again) == documents(out)
    assert [each.name for each in read_pipeline(out).inputs] == ["n", "pool"]


def test_a_source_that_does_not_compile_is_refused(tmp_path, capsys):
    source = tmp_path / "pipeline.py"
    source.write_text("raise RuntimeError('no luck')\n")
    assert main(["prepare", str(source), "-o", str(tmp_path / "out.yaml")]) == ExitCode.BAD_CONFIG
    assert "no luck" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [source]
