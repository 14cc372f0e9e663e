"""The hetida designer target against recorded answers (version 0.9.8) and a backend that a test decides."""

import copy
import json
from itertools import pairwise
from pathlib import Path

import pytest

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer
from harness.model.phases import BACKEND, COMPUTING, FAILED, LOADING, NETWORK, QUEUED, RUN, SENDING, SUCCEEDED
from harness.model.plan import Plan
from harness.model.records import Event, Span
from harness.model.scenario import Scenario
from harness.targets import Listing, Over, RejectedError, hetida, hetida_answer
from harness.targets.scenarios import InputType

RECORDED = Path(__file__).with_name("recorded_hetida")
EXAMPLE = Path(hetida.__file__).with_name("anomaly_detection.json")
TEXTS = dict.fromkeys(("mode", "transformation", "revision-group", "wiring", "expect-output", "callback-url"), "")


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text())


def answer(body, status=200, **headers):
    return HttpAnswer(status, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)


class Platform:
    """A backend and a runtime: keeps what it was asked, answers what it was told to."""

    def __init__(self, **stored):
        self.asked = []
        self.stored = stored
        self.answer = answer(recorded("backend_execute_response"))

    def __call__(self, request):
        self.asked.append(request)
        path = request.path.partition("?")[0].removeprefix("/api")
        if path == "/adapters/":
            return answer([{"id": "plants"}, {"id": "slow"}])
        if path == "/engine/info":
            return answer({"version": "0.9.8"})
        if path == "/transformations/":
            return answer(list(self.stored.values()))
        if request.method == "PUT":
            self.stored[path.rsplit("/", 1)[1]] = json.loads(request.body)
            return answer(json.loads(request.body), 201)
        if request.method == "GET":
            name = path.rsplit("/", 1)[1]
            return answer(self.stored[name]) if name in self.stored else answer({"detail": "Found no"}, 404)
        return self.answer

    @property
    def sent(self):
        return json.loads(self.asked[-1].body)


def example(**changes):
    return json.loads(EXAMPLE.read_text()) | changes


def written(path, document):
    path.write_text(json.dumps(document))
    return str(path)


def target(host="http://hd.example", platform=None, **texts):
    """A target that is set up, and its inputs."""
    prepared = hetida.prepare({**TEXTS, **texts}, simulated=False)
    plan = Plan("hetida", host, {}, 1, 0, False, dict(prepared.options))
    found = hetida.from_plan(plan, prepared.package).set_up(platform or Platform())
    plan = Plan("hetida", host, {}, 1, 0, False, {**prepared.options, **found.options})
    return hetida.from_plan(plan), {each.name: each for each in found.inputs}


def run_of(**values):
    return Scenario("1", "a", values, {})


# --- inputs and wirings -----------------------------------------------------------------------------------------


def test_the_inputs_are_values_of_what_is_direct_and_parts_of_the_wirings_of_what_is_not():
    _, inputs = target(transformation=str(EXAMPLE))
    assert {name: each.type for name, each in inputs.items()} == {
        "window": InputType.INTEGER, "threshold": InputType.DOUBLE,
        "series.ref_id": InputType.STRING, "series.timestampFrom": InputType.STRING,
        "series.timestampTo": InputType.STRING, "anomalies.ref_id": InputType.STRING,
    }  # fmt: skip
    assert not any(each.required for each in inputs.values()), "the test wiring has a value for each"


def test_a_scenario_fills_the_wiring_and_leaves_the_rest_as_it_was():
    platform = Platform()
    backend, _ = target(transformation=str(EXAMPLE), platform=platform)
    values = {"window": 5, "series.ref_id": "p7", "series.timestampTo": "2026-02-01T00:00:00Z", "anomalies.ref_id": "s"}
    backend.submit(run_of(**values), platform)
    wired = {each["workflow_input_name"]: each for each in platform.sent["wiring"]["input_wirings"]}
    assert wired["window"]["filters"] == {"value": "5"}
    assert wired["threshold"]["filters"] == {"value": "3.0"}
    assert wired["series"] == {
        **example()["test_wiring"]["input_wirings"][0],
        "ref_id": "p7",
        "filters": {"timestampFrom": "2026-01-01T00:00:00.000000000Z", "timestampTo": "2026-02-01T00:00:00Z"},
    }
    assert {w["workflow_output_name"]: w.get("ref_id") for w in platform.sent["wiring"]["output_wirings"]} == {
        "score": None, "anomalies": "s",
    }  # fmt: skip
    backend.submit(run_of(), platform)
    assert platform.sent["wiring"]["input_wirings"][1]["filters"]["value"] == "30", "one scenario leaves no trace"


def test_an_input_without_a_wiring_needs_a_column(tmp_path):
    transformation = example(test_wiring={"input_wirings": [], "output_wirings": []})
    _, inputs = target(transformation=written(tmp_path / "t.json", transformation))
    assert {name: (each.type, each.required) for name, each in inputs.items()} == {
        "series": (InputType.STRUCT, True), "window": (InputType.INTEGER, True), "threshold": (InputType.DOUBLE, True),
    }  # fmt: skip


def test_an_optional_input_needs_none(tmp_path):
    transformation = example(test_wiring={})
    transformation["io_interface"]["inputs"][1]["type"] = "OPTIONAL"
    _, inputs = target(transformation=written(tmp_path / "t.json", transformation))
    assert not inputs["window"].required


@pytest.mark.parametrize(
    ("texts", "document", "says"),
    [
        ({}, None, "nothing to execute"),
        ({"transformation": "none.json"}, None, "can't be read"),
        ({}, b"{\n  nope", "line 2"),
        ({}, {"name": "x"}, "io_interface"),
        ({}, [1, 2], "not a transformation"),
        ({"mode": "runtime"}, {"id": "1", "type": "WORKFLOW", "io_interface": {"inputs": [], "outputs": []}}, "workflow without"),
        ({"revision-group": "g", "mode": "runtime"}, None, "backend's"),
        ({"transformation": "6b1f0c52-7c0e-4f55-9a53-6f1f3a1b7d01", "mode": "runtime"}, None, "knows no ids"),
        ({"transformation": str(EXAMPLE), "expect-output": "score <"}, None, "--expect-output"),
        ({"transformation": str(EXAMPLE), "expect-output": "score < three"}, None, "three"),
        ({"transformation": str(RECORDED / "runtime_request.json")}, None, "--mode runtime"),
    ],
)  # fmt: skip
def test_what_can_not_work_is_said_before_anything_is_asked(tmp_path, texts, document, says):
    if document is not None:
        path = tmp_path / "t.json"
        path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        texts = {**texts, "transformation": str(path)}
    with pytest.raises(ConfigError, match=says):
        hetida.prepare({**TEXTS, **texts}, simulated=False)


def test_a_wiring_that_does_not_fit_is_said_with_what_there_is(tmp_path):
    wiring = {"input_wirings": [{"workflow_input_name": "serie", "adapter_id": "plants"}]}
    with pytest.raises(ConfigError, match=r"'serie'.*\n.*series, window, threshold"):
        target(transformation=str(EXAMPLE), wiring=written(tmp_path / "w.json", wiring))
    wiring = {"input_wirings": [{"workflow_input_name": "window", "filters": {"value": "wide"}}]}
    with pytest.raises(ConfigError, match="'wide', which is not INT"):
        target(transformation=str(EXAMPLE), wiring=written(tmp_path / "w.json", wiring))


def test_an_adapter_that_the_backend_does_not_know_is_a_configuration_error(tmp_path):
    transformation = json.loads(json.dumps(example()).replace('"plants"', '"lost"'))
    with pytest.raises(ConfigError, match=r"lost.*\n.*plants, slow"):
        target(transformation=written(tmp_path / "t.json", transformation))


# --- set-up -----------------------------------------------------------------------------------------------------


def test_an_unknown_transformation_is_uploaded_from_its_file_once():
    platform = Platform()
    for _ in range(2):
        target(transformation=str(EXAMPLE), platform=platform)
    puts = [request for request in platform.asked if request.method == "PUT"]
    assert [request.path for request in puts] == [f"/api/transformations/{example()['id']}?update_component_code=False"]


def test_an_id_is_looked_up_and_executed():
    platform = Platform(**{example()["id"]: example()})
    backend, inputs = target(transformation=example()["id"], platform=platform)
    assert "window" in inputs
    backend.submit(run_of(), platform)
    assert platform.asked[-1].path == "/api/transformations/execute"
    assert platform.sent.keys() == recorded("backend_execute_request").keys()
    assert platform.sent["id"] == example()["id"]


def test_an_unknown_id_is_a_configuration_error():
    with pytest.raises(ConfigError, match="no transformation"):
        target(transformation="6b1f0c52-0000-4f55-9a53-6f1f3a1b7d01")


def test_a_revision_group_is_executed_at_its_latest_released_revision():
    group, newer = example()["revision_group_id"], example(id="2", name="newer", released_timestamp="2026-02-01")
    draft = example(id="3", name="draft", state="DRAFT", released_timestamp=None)
    platform = Platform(**{"1": example(), "2": newer, "3": draft})
    backend, _ = target(**{"revision-group": group}, platform=platform)
    ended = backend.submit(run_of(), platform)
    assert platform.asked[-1].path == "/api/transformations/execute-latest"
    assert platform.sent["revision_group_id"] == group
    assert ended.task == "newer"


def test_the_base_path_of_a_host_is_the_backends():
    platform = Platform()
    backend, _ = target("http://hd.example/hdapi", platform, transformation=str(EXAMPLE))
    backend.submit(run_of(), platform)
    assert platform.asked[-1].path == "/transformations/execute"


def test_a_refused_hello_asks_for_a_token_and_a_page_is_no_backend():
    with pytest.raises(TargetUnreachableError, match="PIPESWARM_TOKEN"):
        target(transformation=str(EXAMPLE), platform=lambda _: answer({"detail": "no"}, 401))
    with pytest.raises(TargetUnreachableError, match="HTML page"):
        target(transformation=str(EXAMPLE), platform=lambda _: answer(b"<html>"))


# --- executions -------------------------------------------------------------------------------------------------


def test_a_result_is_a_run_that_is_over_with_the_backends_phases():
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
    assert not isinstance(backend, Listing)


def test_the_phases_fill_the_exchange_exactly_and_what_nobody_measured_is_network_and_waiting():
    ended = Over("r", SUCCEEDED, "", "t", ((QUEUED, 0.1), (LOADING, 0.2), (COMPUTING, 0.3)), QUEUED, 0.01, "pod-1")
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
    ended = Over("r", SUCCEEDED, "", "t", ((LOADING, 2.0), (COMPUTING, 1.0)))
    spans = [record for record in ended.records(0, 10**9, "hetida") if isinstance(record, Span)]
    assert max(span.ended_at for span in spans) == 10**9


def test_a_runtime_is_handed_the_whole_input_and_names_its_worker_where_the_balancer_does():
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


def test_a_component_is_put_into_a_workflow_of_its_own_for_a_runtime():
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
    ended = hetida_answer.over(answer(said["body"]), "r", task="t", empty_s=0.0, expected=())
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
def test_a_request_that_is_refused_is_no_run(outcome, says):
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
        ("mean < 2", "expected mean < 2, found 2.5"), ("median", "no output 'median'"), ("rolled > 1", "expected rolled > 1"),
        ("mean == 2.5; rolled; mean >= 2", ""),
    ],
)  # fmt: skip
def test_outputs_can_be_asserted(expected, says):
    expectations = hetida_answer.parse_expectations(expected)
    ended = hetida_answer.over(answer(recorded("runtime_response")), "r", task="t", empty_s=0.0, expected=expectations)
    assert says in ended.error
    assert ended.state == (FAILED if says else SUCCEEDED)


# --- asynchronous -----------------------------------------------------------------------------------------------


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
def test_what_is_no_result_is_no_callback(body):
    backend, _ = target("http://127.0.0.1:1", mode="async", transformation=str(EXAMPLE))
    assert backend.read_callback(body) is None


def test_a_backend_elsewhere_must_be_told_where_to_call_back():
    with pytest.raises(ConfigError, match="--callback-url"):
        target(mode="async", transformation=str(EXAMPLE))
    with pytest.raises(ConfigError, match="no port"):
        target(mode="async", transformation=str(EXAMPLE), **{"callback-url": "http://me.example"})


def test_the_example_agrees_with_what_its_code_says_of_itself():
    namespace: dict = {}
    source = example()["content"].replace("import pandas as pd", "")
    exec(source, namespace)
    said = namespace["COMPONENT_INFO"]
    for side in ("inputs", "outputs"):
        ports = {port["name"]: {"data_type": port["data_type"]} for port in example()["io_interface"][side]}
        assert said[side] == ports
    assert said["id"] == example()["id"]


def test_the_examples_code_finds_the_value_that_lies_far_off():
    import pandas as pd

    namespace: dict = {}
    exec(example()["content"], namespace)
    series = pd.Series([1.0, 1.1, 0.9] * 10 + [9.0] + [1.0] * 5)
    found = namespace["main"](series=series, window=20, threshold=3.0)
    assert found["anomalies"].index.tolist() == [30]
    assert found["score"] > 3


def test_recorded_documents_are_read_leniently():
    """A newer version may add fields and steps, or leave out what it did not measure."""
    newer = copy.deepcopy(recorded("backend_execute_response"))
    newer["measured_steps"]["something_new"] = {"duration": 1.0}
    newer["measured_steps"]["send_data"] = None
    newer["more"] = 1
    ended = hetida_answer.over(answer(newer), "r", task="t", empty_s=0.0, expected=())
    assert SENDING not in dict(ended.phases)
    assert ended.state == SUCCEEDED
