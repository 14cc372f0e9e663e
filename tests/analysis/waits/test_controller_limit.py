"""What holds the workflow controller up: its symptoms, and the decision as a table."""

import pytest

from harness.analysis.waits.controller_limit import (
    BUSY as BUSY_WORKERS,
)
from harness.analysis.waits.controller_limit import (
    CLIENT_WAIT_S,
    QUEUE_WAIT_S,
    REQUESTS,
    RESOURCE_WAIT_S,
    WORKING,
    Limit,
    Symptoms,
    queue_wait_s,
    symptoms,
    workers_of,
)
from harness.model import Span
from harness.model.phases import RUNNING, SCHEDULING, TASK
from tests.support.timelines import Story, at

IDLE, BUSY = {"idle": True, "late_start": False}, {"idle": False, "late_start": True}


@pytest.mark.parametrize(
    ("symptoms", "runs", "limit"),
    [
        # Argo 4.1 tells the waits for its client's limit: they decide, whatever else waits.
        (Symptoms(token_s=0.5, queued_s=9.0, work_s=3.0), BUSY, Limit.REQUESTS),
        (Symptoms(token_s=0.4, queued_s=9.0, work_s=1.1), BUSY, Limit.WORKERS),
        (Symptoms(token_s=0.4, queued_s=1.0, work_s=1.1), IDLE, Limit.LOOKS),
        (Symptoms(token_s=0.4, queued_s=1.0, work_s=1.1), BUSY, Limit.UNKNOWN),
        (Symptoms(token_s=9.0, pod_token_s=0.5, queued_s=9.0), BUSY, Limit.POD_RATE),
        (Symptoms(token_s=0.0, queued_s=9.0, work_s=3.0, even=True), BUSY, Limit.UNKNOWN),  # workers short of CPU
        # Before, an even rate and workers that take long for an update do.
        (Symptoms(queued_s=9.0, work_s=2.1, even=True), BUSY, Limit.REQUESTS),
        (Symptoms(queued_s=9.0, work_s=1.5, even=True), BUSY, Limit.REQUESTS),
        (Symptoms(queued_s=9.0, work_s=2.1), BUSY, Limit.UNKNOWN),
        (Symptoms(queued_s=9.0, work_s=1.1, even=True), BUSY, Limit.WORKERS),
        (Symptoms(queued_s=9.0), BUSY, Limit.WORKERS),
        # Without metrics, the nodes of workflows and their pods.
        (Symptoms(late_s=1.0), BUSY, Limit.REQUESTS),
        (Symptoms(late_s=0.0), BUSY, Limit.WORKERS),
        (Symptoms(late_s=0.0), IDLE, Limit.LOOKS),
        (Symptoms(), IDLE, Limit.LOOKS),
        (Symptoms(), BUSY, Limit.UNKNOWN),
    ],
)
def test_the_strongest_symptom_decides(symptoms, runs, limit):
    assert symptoms.limit(**runs) is limit


def sampled(*series: tuple[str, list[float], dict[str, str]]) -> Story:
    """Samples of the controller, one each ten seconds."""
    story = Story(intended=1)
    story.run(story.submit(0), 0, 100)
    for metric, values, labels in series:
        for k, value in enumerate(values):
            story.sample(10.0 * k, metric, value, **labels)
    return story


_MEDIAN, _TAIL = {"quantile": "0.5"}, {"quantile": "0.9"}
_OF_WORKFLOWS = {"queue_name": "workflow_queue"}
_UPDATES = {"kind": "workflows", "verb": "Update", "status_code": "200"}


def test_waits_are_the_medians_in_the_busiest_quarter(tmp_path):
    story = sampled(
        (CLIENT_WAIT_S, [0.0, 0.2, 0.4, 0.8, 0.6], _MEDIAN),
        (CLIENT_WAIT_S, [50.0] * 5, _TAIL),
        (RESOURCE_WAIT_S, [3.0, 1.0], _MEDIAN),
        (QUEUE_WAIT_S, [1.0, 2.0, 3.0], _MEDIAN | _OF_WORKFLOWS),
        (QUEUE_WAIT_S, [7.0, 7.0, 7.0], _MEDIAN | {"queue_name": "pod_cleanup_queue"}),
    )
    timeline = story.timeline(tmp_path)
    seen = symptoms(timeline)
    assert (seen.token_s, seen.pod_token_s, seen.queued_s) == (0.6, 2.5, 2.5)
    assert seen.measured
    assert seen.queues
    assert queue_wait_s(timeline, "pod_cleanup_queue") == 7.0
    assert queue_wait_s(timeline, "cron_wf_queue") is None


def test_what_was_not_recorded_is_no_sign(tmp_path):
    assert symptoms(sampled().timeline(tmp_path)) == Symptoms()
    assert not Symptoms().measured
    assert not Symptoms(queued_s=1.0).queues, "the lowest bucket ends there"


@pytest.mark.parametrize("metric", [WORKING, BUSY_WORKERS])
def test_a_workers_time_for_an_update_follows_littles_law(metric, tmp_path):
    label = {"queue_name" if metric == WORKING else "worker_type": "workflow_queue"}
    story = sampled(
        (metric, [0.0, 4.0, 8.0, 8.0, 8.0], label),
        (metric, [99.0] * 5, {"queue_name": "other", "worker_type": "other"}),
        (REQUESTS, [0.0, 2.0, 4.0, 4.0, 4.0], _UPDATES),
        (REQUESTS, [9.0] * 5, _UPDATES | {"status_code": "409"}),
    )
    timeline = story.timeline(tmp_path)
    seen = symptoms(timeline)
    assert (seen.work_s, seen.busy) == (2.0, 8.0)
    assert workers_of(timeline, "workflow_queue") == (8.0 if metric == BUSY_WORKERS else None)


def test_rare_updates_take_their_workers_long(tmp_path):
    story = sampled((WORKING, [8.0, 8.0], {"queue_name": "workflow_queue"}), (REQUESTS, [0.5, 0.5], _UPDATES))
    assert symptoms(story.timeline(tmp_path)).work_s == 16.0


@pytest.mark.parametrize("updates", [[0.0, 0.0, 0.0], [], [0.0, 0.0, 0.0, 0.0, 1.0]])
def test_workers_that_hardly_update_anything_take_no_known_time(updates, tmp_path):
    story = sampled((WORKING, [2.0, 2.0], {"queue_name": "workflow_queue"}), (REQUESTS, updates, _UPDATES))
    assert symptoms(story.timeline(tmp_path)).work_s is None


@pytest.mark.parametrize(
    ("argos", "kubernetes", "rate", "even"),
    [
        ([1.0, 20.0, 20.0, 21.0, 2.0], [1.0, 5.0, 2.0, 6.0, 5.5], 20.0, True),
        ([1.0, 5.0, 2.0, 6.0, 5.5], [1.0, 20.0, 20.0, 21.0, 2.0], 20.0, True),  # either API has a limit of its own
        ([10.0, 20.0, 14.0, 11.0, 17.0], [5.0, 2.5, 4.0, 3.0, 3.5], 14.0, False),
        ([20.0, 20.0, 1.0], [1.0, 1.9, 1.2], 20.0, False),  # two samples may be equal by chance
        ([20.0, 20.0, 20.0, 16.0, 30.0], [0.0], 20.0, False),  # three of five
        ([20.0, 20.0, 20.0, 20.0, 30.0], [0.0], 20.0, True),  # four of five
        ([20.0, 17.0, 23.0, 20.0], [0.0], 20.0, True),  # within 15 %
        ([20.0, 16.8, 23.2, 20.0], [0.0], 20.0, False),
        ([20.0, 20.0, 20.0, 20.0, 8.0, 8.0, 8.0], [0.0], 20.0, True),  # less than half is a quiet stretch
        ([20.0] * 7 + [14.0] * 3, [0.0], 20.0, True),  # seven of ten
    ],
)
def test_a_rate_that_stays_at_its_maximum_is_even(argos, kubernetes, rate, even, tmp_path):
    half = [each / 2 for each in argos]
    story = sampled(
        (REQUESTS, half, {"kind": "workflows", "verb": "Update"}),
        (REQUESTS, half, {"kind": "cronworkflows", "verb": "Get"}),
        (REQUESTS, kubernetes, {"verb": "Create"}),
    )
    seen = symptoms(story.timeline(tmp_path))
    assert (seen.rate, seen.even) == (rate, even)


def described(late_s: float, count: int = 20, *, message: str = "", other: str = "") -> Story:
    """Runs whose workflows were read: a pod of each was made `late_s` after its node began, whose hash it shares."""
    story = Story(intended=count)
    for seq in range(count):
        run = story.submit(seq, due=float(seq))
        story.run(run, float(seq), seq + 60.0)
        made = seq + 5.0 + late_s
        story.pod(run, f"train-{seq}{other}", None, (SCHEDULING, made, made + 9), (RUNNING, made + 9, made + 20))
        story.records.append(Span(run, f"{run}-{seq}", TASK, at(seq + 5.0), None, source="argo"))
        if message:
            story.event(seq + 6.0, "Workflow", run, "Pending", message, run=run)
    return story


@pytest.mark.parametrize(
    ("story", "late_s"),
    [
        (described(3.0), 3.0),
        (described(3.0, 19), None),  # too few
        (described(3.0, other="x"), None),  # other nodes' pods
        (described(3.0, message="Waiting for argo/ConfigMap/limits lock. Lock status: 0/1"), None),
        (
            described(
                3.0, message="Workflow execution has been postponed because too many workflows are already running"
            ),
            None,
        ),
        (described(3.0, message='pods "train" is forbidden: exceeded quota: compute'), None),
        (described(3.0, message="Workflow is running"), 3.0),
    ],
)
def test_pods_come_late_after_their_nodes_where_nothing_else_is_known_to_hold_them_back(story, late_s, tmp_path):
    assert symptoms(story.timeline(tmp_path)).late_s == (late_s and pytest.approx(late_s))


def test_pods_of_runs_whose_workflows_were_not_read_say_nothing(tmp_path):
    story = described(3.0)
    for seq in range(20, 60):
        run = story.submit(seq, due=float(seq))
        story.run(run, float(seq), seq + 60.0)
        story.pod(run, f"train-{seq}", None, (SCHEDULING, seq + 50.0, seq + 55.0))
    assert symptoms(story.timeline(tmp_path)).late_s == pytest.approx(3.0)


def test_workflows_without_pods_say_nothing(tmp_path):
    story = described(3.0)
    story.records = [each for each in story.records if getattr(each, "phase", "") not in {SCHEDULING, RUNNING}]
    assert symptoms(story.timeline(tmp_path)).late_s is None
