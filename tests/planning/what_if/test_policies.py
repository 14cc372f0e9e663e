"""Policies of sharing as changes of a recorded test with tenants: predictions against the changed platform, ranking."""

import json

import pytest

from harness.cli import main
from harness.model.errors import ConfigError
from harness.planning.identify import identify, measures_of, recorded_test
from harness.planning.sweeps import Workers
from harness.planning.timelines import timeline_of
from harness.planning.what_if import Scenario, parse_change, predict
from harness.simulator.profile import Amounts
from harness.simulator.profile.file import load_profile
from harness.store import RunFolder

# Few large machines, so that pods wait for them; team-a sends three times as much as team-b.
PLATFORM = """
tenants: [{namespace: team-a, OF_A}, {namespace: team-b, OF_B}]
pools: [{name: steps, cpu: 8, memory: 32Gi, initial: 2, min: 2, max: 2, price: 0.2}]
kubelet: {pull_bytes_per_s: 1Gi, image_bytes: 10Mi, start: {uniform: [0.4s, 0.6s]}}
controller: {qps: 50, burst: 100, requeue_s: 1s, settle_s: 50ms, namespace_parallelism: LIMIT}
api: {qps: 50, burst: 100}
steps: [{duration: {uniform: [8s, 16s]}, requests_cpu: 1, cpu: 900m}]
QUEUES
"""
QUEUED = "queues: [{name: team-a, tenants: [team-a], cohort: all, nominal: {cpu: 6}}, {name: team-b, tenants: [team-b], cohort: all, nominal: {cpu: 6}}]"
AS_QUEUED = "queue.team-a.cpu=6,queue.team-a.cohort=all,queue.team-b.cpu=6,queue.team-b.cohort=all"


def run(place, name, of_a="priority: 0", of_b="priority: 0", limit=0, queues=""):
    text = PLATFORM
    for key, value in {"OF_A": of_a, "OF_B": of_b, "LIMIT": str(limit), "QUEUES": queues}.items():
        text = text.replace(key, value)
    (place / f"{name}.yaml").write_text(text)
    (place / "teams.csv").write_text(
        "id,scenario_name,tenant\n1,small,team-a\n2,small,team-a\n3,small,team-a\n4,small,team-b\n"
    )
    load = ("--schedule", "burst", "--runs", "40", "--scenarios", str(place / "teams.csv"), "--runs-dir", str(place))
    options = ("--profile", str(place / f"{name}.yaml"), *load, "--run-name", name, "--no-report", "--quiet")
    assert main(["simulate", "run", *options]) == 0
    return place / name


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("policies")


@pytest.fixture(scope="module")
def recorded(place):
    path = run(place, "recorded")
    timeline = timeline_of(path)
    test = recorded_test(RunFolder.open(path), timeline)
    return identify(timeline, test), test


TRUTHS = {
    "tenant.team-b.priority=100": {"of_b": "priority: 100"},
    "tenant.team-a.quota.cpu=6": {"of_a": "quota: {cpu: 6}"},
    "quota.cpu=6": {"of_a": "quota: {cpu: 6}", "of_b": "quota: {cpu: 6}"},
    "controller.namespace_parallelism=4": {"limit": 4},
    AS_QUEUED: {"queues": QUEUED},
}
LIMITS = {
    "quota.cpu=2": "quota",
    "parallelism=3": "parallelism",
    "controller.namespace_parallelism=2": "parallelism",
    "queue.team-a.cpu=2,queue.team-b.cpu=2": "ClusterQueue",
    "nodes=1": "nodes",
    "nodes=40,controller.requeue_s=30s": "controller",
}


@pytest.fixture(scope="module")
def predictions(recorded):
    """By change; together, as they share the simulations of the platform as it is."""
    found, test = recorded
    changes = [parse_change(each, Scenario(found.profile, test), found.images) for each in (*TRUTHS, *LIMITS)]
    return dict(zip((*TRUTHS, *LIMITS), predict(found, test, changes, Workers(1)).predictions, strict=True))


@pytest.fixture
def today(recorded):
    return Scenario(recorded[0].profile, recorded[1])


def test_the_model_reproduces_each_tenant(recorded):
    found, _ = recorded
    assert not found.reproduction.misfits
    for tenant, was in found.recorded.tenants.items():
        assert found.simulated.tenants[tenant].mean_s == pytest.approx(was.mean_s, rel=0.1), tenant
    assert found.simulated.fairness == pytest.approx(found.recorded.fairness, abs=0.03)


@pytest.mark.parametrize("change", TRUTHS)
def test_a_policy_does_to_each_tenant_what_the_changed_platform_does(predictions, place, change):
    prediction = predictions[change]
    really = measures_of(timeline_of(run(place, "".join(filter(str.isalnum, change))[:40], **TRUTHS[change])))
    for tenant, each in really.tenants.items():
        assert prediction.tenants[tenant]["mean_s"].value == pytest.approx(each.mean_s, rel=0.15), tenant
    assert prediction.fairness[0] == pytest.approx(really.fairness, abs=0.06)


@pytest.mark.parametrize("change", LIMITS)
def test_it_names_the_one_limit_that_binds_then(predictions, change):
    assert predictions[change].binds == LIMITS[change]


def test_the_priorities_of_tenants_are_read_from_their_pods(place):
    path = run(place, "ranked", of_b="priority: 100")
    timeline = timeline_of(path)
    found = identify(timeline, recorded_test(RunFolder.open(path), timeline))
    assert {each.namespace: each.priority for each in found.profile.tenants} == {"team-a": 0, "team-b": 100}
    assert "tenant.team-b.priority: 100 (pods' specifications)" in map(str, found.settings)
    assert not found.reproduction.misfits
    for tenant, was in found.recorded.tenants.items():
        assert found.simulated.tenants[tenant].mean_s == pytest.approx(was.mean_s, rel=0.1), tenant


def test_queues_that_a_test_does_not_show_are_given_with_the_profile(place):
    path = run(
        place,
        "queued",
        of_b="priority: 100",
        queues=QUEUED.replace("nominal: {cpu: 6}}]", "nominal: {cpu: 6}, reclaim: Any}]"),
    )
    timeline = timeline_of(path)
    test = recorded_test(RunFolder.open(path), timeline)
    assert "waiting for a node" in [each.name for each in identify(timeline, test).reproduction.misfits]
    found = identify(timeline, test, load_profile(str(place / "queued.yaml")))
    assert not found.reproduction.misfits
    assert [each.priority for each in found.profile.tenants] == [0, 100]
    assert len(found.profile.queues) == 2


def test_policies_are_ranked_with_each_tenants_times(recorded, place, capsys):
    policies = ("tenant.team-b.priority=100", "tenant.team-b.quota.cpu=1", "parallelism=8")
    sets = [part for each in policies for part in ("--set", each)]
    assert main(["what-if", str(place / "recorded"), *sets, "--rank", "fairness", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["predictions"]
    fairness = [each["fairness"] for each in found]
    assert fairness == sorted(fairness, reverse=True)
    means = {each["name"]: each["tenants"]["team-b"]["mean_s"]["value"] for each in found}
    assert means["tenant.team-b.priority=100"] < means["parallelism=8"] < means["tenant.team-b.quota.cpu=1"]
    assert main(["what-if", str(place / "recorded"), "--set", AS_QUEUED, "--rank", "mean"]) == 0
    out = capsys.readouterr().out
    assert f": {AS_QUEUED.split(',', maxsplit=1)[0]} + queue" in out
    assert "fairness" in out
    assert "team-b mean" in out


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("quota.cpu=4", lambda p: {each.quota.cpu for each in p.tenants} == {4.0}),
        ("tenant.team-a.quota.pods=4", lambda p: [each.quota.pods for each in p.tenants] == [4, 0]),
        ("tenant.team-a.priority=7", lambda p: [each.priority for each in p.tenants] == [7, 0]),
        (
            "queue.team-a.cpu=4",
            lambda p: p.queues[0].nominal == Amounts(cpu=4.0) and p.queues[0].tenants == ("team-a",),
        ),
        ("queue.team-a.cohort=all,queue.team-a.borrowing.cpu=2", lambda p: p.queues[0].borrowing == Amounts(cpu=2.0)),
        ("queue.team-a.reclaim=Any", lambda p: p.queues[0].reclaim == "Any"),
        ("step.train.priority=9", lambda p: p.priority_classes[p.steps[0].priority_class] == 9),
        ("preemption=false", lambda p: not p.scheduler.preemption),
        ("packing=true", lambda p: p.scheduler.packing),
        ("ttl=10m", lambda p: p.controller.ttl_s == 600),
    ],
)
def test_a_policy_changes_what_it_names(recorded, today, text, shows):
    assert shows(parse_change(text, today, recorded[0].images).apply(today).profile)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("tenant.team-c.priority=7", "no setting 'tenant.team-c.priority'", "did you mean 'tenant.team-"),
        ("queue.team-a.cpu=much", "much", ""),
        ("queue.team-a.cpus=4", "no setting 'queue.team-a.cpus'", "did you mean 'queue.team-a.cpu'"),
        ("queue.team-a.reclaim=always", "always", "LowerPriority"),
        ("queue.team-a.borrowing.cpu=2", "neither borrows nor lends", "name one"),
        ("step.trian.priority=9", "no setting 'step.trian.priority'", ""),
        ("workflow.parallelism=2", "no setting 'workflow.parallelism'", ""),
    ],
)
def test_an_impossible_policy_says_what_to_write(recorded, today, text, message, hint):
    with pytest.raises(ConfigError) as caught:
        parse_change(text, today, recorded[0].images)
    assert message in caught.value.message
    assert hint in caught.value.hint


WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: work-}
spec:
  entrypoint: main
  synchronization: {semaphores: [{configMapKeyRef: {name: limits, key: gpu}}]}
  templates:
    - name: main
      container: {image: busybox, command: [work], resources: {requests: {cpu: 500m}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {gpu: "2"}
"""


@pytest.fixture(scope="module")
def of_argo(place):
    (place / "workflow.yaml").write_text(WORKFLOW)
    load = ("--schedule", "burst", "--runs", "20", "--runs-dir", str(place), "--run-name", "argo")
    options = ("--workflow", str(place / "workflow.yaml"), *load, "--no-report", "--quiet")
    assert main(["simulate", "run", *options]) == 0
    timeline = timeline_of(place / "argo")
    test = recorded_test(RunFolder.open(place / "argo"), timeline)
    return identify(timeline, test), test


@pytest.mark.parametrize(("change", "times"), [("configmap.limits.gpu=10", 0.5), ("configmap.limits.gpu=1", 1.5)])
def test_a_semaphores_limit_is_a_setting(of_argo, change, times):
    found, test = of_argo
    assert not found.reproduction.misfits
    changed = parse_change(change, Scenario(found.profile, test), found.images)
    (prediction,) = predict(found, test, [changed], Workers(1)).predictions
    makespan = prediction.figures["makespan_s"]
    assert (makespan.value < times * makespan.now) == (times < 1)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("workflow.synchronization.mutexes=[{name: gpu}]", b"mutexes:"),
        ("workflow.podGC.strategy=OnPodCompletion", b"strategy: OnPodCompletion"),
        ("workflow.ttlStrategy.secondsAfterCompletion=60", b"secondsAfterCompletion: 60"),
        ("workflow.priority=5", b"priority: 5"),
    ],
)
def test_a_workflows_own_field_is_a_setting(of_argo, text, field):
    found, test = of_argo
    today = Scenario(found.profile, test)
    assert field in parse_change(text, today, found.images).apply(today).test.package


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workflow.paralelism=5", "paralelism"),
        ("workflow.metrics.prometheus=[]", "no bearing"),
        ("configmap.limits.cpu=5", "no ConfigMap 'limits' with 'cpu'"),
        ("workflow.entrypoint.name=x", "no such field"),
    ],
)
def test_an_impossible_field_says_so(of_argo, text, message):
    found, test = of_argo
    with pytest.raises(ConfigError, match=message):
        parse_change(text, Scenario(found.profile, test), found.images)
