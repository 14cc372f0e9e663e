"""What holds the workflow controller up is told apart: by its metrics, on a simulated platform too, and without them."""

from dataclasses import replace

import pytest

from harness.analysis.waits.controller_limit import Limit, Symptoms
from harness.detectors import diagnose
from harness.detectors.controller import etcd_nearly_full, webhook_slow, workflow_parallelism
from harness.model.phases import SCHEDULING, TASK
from harness.model.records import Sample, Span
from harness.simulator.profile import Controller
from tests.support.injected.control_plane import backlog, controller, etcd, told, waiting, webhook
from tests.support.injected.loads import one_at_a_time, steady
from tests.support.injection.case import Case, profile_of, simulated
from tests.support.injection.seen import seen
from tests.support.timelines import GIB

CONTROLLERS = {
    "controller-qps": Controller(qps=4.0, burst=5, requeue_s=1.0),
    "controller-workers": Controller(qps=200.0, burst=300, workers=1, operation_s=0.3, requeue_s=1.0),
    "controller-requeue": Controller(qps=200.0, burst=300, workers=64, requeue_s=10.0),
}
OF_CONTROLLER = {*CONTROLLERS, "controller-backlog"}


@pytest.mark.parametrize(
    ("name", "version"),
    [*((name, "4.0") for name in CONTROLLERS), ("controller-qps", "4.1"), ("controller-workers", "4.1")],
)
def test_each_limit_of_the_simulated_controller_is_named_by_its_own_metrics(name, version):
    case = Case(runs=40, over_s=240.0 if name == "controller-requeue" else 40.0, step_s=5.0)
    profile = replace(profile_of(case), controller=replace(CONTROLLERS[name], argo=version))
    findings = diagnose(simulated(case, 1.0, 1, profile)).findings
    assert [each.name for each in findings if each.name in OF_CONTROLLER] == [name]
    settings = {"controller-qps": "--qps=", "controller-workers": "--workflow-workers="}
    found = next(each for each in findings if each.name == name)
    assert settings.get(name, "DEFAULT_REQUEUE_TIME=2s") in found.commands[-1]


@pytest.mark.parametrize(("updates", "named"), [(16.0, ["controller-qps"]), (29.0, [])])
def test_a_controller_at_its_client_s_rate_is_slow_even_if_each_pod_waits_less_than_two_seconds(
    updates, named, tmp_path
):
    story = controller(queued_s=0.2, busy=40.0, updates=updates)
    story.records = [
        *steady(60, every=1.0, gap=lambda _: 1.6, work=4.0).records,
        *(each for each in story.records if isinstance(each, Sample)),
    ]
    found = diagnose(story.timeline(tmp_path)).findings
    assert [each.name for each in found if each.name in OF_CONTROLLER] == named


@pytest.mark.parametrize("target", ["kfp", "argo"])
@pytest.mark.parametrize(
    ("story", "named", "setting"),
    [
        (backlog, "controller-backlog", "--qps=100"),
        (lambda: controller(token_s=3.0, queued_s=9.0, busy=32.0, updates=20.0), "controller-qps", "--qps=60"),
        (lambda: controller(queued_s=9.0, busy=40.0, updates=16.0), "controller-qps", "--qps=50"),
        (lambda: controller(queued_s=9.0, busy=32.0, updates=29.0), "controller-workers", "--workflow-workers=64"),
        (lambda: controller(grows=False), "controller-requeue", "DEFAULT_REQUEUE_TIME"),
    ],
)
def test_a_slow_controller_gets_one_finding_with_its_setting(story, named, setting, target, tmp_path):
    told = story()
    told.target = target
    found = [each for each in diagnose(told.timeline(tmp_path)).findings if each.name in OF_CONTROLLER]
    assert [each.name for each in found] == [named]
    assert any(setting in command for command in found[0].commands)


RAISED = "--qps=200 --burst=300 --workflow-workers=64 DEFAULT_REQUEUE_TIME=1s"


@pytest.mark.parametrize(
    ("story", "arguments", "offered", "not_offered"),
    [
        (backlog, "", ["--qps=100", "--burst=150", "--workflow-workers=64"], []),
        (backlog, "--qps=100 --burst=?", ["--burst=150", "--workflow-workers=64"], ["--qps"]),
        (backlog, RAISED, [], ["--qps=", "--workflow-workers=", "DEFAULT_REQUEUE_TIME="]),
        (lambda: controller(grows=False), "", ["DEFAULT_REQUEUE_TIME=2s"], []),
        (lambda: controller(grows=False), RAISED, [], ["DEFAULT_REQUEUE_TIME=", "--qps="]),
        (lambda: controller(token_s=3.0, queued_s=9.0, busy=32.0, updates=20.0), "--qps=70", ["--qps=180"], []),
        (lambda: controller(queued_s=9.0, busy=32.0, updates=29.0), "--workflow-workers=80", ["--workflow-workers="], []),
    ],
)  # fmt: skip
def test_a_fix_is_not_offered_where_the_setting_is_already_there_or_better(
    story, arguments, offered, not_offered, tmp_path
):
    findings = diagnose(told(story(), arguments).timeline(tmp_path)).findings
    said = " ".join(word for each in findings for word in (each.fix, *each.commands) if each.name in OF_CONTROLLER)
    assert [each for each in offered if each not in said] == []
    assert [each for each in not_offered if each in said] == []
    assert "controller-requeue" not in {each.name for each in findings} or "1s" not in arguments


SLOW = Symptoms(queued_s=9.0, work_s=7.0, operation_s=10.0, busy=32.0, rate=4.3, request_s=0.05)


@pytest.mark.parametrize(
    ("seen", "limit"),
    [
        (SLOW, Limit.REQUESTS),  # its requests are quick once they are sent
        (replace(SLOW, settings={"--qps": 6.0}), Limit.REQUESTS),
        (replace(SLOW, settings={"--qps": 50.0}), Limit.UNKNOWN),  # it could send ten times as many
        (replace(SLOW, request_s=5.0), Limit.UNKNOWN),  # the API server is slow
        (replace(SLOW, request_s=None), Limit.UNKNOWN),  # may be that, or a lack of CPU
        (replace(SLOW, operation_s=2.5), Limit.UNKNOWN),  # as an idle one's, but updates are few
        (replace(SLOW, operation_s=2.5, work_s=1.1), Limit.WORKERS),
        (replace(SLOW, busy=3.0, queue=20.0), Limit.WORKERS),
        (replace(SLOW, busy=3.0, queue=20.0, settings={"--workflow-workers": 32.0}), Limit.REQUESTS),
    ],
)
def test_updates_that_take_long_while_requests_do_not_wait_inside_the_client(seen, limit):
    assert seen.limit(idle=False, late_start=True) is limit


def test_a_slow_webhook_is_told_by_the_times_of_requests_or_else_by_the_first_pods(tmp_path):
    (measured,) = webhook_slow.detect(webhook().timeline(tmp_path / "1"))
    assert (measured.confidence, "takes 5" in measured.title) == (0.85, True)
    slow_server = webhook()
    slow_server.records = [
        replace(each, value=5.0) if isinstance(each, Sample) and each.metric == "argo_k8s_request_s" else each
        for each in slow_server.records
    ]
    assert webhook_slow.detect(slow_server.timeline(tmp_path / "2")) == []

    def scheduled(after_s):
        story = steady(work=10.0)
        story.records = [
            replace(each, started_at=each.started_at - round(1e9 * after_s(each.run)))
            if isinstance(each, Span) and each.phase == SCHEDULING
            else each
            for each in story.records
        ]
        return story

    (inferred,) = webhook_slow.detect(scheduled(lambda _: 5.0).timeline(tmp_path / "3"))
    assert inferred.confidence == 0.6
    behind = scheduled(lambda run: 5.0 if run > "run-0020" else 0.0)
    assert webhook_slow.detect(behind.timeline(tmp_path / "4")) == []


def test_a_workflow_s_own_parallelism_is_named_where_it_states_it_and_runs_reach_it(tmp_path):
    (found,) = workflow_parallelism.detect(one_at_a_time().timeline(tmp_path / "1"))
    assert "lets 1 of their pods run at once, of 8 that could" in found.title
    (two,) = workflow_parallelism.detect(one_at_a_time("parallelism=2 width=1", 2).timeline(tmp_path / "2"))
    assert two.severity < found.severity
    for number, (limit, at_once) in enumerate([("", 1), ("parallelism=8 width=8", 8), ("parallelism=4 width=8", 2)]):
        assert workflow_parallelism.detect(one_at_a_time(limit, at_once).timeline(tmp_path / f"n{number}")) == []


@pytest.mark.parametrize(("without", "confidence"), [(frozenset(), 0.7), (frozenset({"workflows"}), 0.6)])
def test_without_workflows_a_slow_controller_is_as_likely_a_quota(without, confidence, tmp_path):
    story = backlog()
    story.records = list(seen(story.records, without=without, whole=False))
    found = {each.name: each.confidence for each in diagnose(story.timeline(tmp_path)).findings}
    assert found["controller-backlog"] == confidence


def with_nodes(story, late_s):
    """The same with the workflows' nodes of some runs: so long before their pods."""
    pods = {}
    for record in story.records:
        if isinstance(record, Span) and record.step and record.run < "run-0040":
            first = pods.setdefault(record.step, record)
            pods[record.step] = min(first, record, key=lambda each: each.started_at)
    for name, pod in pods.items():
        start = pod.started_at - round(late_s * 1e9)
        story.records.append(Span(pod.run, name.replace("run-", "node-"), TASK, start, None, task=pod.task))
    return story


@pytest.mark.parametrize(("late_s", "named"), [(2.0, "controller-qps"), (0.0, "controller-workers")])
def test_without_metrics_the_time_from_nodes_to_their_pods_tells(late_s, named, tmp_path):
    # The hash behind the last dash is what the names of a node and its pod share: here the task's name.
    story = with_nodes(steady(first=lambda seq: 5.0 + seq / 4, gap=lambda seq: 1.0 + seq / 8), late_s)
    story.records = [
        replace(each, step=each.step.replace("-driver", "_driver")) if isinstance(each, Span) else each
        for each in story.records
    ]
    found = [each.name for each in diagnose(story.timeline(tmp_path)).findings if each.name in OF_CONTROLLER]
    assert found == [named]


@pytest.mark.parametrize("message", [
    "Waiting for kubeflow/ConfigMap/limits/gpu lock. Lock status: 0/4",
    "Workflow processing has been postponed because too many workflows are already running",
])  # fmt: skip
def test_what_is_held_by_a_lock_or_a_limit_is_not_blamed_on_the_controller(message, tmp_path):
    story = with_nodes(steady(first=lambda seq: 5.0 + seq / 4), 3.0)
    story.records += [each for each in waiting("argo", message).records if getattr(each, "kind", "") == "Task"]
    story.target = "argo"
    findings = diagnose(story.timeline(tmp_path)).findings
    assert findings[0].name in {"lock-wait", "workflows-postponed"}
    assert all(each.confidence <= 0.1 for each in findings if each.name in OF_CONTROLLER)


def test_pods_that_wait_for_being_cleaned_up_need_workers_of_their_own(tmp_path):
    story = steady()
    for second in range(15, 165, 15):
        story.sample(second, "argo_queue_wait_s", 30.0, queue_name="pod_cleanup_queue", quantile="0.5")
        story.sample(second, "argo_busy_workers", 4.0, worker_type="pod_cleanup_queue")
    (finding,) = diagnose(story.timeline(tmp_path)).findings
    assert finding.name == "controller-workers"
    assert "--pod-cleanup-workers=8" in finding.commands[-1]


@pytest.mark.parametrize(
    ("story", "confidence"),
    [
        (lambda: etcd(1.7 * GIB), 0.9),
        (lambda: etcd(1.5 * GIB), None),
        (lambda: etcd(1.3 * GIB, first=1.2 * GIB), 0.9),  # full within the hour
        (lambda: etcd(0.2 * GIB, first=0.1 * GIB), None),  # there is plenty of room yet
        (lambda: etcd(1.7 * GIB, quota=None), 0.5),
        (lambda: etcd(3.0 * GIB, quota=None), None),  # so the quota is not the default
        (lambda: etcd(9.0 * GIB, quota=None), None),
        (lambda: etcd(94_924_800.0, quota=None), None),  # as a real API server said
    ],
)
def test_etcd_is_nearly_full_before_it_is_full(story, confidence, tmp_path):
    found = etcd_nearly_full.detect(story().timeline(tmp_path))
    assert [each.confidence for each in found] == ([] if confidence is None else [confidence])
    assert all("ttlStrategy" in each.fix for each in found)
