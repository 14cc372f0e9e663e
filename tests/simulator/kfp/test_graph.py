"""Pods of compiled pipelines: 2N+1, and a driver for every nested pipeline, loop and iteration."""

import json
from collections import Counter
from typing import Any

import pytest
import yaml
from kfp import compiler, dsl

from harness.model.errors import ConfigError
from harness.simulator.cluster import Requirement, Toleration
from harness.simulator.kfp.packages import parse_package
from harness.simulator.workflows.graph import JOIN, Graph, flatten
from tests.support.platforms import GI


@dsl.container_component
def step(number: int = 1):  # the SDK reads the signature
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[number])


@dsl.container_component
def listing(items: dsl.OutputPath(list)):  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="busybox", command=["true"], args=[items])


def compiled(pipeline: Any, tmp_path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    target = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(target))
    return parse_package(target.read_bytes())


def graph_of(pipeline: Any, tmp_path: Any, **parameters: object) -> Graph:
    spec, platform = compiled(pipeline, tmp_path)
    return flatten(spec, platform, parameters, loop_iterations=3)


def roles(graph: Graph) -> Counter[str]:
    return Counter(plan.role for plan in graph.plans if plan.role != JOIN)


@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_a_run_of_n_tasks_has_two_n_plus_one_pods(tasks: int, tmp_path: Any) -> None:
    @dsl.pipeline
    def chain():
        before = None
        for _ in range(tasks):
            task = step()
            if before is not None:
                task.after(before)
            before = task

    graph = graph_of(chain, tmp_path)
    assert graph.pods == 2 * tasks + 1
    assert roles(graph) == {"dag-driver": 1, "container-driver": tasks, "executor": tasks}


def test_a_loop_over_a_parameter_is_as_long_as_the_parameter(tmp_path: Any) -> None:
    @dsl.pipeline
    def loop(items: list = [1, 2]):  # noqa: B006  # the SDK's way to say a default
        with dsl.ParallelFor(items, parallelism=2) as item:
            step(number=item)

    for count in (0, 1, 5):
        graph = graph_of(loop, tmp_path, items=list(range(count)))
        # The root driver, the loop's driver; each iteration a driver and the step's two pods.
        assert graph.pods == 2 + 3 * count


def test_with_a_parallelism_limit_an_iteration_waits_for_the_one_so_many_before(tmp_path: Any) -> None:
    @dsl.pipeline
    def loop():
        with dsl.ParallelFor([1, 2, 3, 4], parallelism=2) as item:
            step(number=item)

    graph = graph_of(loop, tmp_path)
    drivers = [plan for plan in graph.plans if "for-loop" in plan.path and plan.path.endswith("iteration-item-driver")]
    assert [plan.waits for plan in drivers] == [1, 1, 2, 2]


def test_a_loop_over_an_output_has_the_profiles_length(tmp_path: Any) -> None:
    @dsl.pipeline
    def loop():
        with dsl.ParallelFor(listing().outputs["items"]) as item:
            step(number=item)

    assert graph_of(loop, tmp_path).pods == 1 + 2 + 1 + 3 * 3


def test_nested_pipelines_and_conditions_have_a_driver_each(tmp_path: Any) -> None:
    @dsl.pipeline
    def inner(number: int):
        step(number=number)

    @dsl.pipeline
    def outer(flag: bool = True):
        first = inner(number=1)
        with dsl.If(flag == True):  # noqa: E712  # the SDK records the comparison
            step().after(first)

    assert graph_of(outer, tmp_path).pods == 1 + (1 + 2) + (1 + 2)


def test_an_exit_handlers_task_always_runs(tmp_path: Any) -> None:
    @dsl.pipeline
    def guarded():
        with dsl.ExitHandler(step()):
            step()

    graph = graph_of(guarded, tmp_path)
    always = {plan.role for plan in graph.plans if plan.always}
    assert always == {"container-driver"}
    assert graph.pods == 1 + 2 + (1 + 2)


def test_requests_limits_retries_and_placement_are_read_from_the_package(tmp_path: Any) -> None:
    @dsl.pipeline
    def placed():
        task = step().set_cpu_request("500m").set_cpu_limit("2").set_memory_request("1Gi").set_memory_limit("2Gi")
        task.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1)
        task.set_retry(3, "5s", 2.0, "60s")

    spec, _ = compiled(placed, tmp_path)
    # What the extension kfp-kubernetes puts into the second document.
    placement = {
        "nodeSelector": {"labels": {"agentpool": "gpu"}},
        "tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
        "nodeAffinity": [
            {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "Exists"}], "weight": 10},
        ],
    }
    graph = flatten(spec, {"exec-step": placement}, {}, 3)
    plan = next(plan for plan in graph.plans if plan.role == "executor")
    container = plan.container
    assert (container.shape.cpu, container.shape.memory, container.shape.gpu) == (500, GI, 1)
    assert (container.limit_cpu, container.limit_memory) == (2000, 2 * GI)
    assert (container.retries, container.backoff_s, container.backoff_max_s) == (3, 5.0, 60.0)
    assert container.shape.selector == (("agentpool", "gpu"),)
    assert container.shape.affinity == ((Requirement("zone", "NotIn", ("a",)),),)  # the other one is a preference
    assert container.shape.tolerations == (Toleration("sku", "Equal", "gpu", "NoSchedule"),)


def test_a_spec_that_refers_to_nothing_is_refused() -> None:
    spec = yaml.safe_load("root: {dag: {tasks: {a: {componentRef: {name: comp-a}}}}}")
    with pytest.raises(ConfigError, match="comp-a"):
        flatten(spec, {}, {}, 3)


ECHO = {"componentRef": {"name": "comp-echo"}}


def pipeline_of(tasks: dict[str, Any], **components: Any) -> dict[str, Any]:
    return {
        "pipelineInfo": {"name": "p"},
        "root": {"dag": {"tasks": tasks}},
        "components": {"comp-echo": {"executorLabel": "e"}, **components},
        "deploymentSpec": {"executors": {"e": {"container": {"image": "i"}}}},
    }


def nested(name: str) -> dict[str, Any]:
    return {"componentRef": {"name": name}}


LOOP = {**nested("inner"), "parameterIterator": {"itemInput": "i", "items": {"raw": json.dumps([0] * 30_000)}}}
BEHIND = {f"t{k}": {**ECHO, "dependentTasks": [f"t{k - 1}"] if k else []} for k in reversed(range(3_000))}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (pipeline_of({"t": nested("inner")}, inner={"dag": {"tasks": {"t": nested("inner")}}}), "contains itself"),
        (pipeline_of(BEHIND), "inside or behind each other"),
        (pipeline_of({"t": LOOP}, inner={"dag": {"tasks": {"t": ECHO}}}), "more than 50,000 pods"),
    ],
    ids=("in itself", "a chain", "a loop"),
)
def test_a_pipeline_without_end_is_refused(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        flatten(spec, {}, {}, loop_iterations=3)
