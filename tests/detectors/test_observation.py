"""Findings about the observation itself, where another load than ours was observed."""

from dataclasses import replace

from harness.detectors import censoring, diagnose, observer_gaps
from harness.model.phases import GAP, WRONG_CLUSTER
from tests.support.injected.loads import steady
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


def test_pods_of_another_cluster_are_a_separate_finding(tmp_path):
    story = Story(intended=0)
    story.event(12.0, "Observer", "kubernetes pods", WRONG_CLUSTER, "4 runs ended well, and none of the pods …")
    (finding,) = observer_gaps.detect(observed(story, tmp_path, 9.0))
    assert finding.title.startswith("The observed pods do not belong to the runs")
    assert "--kube-context" in finding.fix


def test_what_a_cluster_did_not_show_is_not_called_missing_access(tmp_path):
    def of(story):
        silent = {each.name: each for each in diagnose(story.timeline(tmp_path)).not_judged}
        return silent["image-missing"].reason, silent["image-missing"].lacked[0].sources

    blind, story = Story(), Story()
    for each in (blind, story):
        each.run("r0", 0.0, 9.0)
    assert of(blind) == (
        "no pod events were observed: no access to Kubernetes, or no permission to list events", "Kubernetes access"
    )  # fmt: skip
    story.node("n1", 0.0, 0.0)
    assert of(story) == (
        "no pod events were observed: there were none, or no permission to list events", "records from Kubernetes"
    )  # fmt: skip


def test_findings_that_rest_on_pods_say_what_was_not_seen(tmp_path):
    story = steady(40, pull=9.0)
    story.event(20.0, "Observer", "kubernetes pods", GAP, "unreachable for 12 s: timed out")
    finding = next(each for each in diagnose(story.timeline(tmp_path)).findings if each.name == "image-pull")
    assert finding.evidence[-1].statement == (
        "not seen: what happened in 1 gap of the observation (kubernetes pods: unreachable for 12 s: timed out)"
    )
