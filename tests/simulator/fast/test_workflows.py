"""Argo's workflows in simulated time: the pods, times and ends that the served platform has."""

import pytest
import yaml

from harness.model import Event, PodSpans, Scenario, Span, Submission
from harness.model.errors import ConfigError
from harness.model.phases import OF_TASK
from harness.simulator.engine.distributions import Amount, Fixed, fixed
from harness.simulator.fast import Arrival, simulate_compactly
from harness.simulator.profile import Step
from tests.support.argo_platform import FAILS, WORK, dag, recorded, task
from tests.support.platforms import profile
from tests.support.simulated import simulate

TAKES_5_S = Step(duration=fixed(5.0), **WORK)


def manifest(spec, kind="Workflow", name="w"):
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def simulated(spec, runs=1, beside=(), steps=(FAILS, TAKES_5_S), values=None, **more):
    package = yaml.safe_dump_all([manifest(spec), *beside]).encode()
    arrivals = [Arrival(0.0, Scenario(str(number), f"run {number}", values or {}, {})) for number in range(runs)]
    return list(simulate(profile(steps=steps, **more), package, arrivals, drain_s=1000.0))


def ends(records):
    return {each.run: each.reason for each in records if isinstance(each, Event) and each.kind == "Run"}


def tasks(records):
    return sorted(each.task for each in records if isinstance(each, Span) and each.phase == "running")


def test_a_recorded_workflow_has_its_tasks_and_an_end():
    records = simulated(recorded("plain-dag")["spec"], runs=3)
    assert set(ends(records).values()) == {"SUCCEEDED"}
    assert tasks(records) == sorted("abcd" * 3)
    assert [each.run for each in records if isinstance(each, Submission)] == list(ends(records))


def test_tasks_run_after_those_that_they_depend_on():
    records = simulated(dag(task("a"), task("b", dependencies=["a"])))
    a, b = sorted(
        (each for each in records if isinstance(each, Span) and each.phase == "running"), key=lambda each: each.task
    )
    assert a.ended_at - a.started_at == 5 * 10**9
    assert b.started_at >= a.ended_at


def test_a_failed_task_fails_the_run_and_says_why():
    records = simulated(dag(task("bad")))
    assert list(ends(records).values()) == ["FAILED"]
    (reason,) = (each for each in records if isinstance(each, Event) and each.kind == OF_TASK)
    assert (reason.object, reason.reason, reason.message) == ("bad", "FAILED", "main: Error (exit code 1)")


def test_the_values_of_a_scenario_reach_conditions():
    spec = dag(
        task("a", when="{{workflow.parameters.go}} == yes"), task("b"),
        arguments={"parameters": [{"name": "go", "value": "no"}]},
    )  # fmt: skip
    assert tasks(simulated(spec)) == ["b"]
    assert tasks(simulated(spec, values={"go": "yes"})) == ["a", "b"]


def test_templates_and_limits_come_from_the_documents_beside_the_workflow():
    shared = manifest(dag(task("a")), "WorkflowTemplate", "shared")
    limit = {"kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"one": "1"}}
    lock = {"semaphore": {"configMapKeyRef": {"name": "limits", "key": "one"}}}
    spec = {"workflowTemplateRef": {"name": "shared"}, "synchronization": lock}
    records = simulated(spec, runs=2, beside=[shared, limit])
    first, second = sorted(
        (each for each in records if isinstance(each, Span) and each.phase == "running"),
        key=lambda each: each.started_at,
    )
    assert second.started_at >= first.ended_at
    with pytest.raises(ConfigError, match="template shared"):
        simulated(spec)


def test_a_steps_duration_follows_a_parameter_although_argo_passes_texts():
    longer = Step(duration=Amount(Fixed(1.0), "seconds"), **WORK)
    spec = dag(task("a"), arguments={"parameters": [{"name": "seconds", "value": "1"}]})
    records = simulated(spec, steps=(longer,), values={"seconds": 40})
    (running,) = (each for each in records if isinstance(each, Span) and each.phase == "running")
    assert running.ended_at - running.started_at == 40 * 10**9


def test_the_same_seed_gives_the_same_records():
    spec = recorded("plain-with-items")["spec"]
    assert simulated(spec, runs=2) == simulated(spec, runs=2)


def test_runs_that_have_not_ended_stay_open():
    package = yaml.safe_dump(manifest(dag(task("a")))).encode()
    arrivals = [Arrival(0.0, Scenario("0", "r", {}, {}))]
    forever = Step(duration=fixed(500.0), **WORK)
    records = list(simulate_compactly(profile(steps=(forever,)), package, arrivals, drain_s=100.0))
    (run,) = (each for each in records if isinstance(each, Span))
    assert run.ended_at is None
    (pod,) = (each for each in records if isinstance(each, PodSpans))
    assert pod.task == "a"


def test_what_can_not_be_run_is_refused_by_its_field():
    with pytest.raises(ConfigError, match=r"templates\[1\].*unheard"):
        simulated(dag(task("a")) | {"templates": [{"name": "main", "dag": {"tasks": []}}, {"name": "x", "unheard": 1}]})
