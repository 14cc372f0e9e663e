"""Pipelines in pipelines, exit handlers, and tasks without an executor: how they end, and what comes after."""

import json
from typing import Any

import pytest
import yaml
from kfp import dsl

from harness.simulator.kfp.records import Run
from tests.support.kfp_sdk import branches, compiled, failing, flip, ran, step


def test_an_exit_task_runs_after_a_failure_and_the_run_has_failed(tmp_path: Any) -> None:
    @dsl.pipeline
    def guarded():
        with dsl.ExitHandler(step()):
            flip()

    (run,), (pods,) = ran(tmp_path, guarded, under=failing("flip"))
    assert pods["executor", "step"] == 1
    assert run.state == "FAILED"


def test_a_failure_inside_a_nested_pipeline_omits_later_tasks(tmp_path: Any) -> None:
    @dsl.pipeline
    def inner():
        flip()

    @dsl.pipeline
    def outer():
        step().after(inner())

    (run,), (pods,) = ran(tmp_path, outer, under=failing("flip"))
    assert {task for role, task in pods if role == "executor"} == {"flip"}
    assert run.state == "FAILED"


def states(run: Run) -> dict[str, str]:
    assert run.workflow is not None
    return {plan.path: step.state for plan, step in run.workflow.made() if plan.role == "join"}


def test_a_nested_pipelines_node_ends_as_argo_ends_it(tmp_path: Any) -> None:
    @dsl.pipeline
    def outer(flag: bool = False):
        with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
            step()
        with dsl.ExitHandler(step()):
            flip()

    (run,), _ = ran(tmp_path, outer, under=failing("flip"))
    assert states(run) == {"root(0).condition-1": "Skipped", "root(0).exit-handler-2": "Failed", "root": "Failed"}


def test_tasks_after_a_pipeline_with_a_skipped_condition_run(tmp_path: Any) -> None:
    @dsl.pipeline
    def inner(flag: bool):
        with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
            flip()

    @dsl.pipeline
    def outer():
        step().after(inner(flag=False))

    (run,), (pods,) = ran(tmp_path, outer)
    assert branches(pods) == ["step"]
    assert run.state == "SUCCEEDED"


def test_tasks_done_by_the_driver_have_no_executor(tmp_path: Any) -> None:
    @dsl.pipeline
    def claiming():
        first = step()
        flip().after(first)

    # As kfp-kubernetes' CreatePVC compiles.
    spec = yaml.safe_load(compiled(tmp_path, claiming))
    spec["deploymentSpec"]["executors"]["exec-step"]["container"]["image"] = "argostub/createpvc"
    (run,), (pods,) = ran(tmp_path, yaml.safe_dump(spec).encode())
    assert pods == {("dag-driver", ""): 1, ("container-driver", "step"): 1, ("container-driver", "flip"): 1,
                    ("executor", "flip"): 1}  # fmt: skip
    assert run.state == "SUCCEEDED"


def test_reading_an_output_is_waiting_for_it(tmp_path: Any) -> None:
    @dsl.pipeline
    def reading():
        flip()
        step()

    # A specification may leave it to the reader to see it: the API server adds what it implies.
    spec = yaml.safe_load(compiled(tmp_path, reading))
    task = spec["root"]["dag"]["tasks"]["step"]
    task["inputs"] = {"parameters": {"number": {"taskOutputParameter": {
        "producerTask": "flip", "outputParameterKey": "face",
    }}}}  # fmt: skip
    (run,), _ = ran(tmp_path, yaml.safe_dump(spec).encode())
    assert run.finished == pytest.approx(2.0)  # one second after the other


@dsl.component(base_image="busybox")
def face_of(data: dsl.Input[dsl.Dataset]) -> str:
    return "heads"


@dsl.component(base_image="busybox")
def total(faces: list) -> int:  # type: ignore[type-arg]  # what the SDK reads
    return len(faces)


def test_an_importer_is_one_pod_without_a_driver(tmp_path: Any) -> None:
    @dsl.pipeline
    def importing():
        data = dsl.importer(artifact_uri="s3://bucket/rows", artifact_class=dsl.Dataset)
        face_of(data=data.output)

    (run,), (pods,) = ran(tmp_path, importing)
    assert pods == {("dag-driver", ""): 1, ("importer", "importer"): 1, ("container-driver", "face-of"): 1,
                    ("executor", "face-of"): 1}  # fmt: skip
    assert run.state == "SUCCEEDED"


def test_what_a_loop_collects_is_waited_for(tmp_path: Any) -> None:
    @dsl.pipeline
    def gathering():
        with dsl.ParallelFor(["a", "b", "c"]):
            thrown = flip()
        total(faces=dsl.Collected(thrown.outputs["face"]))

    (run,), (pods,) = ran(tmp_path, gathering)
    assert (pods["executor", "flip"], pods["executor", "total"]) == (3, 1)
    assert (run.state, run.finished) == ("SUCCEEDED", pytest.approx(2.0))


def test_a_notebook_is_a_step_like_others(tmp_path: Any) -> None:
    notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))

    @dsl.notebook_component(notebook_path=str(tmp_path / "n.ipynb"), base_image="busybox")
    def noted(rows: int):
        dsl.run_notebook(rows=rows)

    @dsl.pipeline
    def studying():
        noted(rows=7)

    (run,), (pods,) = ran(tmp_path, studying)
    assert pods["executor", "noted"] == 1
    assert run.state == "SUCCEEDED"
