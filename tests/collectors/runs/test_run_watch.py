"""Runs that are shown as objects: each start and end once, from the watches alone."""

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.runs.run_watch import RunWatch, open_collector
from harness.collectors.source_health import UnreachableError
from harness.model.phases import RUN, TASK
from harness.model.plan import Plan
from harness.model.records import Event, Sample, Span
from harness.store import RunFolder
from harness.targets import argo
from tests.support.argo_platform import recorded
from tests.support.observations import observation

NOW = 1_795_352_500 * 10**9


@pytest.fixture
def observed(tmp_path):
    plan = Plan("argo", "http://h", {}, 1, 0, False, {"namespace": "kubeflow"}, started_at=NOW - 200 * 10**9, id="t1")
    folder = RunFolder.create(tmp_path, "run", exactly=True)
    folder.write_plan(plan)
    with folder.recorder() as recorder:
        yield observation(folder, Journal(recorder, now=lambda: NOW), plan=plan, target=argo.from_plan(plan), settings=ObserverSettings(host="http://h"))  # fmt: skip


class Watch(RunWatch):
    """With a clock that a test sets."""

    def __init__(self, observation):
        self.at_s = 0.0
        super().__init__(observation, observation.target, object(), clock=lambda: self.at_s)


def bare(workflow, **labels):
    metadata = {key: value for key, value in workflow["metadata"].items() if key != "labels"}
    return {"metadata": {**metadata, "labels": labels}}


def ends(observation):
    return [(each.object, each.reason) for each in observation.folder.records(Event) if each.kind == "Run"]


def test_a_run_is_recorded_with_its_end_and_its_tasks_once(observed):
    watch, workflow = Watch(observed), recorded("plain-one-fails")
    watch.see_going("ADDED", bare(workflow))
    watch.see_going("MODIFIED", bare(workflow))
    watch.see_going("DELETED", bare(workflow))  # it has left this selection
    for change in ("ADDED", "MODIFIED", "ADDED"):
        watch.see_over(change, workflow)
    assert ends(observed) == [("plain-one-fails", "FAILED")]
    spans = list(observed.folder.records(Span))
    assert [each.phase for each in spans] == [RUN, RUN, TASK, TASK, TASK]
    assert [each.task for each in spans if each.phase == TASK] == ["a", "b", "c"]
    (whole,) = [each for each in spans if each.phase == RUN and each.ended_at]
    assert (whole.ended_at - whole.started_at) / 1e9 == 20.0
    tasks = [(each.object, each.reason) for each in observed.folder.records(Event) if each.kind == "Task"]
    assert tasks == [("b", "FAILED"), ("c", "SKIPPED")]
    watch.at_s = 60.0
    watch.look()
    assert ends(observed) == [("plain-one-fails", "FAILED")]


def test_the_result_of_memoization_is_told_as_cached(observed):
    Watch(observed).see_over("ADDED", recorded("plain-memo-2"))
    assert [each.reason for each in observed.folder.records(Event) if each.kind == "Task"] == ["CACHED"]


def test_a_run_that_is_deleted_before_its_end_is_given_up_after_a_while(observed):
    watch, workflow = Watch(observed), recorded("plain-steps")
    watch.see_going("ADDED", bare(workflow))
    watch.see_going("DELETED", bare(workflow))
    watch.look()
    assert ends(observed) == []
    watch.at_s = 11.0
    watch.look()
    assert ends(observed) == [("plain-steps", "REMOVED")]
    assert watch._known.counts() == {}


def test_runs_from_before_the_test_are_not_counted(observed):
    old = recorded("plain-steps")
    old["metadata"]["creationTimestamp"] = "2026-11-22T12:00:00Z"
    Watch(observed).see_over("ADDED", old)
    assert ends(observed) == []


def test_offloaded_nodes_are_noted_once(observed):
    watch = Watch(observed)
    for name in ("plain-steps", "plain-dag"):
        workflow = recorded(name)
        workflow["status"] = {"phase": "Succeeded", "offloadNodeStatusVersion": "fnv:1"}
        watch.see_over("ADDED", workflow)
    noted = [each.message for each in observed.folder.records(Event) if each.kind == "Observer"]
    assert len(noted) == 1
    assert "nodeStatusOffLoad" in noted[0]
    assert len(ends(observed)) == 2


def test_other_collectors_learn_which_runs_are_the_tests(observed):
    watch = Watch(observed)
    watch.see_going("ADDED", bare(recorded("plain-steps")))
    watch.see_over("ADDED", recorded("plain-dag"))
    watch.look()
    assert "plain-steps" in observed.activity.runs
    assert "plain-dag" in observed.activity.runs
    assert "of-another-test" not in observed.activity.runs


def test_ends_are_known_until_the_last_look_at_which_both_watches_were_current(observed):
    watch = Watch(observed)
    watch.look()
    assert watch._counted_at is None, "nothing was listed yet"
    for each in watch._reflectors:
        each.listed = each.looked = True
    watch.look()
    assert watch.live().ends_at == NOW
    watch._reflectors[1]._health.failed(UnreachableError("connection refused"))
    watch._counted_at = NOW - 1
    watch.look()
    assert watch.live().ends_at == NOW - 1


def test_only_this_tests_runs_are_watched_those_that_have_ended_completely(observed):
    watch = Watch(observed)
    queries = [(each._query["labelSelector"], each._metadata_only) for each in watch._reflectors]
    completed = "workflows.argoproj.io/completed"
    assert queries == [
        (f"pipeswarm.io/test=t1,{completed}!=true", True), (f"pipeswarm.io/test=t1,{completed}=true", False),
    ]  # fmt: skip


def test_there_is_nothing_to_watch_of_a_platform_that_lists_its_runs(observed):
    class Listing:
        pass

    assert open_collector(observed) is not None
    lists = observation(observed.folder, observed.journal, plan=observed.plan, target=Listing(), settings=observed.settings)  # fmt: skip
    assert open_collector(lists) is None
    assert not list(observed.folder.records(Sample))
