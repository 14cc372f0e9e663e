"""Findings about the observation itself, where another load than ours was observed."""

from dataclasses import replace

import pytest

from harness.analysis.validity import validity
from harness.detectors import diagnose
from harness.detectors.capability import Capability
from harness.detectors.doubts import censoring, observer_gaps
from harness.model import Event, Sample, Span
from harness.model.phases import (
    GAP,
    INFERRED,
    LAUNCHER_ERROR,
    NOT_REACHABLE,
    OF_TASK,
    PULLING,
    REMOVED,
    RUN,
    RUNNING,
    STARTING,
    STORING,
    UPLOAD_SECONDS,
    WRONG_CLUSTER,
)
from tests.support.injected.loads import steady
from tests.support.injection.case import simulated
from tests.support.injection.cases import CASES
from tests.support.injection.seen import as_read, seen
from tests.support.timelines import Story


def observed(story: Story, tmp_path, over: float | None):
    for k in range(4):
        story.run(f"r{k}", float(k), over if k else 9.0)
    return story.timeline(tmp_path)


def test_another_loads_runs_in_flight_are_not_attributed_to_our_drain(tmp_path):
    (finding,) = censoring.detect(observed(Story(intended=0), tmp_path, None))
    assert finding.title == "3 of the observed runs were still in flight when observation ended"
    assert "--for" in finding.fix
    assert "--drain" not in finding.fix
    (ours,) = censoring.detect(
        replace(timeline := observed(Story(intended=4), tmp_path, None), plan=replace(timeline.plan, intended=4))
    )
    assert "--drain" in ours.fix


def test_runs_that_the_platform_removed_are_counted(tmp_path):
    story = Story(intended=4)
    story.event(12.0, "Run", "r1", REMOVED, "the platform removed it before its end was seen")
    timeline = replace(found := observed(story, tmp_path, None), plan=replace(found.plan, intended=4))
    (finding,) = censoring.detect(timeline)
    assert "the platform removed 1 of them before their end was seen" in [each.statement for each in finding.evidence]
    assert "RETENTION" in finding.fix
    (reason,) = (each for each in validity(timeline).reasons if "had not finished" in each)
    assert "(1 were removed before)" in reason


def test_pods_of_another_cluster_are_a_separate_finding(tmp_path):
    story = Story(intended=0)
    story.event(12.0, "Observer", "kubernetes pods", WRONG_CLUSTER, "4 runs ended well, and none of the pods …")
    (finding,) = observer_gaps.detect(observed(story, tmp_path, 9.0))
    assert finding.title.startswith("The observed pods do not belong to the runs")
    assert "--kube-context" in finding.fix


def test_inferred_runs_are_said_to_be_inferred(tmp_path):
    story = Story(intended=0)
    story.event(12.0, "Observer", "runs", INFERRED, "4 runs of 9 are inferred from their pods")
    (finding,) = observer_gaps.detect(observed(story, tmp_path, 9.0))
    assert finding.title.startswith("Runs are inferred from their pods")
    assert finding.evidence[0].statement == "4 runs of 9 are inferred from their pods"


def test_what_a_cluster_did_not_show_is_not_called_missing_access(tmp_path):
    def of(story):
        silent = {each.name: each for each in diagnose(story.timeline(tmp_path)).not_judged}
        return silent["image-pull"].reason, silent["image-pull"].lacked[0].sources

    blind, story = Story(), Story()
    for each in (blind, story):
        each.run("r0", 0.0, 9.0)
    assert of(blind) == (
        "no pods were observed: no access to Kubernetes, or not to the runs' namespace", "Kubernetes access"
    )  # fmt: skip
    story.node("n1", 0.0, 0.0)
    assert of(story) == (
        "no pods were observed: there were none, or not to the runs' namespace", "records from Kubernetes"
    )  # fmt: skip


def test_findings_that_rest_on_pods_say_what_was_not_seen(tmp_path):
    story = steady(40, pull=9.0)
    story.event(20.0, "Observer", "kubernetes pods", GAP, "unreachable for 12 s: timed out")
    finding = next(each for each in diagnose(story.timeline(tmp_path)).findings if each.name == "image-pull")
    assert finding.evidence[-1].statement == (
        "not seen: what happened in 1 gap of the observation (kubernetes pods: unreachable for 12 s: timed out)"
    )


def test_pulls_are_not_judged_where_events_may_not_be_read(tmp_path):
    story = steady(40, pull=9.0)
    story.records = list(seen(story.records, without=frozenset({"pod events"}), whole=False))
    diagnosis = diagnose(story.timeline(tmp_path))
    assert "image-pull" not in {each.name for each in diagnosis.findings}
    (reason,) = (each.reason for each in diagnosis.not_judged if each.name == "image-pull")
    assert "without pod events pulls can't be told from the rest of a start" in reason


def test_slow_starts_on_new_nodes_are_likely_pulls_where_events_may_not_be_read():
    case = replace(CASES["image-pull"], without=frozenset({"pod events"}))
    finding = next(each for each in diagnose(simulated(case, 1.0, 1)).findings if each.name == "image-pull")
    surely = next(
        each for each in diagnose(simulated(CASES["image-pull"], 1.0, 1)).findings if each.name == "image-pull"
    )
    assert finding.title.startswith("Pods start slowly on new nodes, as if they pulled images: ")
    assert finding.confidence < surely.confidence
    assert finding.severity == pytest.approx(surely.severity, abs=0.03)
    assert "no pod events were observed" in finding.evidence[0].statement


def test_where_events_may_not_be_read_states_of_containers_say_that_an_image_is_missing():
    pod = "r0-train"
    pull = Span("r0", pod, PULLING, 4, None, task="train", source="kubernetes")
    failed = Event(5, "Pod", pod, "Failed", 'Failed to pull image "a:1": not found', "kubernetes", "r0")
    waits = Event(5, "Pod", pod, "FailedScheduling", "0/3 nodes are available", "kubernetes", "r0")
    done = replace(pull, step="r1-train", ended_at=7)
    starts = replace(done, phase=STARTING, started_at=7, ended_at=8)
    records = [waits, done, starts, pull, failed]
    refused, whole, start, stuck = seen(records, without=frozenset({"pod events"}), whole=False)
    assert (refused.object, refused.reason) == ("kubernetes events", NOT_REACHABLE)
    assert whole == replace(starts, started_at=4)
    assert start == replace(pull, phase=STARTING)
    assert stuck == replace(failed, reason="ErrImagePull")


def test_where_logs_may_not_be_read_uploads_are_part_of_running():
    run = Span("r0", "a", RUNNING, 2, 9, task="train", source="kubernetes")
    stored = replace(run, phase=STORING, started_at=9, ended_at=12)
    sample = Sample(UPLOAD_SECONDS, 11, 2e-9, {"task": "train", "pod": "a"})
    failed = Event(12, "Pod", "b", LAUNCHER_ERROR, "no space left", "kubernetes", "r0")
    other, lost = replace(run, step="b"), replace(stored, step="b")
    rest = seen([run, stored, sample, other, lost, failed], without=frozenset({"step logs"}), whole=False)
    assert [*rest] == [replace(run, ended_at=11), replace(stored, started_at=11), replace(other, ended_at=12)]


def test_drawn_tests_show_refusals_as_an_observer_reads_them_from_one_workflow_now_and_then():
    """It reads those without a living pod first: ``r1``, whose pod ``b`` is refused from 5 s to 60 s."""
    second = 10**9
    busy = Span("r0", "a", RUNNING, 0, 100 * second, task="train", source="simulator")
    came = replace(busy, run="r1", step="b", started_at=60 * second)
    words = 'pods "b" is forbidden: exceeded quota: tight'
    refused = [Event(at * second, OF_TASK, "train", "PENDING", words, "simulator", "r1") for at in (5, 15, 25, 35)]
    runs = [Span(run, "", RUN, 0, 100 * second, source="simulator") for run in ("r0", "r1")]
    sample = Sample("any", 100 * second, 1.0)
    records = [busy, came, *runs, sample]
    rest = [*as_read([*records, *refused])]
    assert rest[: len(records)] == records
    assert [each.at // second for each in rest[len(records) :]] == [10, 20, 30, 40, 50]
    assert [*as_read(records)] == records


@pytest.mark.parametrize(("said", "observed"), [(GAP, True), (NOT_REACHABLE, False)])
def test_failed_containers_are_no_events_where_those_may_not_be_read(said, observed, tmp_path):
    story = Story()
    story.run("r0", 0.0, 30.0)
    story.event(9.0, "Observer", "kubernetes events", said, "403 Forbidden")
    story.event(20.0, "Pod", "r0-train", "OOMKilled", "container main ended with exit code 137", run="r0")
    assert Capability.POD_EVENTS.observed(story.timeline(tmp_path)) is observed
