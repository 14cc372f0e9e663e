"""What holds Argo's workflows back is told apart, and is not found where nothing does."""

import pytest

from harness.detectors import (
    diagnose,
    etcd_full,
    finished_workflows,
    lock_wait,
    workflow_too_large,
    workflows_postponed,
)
from harness.detectors.detector import CannotJudgeError
from tests.support.injected import cached, capped, db, piling_up, steady, waiting

MUTEX = "Waiting for team-a/Mutex/shared lock. Lock status: 0/1"
SEMAPHORE = "Waiting for team-a/ConfigMap/limits/gpu lock. Lock status: 0/4"
POSTPONED = "Workflow processing has been postponed because too many workflows are already running"
QUOTA = "pods is forbidden: exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=20, limited: requests.cpu=20"
ALL = (lock_wait, workflows_postponed, workflow_too_large, etcd_full)


@pytest.mark.parametrize(
    ("story", "found"),
    [
        (lambda: waiting("argo", MUTEX), ["lock-wait"]),
        (lambda: waiting("argo", SEMAPHORE), ["lock-wait"]),
        (lambda: waiting("argo", POSTPONED), ["workflows-postponed"]),
        (lambda: waiting("argo", QUOTA), []),
        (lambda: db("workflow is longer than maximum allowed size. Size=1600000"), ["workflow-too-large"]),
        (lambda: db("Request entity too large: limit is 3145728"), ["workflow-too-large"]),
        (lambda: db("etcdserver: request is too large"), ["workflow-too-large"]),
        (lambda: db("etcdserver: mvcc: database space exceeded"), ["etcd-full"]),
        (lambda: db("Error 1114: The table 'run_details' is full"), []),
        (steady, []),
    ],
)
def test_each_limit_has_its_own_finding(tmp_path, story, found):
    timeline = story().timeline(tmp_path)
    assert [finding.name for detector in ALL for finding in detector.detect(timeline)] == found


def test_a_semaphore_is_named_with_its_limit_and_its_config_map(tmp_path):
    (finding,) = lock_wait.detect(waiting("argo", SEMAPHORE).timeline(tmp_path))
    assert finding.title == "Workflows wait for the semaphore limits/gpu, which 4 may hold"
    assert finding.commands == ("kubectl edit configmap limits -n team-a",)
    assert finding.evidence[0].value == 10


def test_both_limits_that_postpone_in_the_same_words_are_named(tmp_path):
    (finding,) = workflows_postponed.detect(waiting("argo", POSTPONED).timeline(tmp_path))
    for told in (finding.title, finding.fix):
        assert "parallelism" in told
        assert "namespaceParallelism" in told
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


def test_a_mutex_has_no_limit_to_raise(tmp_path):
    (finding,) = lock_wait.detect(waiting("argo", MUTEX).timeline(tmp_path))
    assert "Narrow the mutex" in finding.fix


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
