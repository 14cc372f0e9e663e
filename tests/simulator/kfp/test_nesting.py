"""Pipelines in pipelines, exit handlers, and tasks without an executor: how they end, and what comes after."""

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
