import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.waits.failures import Group, canonical, failure_groups, failures, group
from harness.model import Outcome
from harness.model.phases import FAILED, LAUNCHER_ERROR, RUNNING
from tests.support.timelines import Story


def test_messages_that_differ_in_ids_times_and_numbers_are_one_group():
    first = (
        "pod training-x7f2k-123 failed at 2026-11-21T10:00:01Z: exit code 137, run 6f9619ff-8b86-d011-b42d-00c04fc964ff"
    )
    second = "pod training-p9q1z-77 failed at 2026-11-22T11:30:59.123Z: exit code 1, run 7a9619ff-8b86-d011-b42d-00c04fc964ff"
    (only,) = group([(3.0, first), (1.0, second)])
    assert (only.count, only.first_s, only.last_s) == (2, 1.0, 3.0)
    assert only.message == "pod training-<id>-<n> failed at <time>: exit code <n>, run <id>"


@given(st.text(max_size=200))
def test_grouping_is_stable(text):
    assert canonical(canonical(text)) == canonical(text)


def test_a_failure_knows_its_messages_nodes_and_tasks(tmp_path):
    story = Story(intended=2)
    run = story.submit(0)
    pod = story.pod(run, "train", "node-7", (RUNNING, 1.0, 5.0))
    story.event(5.0, "Pod", pod, "OOMKilled", "container main was OOMKilled")  # without saying which run
    story.run(run, 0.0, 6.0, FAILED, "train failed")
    story.run(story.submit(1), 0.0, 7.0)
    (failure,) = failures(story.timeline(tmp_path))
    assert failure.texts == ("train failed", "container main was OOMKilled")  # which names the reason
    assert (failure.nodes, failure.tasks, failure.row) == (("node-7",), ("train",), 0)


def test_rejections_are_grouped_beside_failures(tmp_path):
    story = Story(intended=3)
    for seq in range(2):
        story.submit(seq, outcome=Outcome.REJECTED, status=503, error=f"upstream {seq} is busy")
    story.run(story.submit(2), 0.0, 7.0, FAILED)
    assert [(g.count, g.message) for g in failure_groups(story.timeline(tmp_path))] == [
        (2, "submission rejected: upstream <n> is busy"),
        (1, "no message was given"),
    ]


def test_a_run_without_a_message_has_the_reasons_of_its_nodes_events_and_pods(tmp_path):
    story = Story(intended=1)
    run = story.submit(0)
    pod = story.pod(run, "train", "node-7", (RUNNING, 1.0, 5.0))
    story.event(5.0, "Pod", pod, "OOMKilled", "container main ended with exit code 137", run=run)
    story.event(9.0, "Workflow", "w", "WorkflowNodeFailed", "Failed node w(0).root(0)", run=run)
    story.event(9.0, "Workflow", "w", "WorkflowNodeFailed", "Failed node w(0).a(0): no such template", run=run)
    story.event(9.0, "Task", "train", "FAILED", "main: OOMKilled (exit code 137)", run=run)
    story.event(9.0, "Task", "train", "PENDING", "waited before", run=run)
    story.event(9.0, "Task", "train", "FAILED", "of another run", run="another")
    story.run(run, 0.0, 10.0, FAILED)
    (failure,) = failures(story.timeline(tmp_path))
    assert failure.texts == (
        "main: OOMKilled (exit code 137)",
        "no such template",
        "OOMKilled: container main ended with exit code 137",
    )
    assert (failure.nodes, failure.tasks) == (("node-7",), ("train",))


@pytest.mark.parametrize(
    ("logged", "texts"),
    [
        ("failed to upload output artifact", ("failed to upload output artifact", "main: Error (exit code 1)")),
        ("exit status 1", ("main: Error (exit code 1)", "exit status 1")),
    ],
)
def test_the_launchers_error_comes_first_unless_it_is_no_more_than_an_exit_code(logged, texts, tmp_path):
    story = Story(intended=1)
    run = story.submit(0)
    pod = story.pod(run, "train", "node-7", (RUNNING, 1.0, 5.0))
    story.event(5.0, "Pod", pod, LAUNCHER_ERROR, logged, run=run)
    story.event(9.0, "Task", "train", "FAILED", "main: Error (exit code 1)", run=run)
    story.run(run, 0.0, 10.0, FAILED)
    (failure,) = failures(story.timeline(tmp_path))
    assert failure.texts == texts


def test_what_is_told_of_a_failed_run_is_its_group(tmp_path):
    story = Story(intended=4)
    for seq, message in enumerate(("step 1 was evicted", "step 2 was evicted", "out of quota", "")):
        story.run(story.submit(seq), 0.0, 5.0 + seq, FAILED, message)
    assert failure_groups(story.timeline(tmp_path)) == [
        Group("step <n> was evicted", 2, 5.0, 6.0, "step 1 was evicted"),
        Group("out of quota", 1, 7.0, 7.0, "out of quota"),
        Group("no message was given", 1, 8.0, 8.0, "no message was given"),
    ]


@pytest.mark.parametrize(
    ("kind", "reason", "message", "texts"),
    [
        ("Pod", "OOMKilled", None, ("OOMKilled",)),
        ("Pod", "OOMKilled", "", ("OOMKilled",)),
        ("Pod", "Error", None, ()),
        ("Pod", "Error", "exit code 2", ("exit code 2",)),
        ("Pod", "Evicted", "the node was low on memory", ("Evicted: the node was low on memory",)),
        ("Pod", "Evicted", "Evicted for memory", ("Evicted for memory",)),
        ("Pod", "Started", "as usual", ()),
        ("Node", "Evicted", "of another kind", ()),
        ("Task", "ERROR", None, ()),
        ("Task", "ERROR", "no such image", ("no such image",)),
        ("Task", "Succeeded", "all is well", ()),
        ("Workflow", "WorkflowNodeError", None, ()),
        ("Workflow", "WorkflowNodeError", "(combined from similar events): Error node w.root.a: no disk", ("no disk",)),
        ("Workflow", "WorkflowRunning", "Running node w: so far", ()),
    ],
)
def test_what_an_event_says_of_a_failure(kind, reason, message, texts, tmp_path):
    story = Story(intended=1)
    run = story.submit(0)
    story.event(5.0, kind, "a", reason, message, run=run)
    story.run(run, 0.0, 10.0, FAILED)
    (failure,) = failures(story.timeline(tmp_path))
    assert failure.texts == texts
    assert failure.nodes == ()
    assert failure.tasks == (("a",) if kind == "Task" and reason == "ERROR" else ())


def test_what_happens_to_pods_that_are_not_known_to_be_of_a_run_is_of_none(tmp_path):
    story = Story(intended=1)
    story.event(5.0, "Pod", "elsewhere", "Evicted", "low on memory")
    story.run(story.submit(0), 0.0, 10.0, FAILED)
    (failure,) = failures(story.timeline(tmp_path))
    assert failure.texts == ()
