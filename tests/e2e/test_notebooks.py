"""Three notebooks about spot nodes on AKS, without a change of their pipeline: ordinary nodes, spot nodes, and retries.

They download a file and merge its tables: https://github.com/Barteus/kubeflow-examples, folder aks-spot-instances.
"""

import pytest
from kfp import compiler, dsl

from harness.cli import main
from harness.model import Event, Node, Span
from harness.model.errors import ExitCode
from harness.store.folder import RunFolder

PLATFORM = """
title: An AKS cluster with a pool of spot nodes
pools:
  - {{name: agentpool, cpu: 4, memory: 16Gi, initial: 3, max: 3}}
  - {{name: spotpool, cpu: 4, memory: 16Gi, initial: 2, min: 1, max: 4, spot: true, evictions_per_hour: {evictions}}}
autoscaler: {{}}
steps: [{{match: "*", duration: 100s}}]
"""
SPOT = "spot=aks"


@dsl.container_component
def web_downloader_op(url: str, data: dsl.Output[dsl.Dataset]):
    return dsl.ContainerSpec("busybox:1.36", ["wget", "-O", data.path, url])


@dsl.container_component
def create_step_merge_csv(file: dsl.Input[dsl.Dataset], merged: dsl.Output[dsl.Dataset]):
    return dsl.ContainerSpec("busybox:1.36", ["sh", "-c", 'tar xzOf "$0" > "$1"', file.path, merged.path])


@dsl.pipeline(name="base-pipeline")
def base(url: str = "https://storage.googleapis.com/ml-pipeline-playground/iris-csv-files.tar.gz"):
    downloaded = web_downloader_op(url=url)
    create_step_merge_csv(file=downloaded.outputs["data"])


@pytest.fixture
def run(tmp_path):
    """Six runs at once with these changes of the pipeline, and so many evictions of a spot node per hour."""
    compiler.Compiler().compile(base, str(tmp_path / "base.yaml"))
    (tmp_path / "scenarios.csv").write_text("id,scenario_name\n1,iris\n")

    def simulated(prepare, evictions=0):
        (tmp_path / "aks.yaml").write_text(PLATFORM.format(evictions=evictions))
        given = ["--pipeline", tmp_path / "base.yaml", "--scenarios", tmp_path / "scenarios.csv"]
        options = [*given, "--profile", tmp_path / "aks.yaml", "--prepare", prepare]
        name = f"run-{evictions}-{len(prepare)}"
        load = ["--runs", 6, "--seed", 4, "--runs-dir", tmp_path, "--run-name", name, "--no-report"]
        assert main(["simulate", "run", "--quiet", *map(str, (*options, *load))]) == ExitCode.OK
        return RunFolder.open(tmp_path / name)

    return simulated


def pools_of(folder, part):
    """Where the pods with this part of their name ran: task and pool."""
    pools = {node.name: node.pool for node in folder.records(Node)}
    return {(span.task, pools[span.node]) for span in folder.records(Span) if part in span.step and span.node}


STEPS = ("web-downloader-op", "create-step-merge-csv")


def test_the_first_notebook_runs_on_ordinary_nodes(run):
    assert pools_of(run(""), "-impl-") == {(step, "agentpool") for step in STEPS}


def test_the_second_notebook_runs_on_spot_nodes_without_its_drivers(run):
    folder = run(SPOT)
    assert pools_of(folder, "-impl-") == {(step, "spotpool") for step in STEPS}
    assert {pool for _, pool in pools_of(folder, "-driver-")} == {"agentpool"}


def test_only_the_third_notebooks_runs_all_survive_evictions(run):
    usual = run(SPOT, evictions=25)
    patient = run(f"{SPOT},retries=5,backoff=5m,backoff-factor=1", evictions=25)
    for folder, survived in ((usual, False), (patient, True)):
        reasons = [event.reason for event in folder.records(Event)]
        assert "DeletionByPodGC" in reasons
        assert (reasons.count("SUCCEEDED") == 6) is survived
    assert pools_of(patient, "-impl-") == {(step, "spotpool") for step in STEPS}
