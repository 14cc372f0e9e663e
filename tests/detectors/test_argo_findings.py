"""What holds Argo's workflows back is told apart, and is not found where nothing does."""

import pytest

from harness.detectors import diagnose
from harness.detectors.controller import finished_workflows, parallelism_cap, workflows_postponed
from harness.detectors.detector import CannotJudgeError
from tests.support.injected.control_plane import cached, db, piling_up, waiting
from tests.support.injected.loads import capped, steady

MUTEX = "Waiting for team-a/Mutex/shared lock. Lock status: 0/1"
SEMAPHORE = "Waiting for team-a/ConfigMap/limits/gpu lock. Lock status: 0/4"
POSTPONED = "Workflow processing has been postponed because too many workflows are already running"
QUOTA = "pods is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=20, limited: requests.cpu=20"


@pytest.mark.parametrize(
    ("story", "found"),
    [
        (lambda: waiting("argo", MUTEX), "lock-wait"),
        (lambda: waiting("argo", SEMAPHORE), "lock-wait"),
        (lambda: waiting("argo", POSTPONED), "workflows-postponed"),
        (lambda: db("workflow is longer than maximum allowed size. Size=1600000"), "workflow-too-large"),
        (lambda: db("Request entity too large: limit is 3145728"), "workflow-too-large"),
        (lambda: db("etcdserver: request is too large"), "workflow-too-large"),
        (lambda: db("etcdserver: mvcc: database space exceeded"), "etcd-full"),
        (lambda: db("Error 1040: Too many connections"), "db-connections"),
        (lambda: db("Error 1114: The table 'run_details' is full"), "db-full"),
    ],
)
def test_each_limit_has_its_own_finding(tmp_path, story, found):
    assert diagnose(story().timeline(tmp_path)).findings[0].name == found


def test_nothing_is_missing_that_workflows_never_show(tmp_path):
    """No workflow is an execution of a service, and no step's log is that of KFP's launcher."""
    diagnosis = diagnose(waiting("argo", MUTEX).timeline(tmp_path))
    lacked = {lack.observation for each in (*diagnosis.not_judged, *diagnosis.judged_with_less) for lack in each.lacked}
    assert not lacked & {"executions", "step logs"}


def limited(limits: str, tenants: str = ""):
    """60 runs at once, of which 5 may be active; the controller's ConfigMap was read."""
    story = capped(5)
    story.tenants = tenants
    story.event(0.0, "Platform", "workflow-controller-configmap", "Limits", limits, namespace="kube-system")
    return story


@pytest.mark.parametrize("target", ["argo", "kfp"])
@pytest.mark.parametrize(
    ("limits", "tenants", "binds"),
    [
        ("parallelism=5", "", "Raise or remove parallelism in"),
        ("namespaceParallelism=5", "", "Raise or remove namespaceParallelism in"),
        ("parallelism=50 namespaceParallelism=5", "", "Raise or remove namespaceParallelism in"),
        ("parallelism=5 namespaceParallelism=50", "", "Raise or remove parallelism in"),
        ("parallelism=40 namespaceParallelism=20", "", "Raise or remove parallelism in"),  # others use it up
        ("parallelism=50 namespaceParallelism=7", "", "Raise or remove namespaceParallelism in"),  # two between pods
        ("parallelism=7 namespaceParallelism=9", "", "Raise or remove parallelism in"),
        ("parallelism=5 namespaceParallelism=5", "", "Raise or remove parallelism and namespaceParallelism in"),
        ("parallelism=9 namespaceParallelism=5", "a;b", "Raise or remove parallelism in"),  # each tenant is below 5
        ("", "", "Look up both in"),
        ("parallelism=many", "", "Look up both in"),
    ],
)
def test_the_limit_that_binds_is_told_apart_by_what_the_controller_is_set_to(target, limits, tenants, binds, tmp_path):
    story = limited(limits, tenants)
    story.target = target
    for seq in range(10, 60):
        story.event(1.0, "Task", "", "PENDING", POSTPONED, run=f"run-{seq:04d}", type="Warning")
    detector = workflows_postponed if target == "argo" else parallelism_cap
    (finding,) = detector.detect(story.timeline(tmp_path))
    assert finding.fix.startswith(binds)
    assert finding.commands[1] == "kubectl edit configmap workflow-controller-configmap -n kube-system"


def test_that_others_use_parallelism_up_is_said(tmp_path):
    (finding,) = parallelism_cap.detect(limited("parallelism=40 namespaceParallelism=20").timeline(tmp_path))
    assert "parallelism is 40" in finding.evidence[-1].statement
    assert "other workflows ran" in finding.evidence[-1].statement
    (finding,) = parallelism_cap.detect(limited("parallelism=6").timeline(tmp_path))
    assert "of others" not in finding.evidence[-1].statement


def test_without_the_config_map_both_limits_are_named(tmp_path):
    (finding,) = workflows_postponed.detect(waiting("argo", POSTPONED).timeline(tmp_path))
    assert "parallelism or namespaceParallelism" in finding.title
    assert "could read neither" in finding.fix
    assert "grep -i parallelism" in finding.commands[0]  # shows both


@pytest.mark.parametrize(("message", "first"), [(SEMAPHORE, "lock-wait"), ("", "parallelism-cap")])
def test_a_cap_on_parallelism_is_not_blamed_for_a_lock(message, first, tmp_path):
    story = capped()
    if message:
        for seq in range(10, 60):
            story.event(1.0, "Task", "", "PENDING", message, run=f"run-{seq:04d}", type="Warning")
    found = {finding.name: finding for finding in diagnose(story.timeline(tmp_path)).findings}
    assert next(iter(found)) == first
    assert found["parallelism-cap"].confidence == (0.1 if message else 0.9)


def test_a_quota_is_not_taken_for_a_lock(tmp_path):
    names = {finding.name for finding in diagnose(waiting("argo", QUOTA).timeline(tmp_path)).findings}
    assert "quota" in names
    assert not names & {"lock-wait", "workflows-postponed"}


@pytest.mark.parametrize(("target", "fix"), [("argo", "Leave memoize out"), ("kfp", "--caching off")])
def test_what_keeps_tasks_from_the_cache_is_named_as_the_platform_calls_it(target, fix, tmp_path):
    story = cached()
    story.target = target
    found = {finding.name: finding for finding in diagnose(story.timeline(tmp_path)).findings}
    assert fix in found["caching"].fix


def counted(*totals: int):
    story = steady()
    for k, total in enumerate(totals):
        story.sample(15.0 * k, "argo_workflows", float(total), phase="Succeeded")
    return story


@pytest.mark.parametrize(
    ("story", "found"),
    [
        (piling_up, True),
        (lambda: counted(9000, 9010, 9020), True),
        (lambda: counted(9000, 9000, 9000), False),  # nothing was added
        (lambda: counted(9000, 9020, 8000, 9100), False),  # some are removed
        (lambda: counted(10, 20, 30), False),
        (lambda: counted(9000), False),
    ],
)
def test_finished_workflows_count_when_they_are_many_and_only_grow(tmp_path, story, found):
    assert bool(finished_workflows.detect(story().timeline(tmp_path))) is found


def test_without_the_controllers_metrics_it_is_not_judged(tmp_path):
    with pytest.raises(CannotJudgeError, match="metrics"):
        finished_workflows.detect(steady().timeline(tmp_path))
