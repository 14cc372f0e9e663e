"""What others do on the platform and the cluster is told from this test's runs, and not judged."""

from dataclasses import replace

import pandas as pd
import pytest

from harness.analysis.timeline import Timeline
from harness.analysis.timeline.joining import runs_of_events
from harness.analysis.waits.tasks import tasks
from harness.detectors import diagnose
from harness.model.phases import PULLING, RUNNING, STORING, UNSCHEDULABLE
from harness.model.plan import ObserverPlan
from harness.store.tables import load
from tests.support.injected.loads import steady
from tests.support.timelines import Story

OURS, THEIRS = "run-0000", "theirs"


def story(*, pods: bool = True) -> Story:
    told = Story(intended=1)
    told.run(told.submit(0), 0.0, 9.0)
    if pods:
        told.pod(OURS, "train", "node-0", (RUNNING, 1.0, 8.0))
    told.pod(THEIRS, "train", "node-0", (UNSCHEDULABLE, 1.0, 3.0), (RUNNING, 3.0, 7.0))
    return told


def timeline(told: Story, tmp_path, namespace: str = "kubeflow") -> Timeline:
    """The test's timeline when its runs are in this namespace, and the platform in kubeflow."""
    folder = told.write(tmp_path)
    options = {**told.plan().target_options, "namespace": namespace}
    plan = replace(told.plan(), target_options=options, observer=ObserverPlan(platform_namespaces=("kubeflow",)))
    return Timeline.from_frames(plan, load(folder))


def test_pods_of_other_runs_are_apart(tmp_path):
    found = timeline(story(), tmp_path)
    assert set(found.names.take(found.pods["pod"].to_numpy())) == {f"{OURS}-train"}
    assert set(found.names.take(found.others_pods["pod"].to_numpy())) == {f"{THEIRS}-train"}
    assert len(found.stretches(UNSCHEDULABLE)) == 0
    assert tasks(found).pods.tolist() == [1]


@pytest.mark.parametrize(
    ("kind", "name", "more", "ours"),
    [
        ("Pod", f"{OURS}-train", {"run": OURS, "namespace": "team-a"}, True),
        ("Pod", f"{OURS}-train", {"namespace": "team-a"}, True),  # an event that names no run
        ("Pod", f"{THEIRS}-train", {"run": THEIRS, "namespace": "team-a"}, False),
        ("Pod", "ml-pipeline-7f", {"namespace": "kubeflow"}, True),
        ("Pod", "cluster-autoscaler-0", {"namespace": "kube-system"}, True),
        ("Pod", "notebook-0", {"namespace": "team-a"}, False),
        ("Pod", "shop-0", {"namespace": "shop"}, False),
        ("Deployment", "shop", {"namespace": "shop"}, False),
        ("Workflow", "training-x", {"namespace": "team-a"}, True),
        ("Workflow", "training-y", {"run": THEIRS, "namespace": "team-a"}, False),
        ("Node", "node-0", {}, True),
        ("Run", THEIRS, {"run": THEIRS}, False),
        ("Observer", "kubernetes pods", {}, True),
        ("Pod", "recorded-by-an-older-version", {}, True),
    ],
)
def test_events_of_others_are_left_out(tmp_path, kind, name, more, ours):
    told = story()
    told.event(4.0, kind, name, "Something", **more)
    found = timeline(told, tmp_path, "team-a")
    assert (name in set(found.events["object"])) is ours


def test_the_runs_namespace_is_found_where_none_was_given(tmp_path):
    told = story()
    told.event(4.0, "Pod", f"{OURS}-train", "Started", run=OURS, namespace="team-b")
    told.event(4.0, "Workflow", "training-x", "Something", namespace="team-b")
    told.event(4.0, "Workflow", "training-y", "Something", namespace="team-c")
    found = timeline(told, tmp_path, namespace="")
    assert found.namespace == "team-b"
    assert [name in set(found.events["object"]) for name in ("training-x", "training-y")] == [True, False]
    assert timeline(story(), tmp_path / "silent", namespace="").namespace == "kubeflow"


def test_what_happens_in_any_tenants_namespace_is_the_tests(tmp_path):
    told = story()
    for namespace in ("team-a", "team-b", "team-c"):
        told.event(4.0, "Workflow", f"training-{namespace}", "Something", namespace=namespace)
    folder = told.write(tmp_path)
    plan = replace(told.plan(), target_options={"namespace": "", "tenants": "team-a;team-b"})
    found = Timeline.from_frames(plan, load(folder))
    happened = {each for each in found.events["object"] if each.startswith("training-")}
    assert happened == {"training-team-a", "training-team-b"}


def test_without_observed_pods_those_in_the_runs_namespace_count_as_the_tests(tmp_path):
    told = story(pods=False)
    told.event(4.0, "Pod", "train-x", "FailedScheduling", namespace="team-a")
    told.event(4.0, "Pod", "shop-0", "FailedScheduling", namespace="shop")
    assert {"train-x", "shop-0"} & set(timeline(told, tmp_path, "team-a").events["object"]) == {"train-x"}


def test_a_decision_about_nodes_counts_whichever_pod_it_was_made_for(tmp_path):
    told = story()
    told.event(2.0, "Pod", f"{THEIRS}-train", "TriggeredScaleUp", run=THEIRS)
    assert "TriggeredScaleUp" in set(timeline(told, tmp_path).events["reason"])


def test_trouble_of_others_adds_no_finding(tmp_path):
    healthy = steady(60)
    expected = diagnose(healthy.timeline(tmp_path / "alone"))
    troubled = steady(60)
    for k in range(40):
        pod = troubled.pod(
            f"{THEIRS}-{k}", "train", "node-0",
            (UNSCHEDULABLE, 2.0 * k, 2.0 * k + 30), (PULLING, 2.0 * k + 30, 2.0 * k + 60),
            (RUNNING, 2.0 * k + 60, 2.0 * k + 61), (STORING, 2.0 * k + 61, 2.0 * k + 99),
        )  # fmt: skip
        troubled.run(f"{THEIRS}-{k}", 2.0 * k, 100.0, "FAILED", "Error 1040: Too many connections")
        for reason, message in (
            ("OOMKilled", "container main ended with exit code 137"),
            ("Evicted", "The node was low on resource: memory."),
            ("FailedScheduling", "0/6 nodes are available: 6 Insufficient cpu."),
            ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
            ("ErrImagePull", "failed to pull image"),
            ("FailedCreate", 'pods "x" is forbidden: exceeded quota: team, requested: pods=1'),
        ):
            troubled.event(3.0 * k, "Pod", pod, reason, message, run=f"{THEIRS}-{k}", type="Warning")
            troubled.event(3.0 * k, "Pod", f"shop-{k}", reason, message, namespace="shop", type="Warning")
    found = diagnose(troubled.timeline(tmp_path / "beside"))
    assert found.findings == expected.findings
    assert found.validity == expected.validity


def test_the_platforms_own_pods_are_judged(tmp_path):
    told = steady(60)
    told.event(40.0, "Pod", "ml-pipeline-7f", "OOMKilled", "exit code 137", namespace="kubeflow", type="Warning")
    (finding,) = [each for each in diagnose(told.timeline(tmp_path)).findings if each.name == "oom"]
    assert "ml-pipeline-7f" in finding.title


@pytest.mark.parametrize(("kind", "name", "run"), [
    ("ReplicaSet", "1-wide-worker-6b6b", "1-wide"),
    ("ReplicaSet", "1-wide-2-worker-6b6b", "1-wide-2"),
    ("ReplicaSet", "1-wide", ""),
    ("ReplicaSet", "1-wider-6b6b", ""),
    ("ReplicaSet", None, ""),
    ("Pod", "1-wide-worker-6b6b-x", ""),
])  # fmt: skip
def test_a_replica_set_is_the_runs_after_which_it_is_called(kind, name, run):
    events = pd.DataFrame({"kind": [kind, "Pod"], "object": [name, "other"], "run": [None, "other"]})
    assert runs_of_events(events, ["1-wide", "1-wide-2", "", None]).tolist() == [run, "other"]


def test_no_text_of_an_event_is_missing(tmp_path):
    told = Story(intended=1)
    told.event(1.0, "Pod", "a", "Error", None, type=None, namespace=None)
    events = told.timeline(tmp_path).events
    assert events.loc[events["object"] == "a", ["message", "type", "namespace", "run"]].to_numpy().tolist() == [
        ["", "Normal", "", ""]
    ]
    assert not events.isna().any(axis=None)
