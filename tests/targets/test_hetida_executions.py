"""The request of one execution, and how its answer is read."""

import copy
import json
from itertools import pairwise

import pytest

from harness.model.phases import BACKEND, COMPUTING, FAILED, LOADING, NETWORK, QUEUED, RUN, SENDING, SUCCEEDED
from harness.model.records import Event, Span
from harness.targets.completed_run import CompletedRun
from harness.targets.hetida import answers
from harness.targets.scenarios import InputType
from harness.targets.target import ListsRuns, RejectedError
from tests.support.hetida_platform import EXAMPLE, RECORDED, Platform, answer, recorded, run_of, target


def test_a_result_is_a_completed_run_with_the_backends_phases():
    platform = Platform()
    backend, _ = target(transformation=str(EXAMPLE), platform=platform)
    ended = backend.submit(run_of(), platform)
    assert (ended.state, ended.run, ended.error) == (SUCCEEDED, platform.sent["job_id"], "")
    steps = {name: step["duration"] for name, step in recorded("backend_execute_response")["measured_steps"].items()}
    assert dict(ended.phases) == pytest.approx({
        BACKEND: steps["internal_full"] - steps["run_execution_input"],
        QUEUED: steps["run_execution_input"] - steps["load_data"] - steps["pure_execution"] - steps["send_data"],
        LOADING: steps["load_data"], COMPUTING: steps["pure_execution"], SENDING: steps["send_data"],
    })  # fmt: skip
    assert not isinstance(backend, ListsRuns)


def test_the_phases_fill_the_exchange_and_unmeasured_time_is_network_and_waiting():
    ended = CompletedRun(
        "r", SUCCEEDED, "", "t", ((QUEUED, 0.1), (LOADING, 0.2), (COMPUTING, 0.3)), QUEUED, 0.01, "pod-1"
    )
    spans = [record for record in ended.records(10**9, 2 * 10**9, "hetida") if isinstance(record, Span)]
    assert (spans[0].phase, spans[0].step, spans[0].started_at, spans[0].ended_at) == (RUN, "", 10**9, 2 * 10**9)
    steps = spans[1:]
    assert [step.phase for step in steps] == [NETWORK, QUEUED, LOADING, COMPUTING]
    assert steps[0].started_at == 10**9
    assert steps[-1].ended_at == 2 * 10**9
    assert all(one.ended_at == next_.started_at for one, next_ in pairwise(steps))
    lengths = {step.phase: (step.ended_at - step.started_at) / 1e9 for step in steps}
    assert lengths == pytest.approx({NETWORK: 0.01, QUEUED: 0.49, LOADING: 0.2, COMPUTING: 0.3})
    assert {step.node for step in steps} == {"pod-1"}


def test_measured_steps_longer_than_the_exchange_are_cut_at_its_end():
    ended = CompletedRun("r", SUCCEEDED, "", "t", ((LOADING, 2.0), (COMPUTING, 1.0)))
    spans = [record for record in ended.records(0, 10**9, "hetida") if isinstance(record, Span)]
    assert max(span.ended_at for span in spans) == 10**9


def test_a_runtime_gets_the_complete_input_and_the_load_balancers_header_names_the_worker():
    platform = Platform()
    platform.answer = answer(recorded("runtime_response"), **{"x-upstream-addr": "10.0.0.7:8090"})
    runtime, inputs = target(
        mode="runtime", transformation=str(RECORDED / "runtime_request.json"), platform=platform,
        **{"expect-output": "mean == 2.5; rolled"},
    )  # fmt: skip
    assert {name: each.type for name, each in inputs.items()} == {
        "series": InputType.STRUCT, "busy_ms": InputType.INTEGER,
    }  # fmt: skip
    ended = runtime.submit(run_of(busy_ms=50, series={"2026-01-01T00:00:00Z": 1.0}), platform)
    sent, original = platform.sent, recorded("runtime_request")
    assert sent["workflow_wiring"]["input_wirings"][1]["filters"] == {"value": "50"}
    assert json.loads(sent["workflow_wiring"]["input_wirings"][0]["filters"]["value"]) == {"2026-01-01T00:00:00Z": 1.0}
    for changed in ("workflow_wiring", "job_id"):
        sent.pop(changed)
        original.pop(changed)
    assert sent == original
    assert (ended.state, ended.node, ended.waiting) == (SUCCEEDED, "10.0.0.7:8090", QUEUED)
    assert [phase for phase, _ in ended.phases] == [QUEUED, LOADING, COMPUTING, SENDING]


def test_a_component_is_wrapped_in_a_workflow_for_a_runtime():
    platform = Platform()
    platform.answer = answer(recorded("runtime_response"))
    runtime, _ = target(mode="runtime", transformation=str(EXAMPLE), platform=platform)
    runtime.submit(run_of(), platform)
    sent, shape = platform.sent, recorded("runtime_request")
    assert sent.keys() == shape.keys()
    for part in ("workflow", "configuration"):
        assert sent[part].keys() == shape[part].keys()
    for part in ("components", "code_modules"):
        assert sent[part][0].keys() == shape[part][0].keys()
    assert sent["workflow"]["inputs"][0].keys() == shape["workflow"]["inputs"][0].keys()
    assert sent["components"][0]["code_module_uuid"] == sent["code_modules"][0]["uuid"]
    assert sent["workflow"]["sub_nodes"][0]["component_uuid"] == sent["components"][0]["uuid"]


@pytest.mark.parametrize(
    ("outcome", "state", "says"),
    [
        ("component raises", FAILED, "EXECUTING_COMPONENT_CODE · operator wf / Rolling Mean (busy) · ValueError: boom"),
        ("wrong type of value", FAILED, "MissingInputSource"),
        ("unknown adapter", FAILED, "LOADING_DATA_FROM_ADAPTERS · AdapterConnectionError"),
    ],
)
def test_a_result_that_is_not_ok_is_a_failed_run(outcome, state, says):
    said = recorded("runtime_outcomes")[outcome]
    ended = answers.completed_run(answer(said["body"]), "r", task="t", empty_s=0.0, expected=())
    assert ended.state == state
    assert says in ended.error
    assert ended.phases == ()
    (event,) = [record for record in ended.records(0, 1, "hetida") if isinstance(record, Event)]
    assert (event.reason, event.message, event.type) == (FAILED, ended.error, "Warning")


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ("missing wiring", "Workflow Input 'busy_ms' has no wiring"),
        ("schema error", "workflow: field required"),
        ("broken json", "JSON decode error"),
    ],
)
def test_a_rejected_request_is_not_a_run(outcome, says):
    platform = Platform()
    backend, _ = target(transformation=str(EXAMPLE), platform=platform)
    said = recorded("runtime_outcomes")[outcome]
    platform.answer = answer(said["body"], said["status"])
    with pytest.raises(RejectedError, match=says) as refused:
        backend.submit(run_of(), platform)
    assert refused.value.status == 422


def test_an_execution_that_breaks_with_a_500_is_a_failed_run_and_an_overload_is_none():
    platform = Platform()
    backend, _ = target(transformation=str(EXAMPLE), platform=platform)
    platform.answer = answer(b"Internal Server Error", 500)
    assert backend.submit(run_of(), platform).error == "HTTP 500 · Internal Server Error"
    platform.answer = answer(b"<html>bad gateway</html>", 502)
    with pytest.raises(RejectedError, match="HTML page"):
        backend.submit(run_of(), platform)
    platform.answer = answer(b"{}")
    with pytest.raises(RejectedError, match="not the result"):
        backend.submit(run_of(), platform)


@pytest.mark.parametrize(
    ("expected", "says"),
    [
        ("mean < 2", "expected mean < 2, found 2.5"), ("median", "'median' is missing"), ("rolled > 1", "expected rolled > 1"),
        ("mean == 2.5; rolled; mean >= 2", ""),
    ],
)  # fmt: skip
def test_outputs_can_be_asserted(expected, says):
    expectations = answers.parse_expectations(expected)
    ended = answers.completed_run(
        answer(recorded("runtime_response")), "r", task="t", empty_s=0.0, expected=expectations
    )
    assert says in ended.error
    assert ended.state == (FAILED if says else SUCCEEDED)


def test_an_asynchronous_execution_is_accepted_and_ends_with_its_callback():
    platform = Platform()
    backend, _ = target("http://127.0.0.1:1", platform, mode="async", transformation=str(EXAMPLE))
    platform.answer = answer({"message": "accepted"}, 202)
    job = backend.submit(run_of(), platform)
    assert job == platform.sent["job_id"]
    path, _, query = platform.asked[-1].path.partition("?")
    assert path == "/api/transformations/execute-async"
    assert query.startswith("callback_url=http%3A%2F%2F127.0.0.1%3A")
    posted = recorded("backend_execute_response") | {"job_id": job}
    ended = backend.read_callback(json.dumps(posted).encode())
    assert (ended.run, ended.state) == (job, SUCCEEDED)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"job_id": "1"}', b"\xff"])
def test_other_bodies_are_not_callbacks(body):
    backend, _ = target("http://127.0.0.1:1", mode="async", transformation=str(EXAMPLE))
    assert backend.read_callback(body) is None


def test_recorded_documents_are_parsed_leniently():
    """A newer version may add fields and steps, or leave out what it did not measure."""
    newer = copy.deepcopy(recorded("backend_execute_response"))
    newer["measured_steps"]["something_new"] = {"duration": 1.0}
    newer["measured_steps"]["send_data"] = None
    newer["more"] = 1
    ended = answers.completed_run(answer(newer), "r", task="t", empty_s=0.0, expected=())
    assert SENDING not in dict(ended.phases)
    assert ended.state == SUCCEEDED
