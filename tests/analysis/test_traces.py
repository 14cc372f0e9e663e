import pytest

from harness.analysis.traces import trace_spans
from harness.model import Outcome, Span
from harness.model.phases import COMPUTING, FAILED, POD_PHASES, QUEUED, RUNNING, SCHEDULING, STARTING
from harness.model.trace_ids import span_id, submission_id, trace_id
from tests.support.timelines import T0, Story, at, burst

TEST = str(T0)  # of a plan without an id


@pytest.fixture
def spans(tmp_path):
    return lambda story: [*trace_spans(story.timeline(tmp_path))]


def test_a_run_lasts_from_when_it_was_due_and_its_submission_until_the_answer(spans):
    story = Story(intended=1)
    story.run(story.submit(0, due=2.0, lag=0.5, service=0.25), 3.0, 9.0)
    run, submission = spans(story)
    assert (run.begun_at, run.ended_at, run.parent, run.id) == (at(2.0), at(9.0), 0, span_id(TEST, 0))
    assert (submission.begun_at, submission.ended_at, submission.parent) == (at(2.5), at(2.75), run.id)
    assert submission.id == submission_id(TEST, 0), "the id that the request's header named"
    assert run.trace == submission.trace == trace_id(TEST, 0)
    assert (run.error, submission.error, run.request, submission.request) == ("", "", False, True)
    assert submission.attributes == {"http.response.status_code": 200, "pipeswarm.worker": 0}
    assert run.attributes == {
        "pipeswarm.seq": 0, "pipeswarm.run": "run-0000", "pipeswarm.run_name": "s0-plant", "pipeswarm.scenario": "s0",
        "pipeswarm.outcome": "accepted", "pipeswarm.state": "SUCCEEDED",
    }  # fmt: skip


def test_a_pod_is_a_span_around_those_of_its_phases(spans):
    story = Story(intended=1)
    story.node("node-7", -9.0, -5.0)
    story.run(story.submit(0), 0.0, 9.0)
    story.pod("run-0000", "train", "node-7", (SCHEDULING, 1.0, 2.0), (STARTING, 2.0, 4.0), (RUNNING, 4.0, 8.0))
    run, _, pod, *phases = spans(story)
    assert (pod.name, pod.parent, pod.begun_at, pod.ended_at) == ("train", run.id, at(1.0), at(8.0))
    assert pod.attributes == {"k8s.pod.name": "run-0000-train", "pipeswarm.task": "train", "k8s.node.name": "node-7"}
    assert [(each.name, each.begun_at, each.ended_at, each.parent) for each in phases] == [
        (SCHEDULING, at(1.0), at(2.0), pod.id), (STARTING, at(2.0), at(4.0), pod.id), (RUNNING, at(4.0), at(8.0), pod.id),
    ]  # fmt: skip


def test_the_phases_of_an_execution_by_a_service_are_below_its_run(spans):
    story = Story(intended=1, target="hetida")
    run = story.submit(0, service=5.0)
    story.run(run, 0.0, 5.0)
    story.records += [
        Span(run, run, QUEUED, at(0.1), at(2.0), "anomaly", node="runtime-3", source="hetida"),
        Span(run, run, COMPUTING, at(2.0), at(4.9), "anomaly", node="runtime-3", source="hetida"),
    ]
    _, _, queued, computing = spans(story)
    assert (queued.name, computing.name) == (QUEUED, COMPUTING)
    assert queued.parent == computing.parent == span_id(TEST, 0)
    assert queued.attributes == {"pipeswarm.replica": "runtime-3"}


def test_a_step_that_is_no_pod_is_not_called_one(spans):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, 9.0)
    story.pod("run-0000", "train", "laptop", (RUNNING, 4.0, 8.0))
    _, _, step, _ = spans(story)
    assert step.attributes == {"pipeswarm.step": "run-0000-train", "host.name": "laptop", "pipeswarm.task": "train"}


def test_a_run_that_goes_on_ends_with_the_records_and_is_marked(spans):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, None)
    story.pod("run-0000", "train", None, (SCHEDULING, 1.0, 2.0), (RUNNING, 2.0, None))
    story.event(30.0, "Node", "n", "Ready")
    run, submission, pod, scheduling, running = spans(story)
    assert [each.ended_at for each in (run, pod, running)] == [at(30.0)] * 3
    assert all(each.attributes["pipeswarm.open"] is True for each in (run, pod, running))
    assert not any("pipeswarm.open" in each.attributes for each in (submission, scheduling))


def test_failures_say_why(spans):
    story = Story(intended=4)
    story.run(story.submit(0), 0.0, 9.0, FAILED, "the store is full")
    story.run(story.submit(1), 0.0, 9.0, FAILED)
    story.submit(2, outcome=Outcome.REJECTED, status=503, error="overloaded")
    story.submit(3, outcome=Outcome.REJECTED, service=None, status=None, error="refused")
    found = spans(story)
    roots = [each for each in found if not each.parent]
    assert [each.error for each in roots] == ["the store is full", "FAILED", "overloaded", "refused"]
    assert [each.error for each in found if each.request] == ["", "", "overloaded", "refused"]
    unanswered = found[-1]
    assert unanswered.begun_at == unanswered.ended_at
    assert "http.response.status_code" not in unanswered.attributes
    assert roots[2].ended_at == at(0.021), "a rejected arrival is over with its answer"
    assert "pipeswarm.run" not in roots[2].attributes


def test_what_was_never_sent_has_no_trace(spans):
    story = Story(intended=2)
    story.submit(0, outcome=Outcome.MISSED, lag=None, service=None, status=None, error="the test was stopped")
    story.run(story.submit(1), 0.0, 9.0)
    assert {each.trace for each in spans(story)} == {trace_id(TEST, 1)}


def test_every_span_of_a_whole_test_has_an_id_of_its_own_and_a_parent_before_it(spans):
    seen = set()
    for span in spans(burst(40)):
        assert span.ended_at >= span.begun_at
        assert (span.trace, span.id) not in seen
        assert not span.parent or (span.trace, span.parent) in seen
        assert not span.parent or span.name in {"submit", "root-driver", "prepare", "train", "evaluate", *POD_PHASES}
        seen.add((span.trace, span.id))
    assert len({trace for trace, _ in seen}) == 40
