"""Pipelines of KFP in simulated time: tasks of a driver alone, settings of the whole pipeline, and what is no pipeline."""

from itertools import pairwise

import pytest
import yaml

from harness.model import Event, Scenario, Span
from harness.model.errors import ConfigError
from harness.simulator.engine.distributions import fixed
from harness.simulator.fast import Arrival
from harness.simulator.profile import Controller, Step
from tests.support.argo_platform import WORK
from tests.support.platforms import profile
from tests.support.simulated import simulate

STEP = Step(duration=fixed(5.0), **WORK)


def pipeline(images, config=None):
    """The package of a pipeline with a task for each image, one after the other."""
    tasks, executors, components, before = {}, {}, {}, []
    for name, image in images.items():
        components[f"comp-{name}"] = {"executorLabel": f"exec-{name}"}
        executors[f"exec-{name}"] = {"container": {"image": image}}
        tasks[name] = {"componentRef": {"name": f"comp-{name}"}, "dependentTasks": before}
        before = [name]
    spec = {
        "pipelineInfo": {"name": "p"}, "root": {"dag": {"tasks": tasks}}, "components": components,
        "deploymentSpec": {"executors": executors},
    }  # fmt: skip
    platform = {"platforms": {"kubernetes": {"pipelineConfig": config or {}}}}
    return yaml.safe_dump_all([spec, platform]).encode()


def simulated(package, runs=1, **more):
    arrivals = [Arrival(0.0, Scenario(str(k), f"run {k}", {}, {})) for k in range(runs)]
    settings = {"controller": Controller(qps=1e6, burst=10**6, driver=fixed(1.0)), "steps": (STEP,), **more}
    return list(simulate(profile(**settings), package, arrivals, drain_s=500.0))


def test_a_task_of_a_driver_alone_has_the_tasks_name_and_no_executor():
    records = simulated(pipeline({"claim": "argostub/createpvc", "train": "a"}))
    running = {each.task for each in records if isinstance(each, Span) and each.phase == "running"}
    assert running == {"root-driver", "claim", "train-driver", "train"}


def test_a_pipelines_own_deadline_ends_its_runs():
    package = pipeline({"a": "a", "b": "b"}, {"activeDeadlineSeconds": 20})
    records = simulated(package, steps=(Step(duration=fixed(300.0), **WORK),))
    (run,) = (each for each in records if isinstance(each, Span) and each.phase == "run")
    (end,) = (each for each in records if isinstance(each, Event) and each.kind == "Run")
    assert end.reason == "FAILED"
    assert 20.0 <= (run.ended_at - run.started_at) / 1e9 < 60.0


@pytest.mark.parametrize(
    ("config", "together"), [({}, True), ({"mutexName": "m"}, False), ({"semaphoreKey": "k"}, False)]
)
def test_runs_of_a_pipeline_with_a_lock_run_one_after_the_other(config, together):
    records = simulated(pipeline({"a": "a"}, config), runs=3)
    work = sorted((each.started_at, each.ended_at) for each in records
                  if isinstance(each, Span) and each.phase == "running")  # fmt: skip
    assert len({each.run for each in records if isinstance(each, Span) and each.phase == "running"}) == 3
    overlap = any(after[0] < before[1] for before, after in pairwise(work))
    assert overlap is together
    assert [each.reason for each in records if isinstance(each, Event) and each.kind == "Run"] == ["SUCCEEDED"] * 3


@pytest.mark.parametrize(
    "package", [b"", b"[]", b"a: 1", b"pipelineInfo: {name: p}\nroot: {dag: {tasks: {a: {componentRef: {name: x}}}}}"]
)
def test_what_is_no_pipeline_is_refused(package):
    with pytest.raises(ConfigError, match="refuses the pipeline"):
        simulated(package)
