"""The served endpoints against the shapes that were recorded from the real services (version 0.9.8)."""

import asyncio
import json
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import aiohttp
import pytest

from harness.model.http import HttpAnswer
from tests.support.servers import serving, until

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests/support/recorded_hetida"
PROFILE = """
pools: [{name: runtime, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
hetida:
  runtime: {nodes: 1, cores: 4, replicas: 1, workers: 1, timeout_s: 1.5s, boot_s: 100ms}
  backend: {prepare_s: 1ms}
  adapters: [{id: plants}, {id: slow}]
  executions:
    - {match: raises, load: 1ms, compute: 1ms, send: 1ms, failing: 1}
    - {match: hangs, load: 1ms, compute: 60s, send: 1ms}
    - {load: 1ms, compute: 10ms, send: 1ms}
"""


def recorded(name):
    return json.loads((RECORDED / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def url(serve):
    return serve(profile=PROFILE).url


def call(url, method, path, body=None):
    """Status and parsed body; raises ClientError when the connection closes without an answer."""

    async def ask():
        async with aiohttp.ClientSession() as session:
            raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            async with session.request(method, url + path, data=raw, headers={"content-type": "application/json"}) as a:
                text = await a.text()
                return a.status, json.loads(text) if a.content_type == "application/json" else text

    return asyncio.run(ask())


def shape(value):
    """Names and types, whatever the values."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, bool) or value is None:
        return "null or bool"
    if isinstance(value, int | float):
        return "number"
    return type(value).__name__


def same_but_for_outputs(found, real):
    """Outputs are the simulation's own; everything else has the recorded shape."""
    real, found = dict(real), dict(found)
    assert real.pop("output_results_by_output_name").keys() == found.pop("output_results_by_output_name").keys()
    assert shape(found) == shape(real)


def transformation(name="Rolling", **more):
    document = json.loads((ROOT / "harness/targets/anomaly_detection.json").read_text())
    return document | {"name": name, "id": str(uuid5(NAMESPACE_URL, name))} | more


def runtime_request(name="wf"):
    request = recorded("runtime_request")
    request["workflow"]["tr_name"] = name
    return request


def test_a_runtimes_result_has_the_recorded_shape(url):
    status, found = call(url, "POST", "/engine/runtime", recorded("runtime_request"))
    assert status == 200
    same_but_for_outputs(found, recorded("runtime_response"))
    steps = found["measured_steps"]
    assert steps["pure_execution"]["duration"] == pytest.approx(0.01, abs=2e-3)
    assert steps["runtime_service_handling"]["start"] <= steps["load_data"]["start"] <= steps["pure_execution"]["start"]


@pytest.mark.parametrize("base", ["/api", "/hdapi"])
def test_a_backends_result_has_the_recorded_shape(url, base):
    document = transformation("Backend")
    assert call(url, "PUT", f"{base}/transformations/{document['id']}?update_component_code=False", document)[0] == 201
    status, found = call(url, "POST", f"{base}/transformations/execute", {"id": document["id"], "job_id": "j"})
    real = recorded("backend_execute_response")
    assert status == 200
    assert found.keys() == real.keys()
    assert shape(found["measured_steps"]) == shape(real["measured_steps"])
    assert {name: step["name"] for name, step in found["measured_steps"].items()} == {
        name: step["name"] for name, step in real["measured_steps"].items()
    }
    assert found["job_id"] == "j"


@pytest.mark.parametrize("outcome", ["missing wiring", "schema error", "broken json"])
def test_requests_are_refused_as_the_real_runtime_does(url, outcome):
    request, real = recorded("runtime_request"), recorded("runtime_outcomes")[outcome]
    if outcome == "missing wiring":
        request["workflow_wiring"]["input_wirings"].pop()
    elif outcome == "schema error":
        del request["workflow"]
    body = b"{nope" if outcome == "broken json" else request
    status, found = call(url, "POST", "/engine/runtime", body)
    assert status == real["status"] == 422
    if outcome == "broken json":
        assert found["detail"][0]["type"] == real["body"]["detail"][0]["type"]
    else:
        assert found == real["body"]


def test_an_operator_that_raises_is_a_failure_with_traceback_and_without_steps(url):
    status, found = call(url, "POST", "/engine/runtime", runtime_request("raises"))
    real = recorded("runtime_outcomes")["component raises"]["body"]
    assert status == 200
    assert shape(found) == shape(real)
    assert found["measured_steps"] == real["measured_steps"]
    assert found["traceback"].startswith("Traceback")


@pytest.mark.parametrize(("outcome", "adapter", "value"), [("unknown adapter", "nowhere", "1"), ("wrong type of value", "direct_provisioning", "abc")])  # fmt: skip
def test_requests_that_the_runtime_refuses_are_failures(url, outcome, adapter, value):
    request = recorded("runtime_request")
    request["workflow_wiring"]["input_wirings"][1] |= {"adapter_id": adapter, "filters": {"value": value}}
    status, found = call(url, "POST", "/engine/runtime", request)
    real = recorded("runtime_outcomes")[outcome]["body"]
    assert status == 200
    assert found.keys() == real.keys()
    assert (found["result"], found["error"]["type"]) == (real["result"], real["error"]["type"])
    assert found["error"]["process_stage"] == real["error"]["process_stage"]


def test_a_worker_past_its_timeout_closes_the_connection_and_the_backend_says_500(url):
    with pytest.raises(aiohttp.ClientError):
        call(url, "POST", "/engine/runtime", runtime_request("hangs"))
    document = transformation("hangs")
    call(url, "PUT", f"/api/transformations/{document['id']}", document)
    status, found = call(url, "POST", "/api/transformations/execute", {"id": document["id"]})
    assert status == 500
    assert isinstance(found["detail"], str)


def test_unknown_transformations_are_404_and_documents_are_checked(url):
    assert call(url, "GET", "/api/transformations/none")[0] == 404
    assert call(url, "POST", "/api/transformations/execute", {"id": "none"})[0] == 404
    assert call(url, "POST", "/api/transformations/execute-latest", {"revision_group_id": "none"})[0] == 404
    assert call(url, "POST", "/api/transformations/execute", {})[0] == 422
    assert call(url, "PUT", "/api/transformations/x", {"id": "x"})[0] == 422
    assert call(url, "PUT", "/api/transformations/x", transformation())[0] == 400
    document = transformation() | {"description": "one plant's sensor"}
    status, refused = call(url, "PUT", f"/api/transformations/{document['id']}", document)
    assert (status, refused["detail"][0]["loc"]) == (422, ["body", "description"])
    for interface in (None, [], {"inputs": 1}, {"outputs": [{"name": "without a type"}]}):
        document = transformation() | {"io_interface": interface}
        status, refused = call(url, "PUT", f"/api/transformations/{document['id']}", document)
        assert (status, refused["detail"][0]["loc"][:2]) == (422, ["body", "io_interface"])


def test_the_latest_released_revision_of_a_group_is_executed(url):
    for name, state, released in (
        ("old", "RELEASED", "2026-01-01"),
        ("new", "RELEASED", "2026-02-01"),
        ("draft", "DRAFT", None),
    ):
        document = transformation(name, revision_group_id="group", state=state, released_timestamp=released)
        document["io_interface"]["outputs"] = [{"id": "1", "name": name, "data_type": "INT"}]
        document["test_wiring"]["output_wirings"] = []
        call(url, "PUT", f"/api/transformations/{document['id']}", document)
    _, found = call(url, "POST", "/api/transformations/execute-latest", {"revision_group_id": "group"})
    assert list(found["output_results_by_output_name"]) == ["new"]
    assert len(call(url, "GET", "/api/transformations/?revision_group_id=group")[1]) == 3


def test_health_and_adapters_are_served_beside_kubernetes(url):
    assert call(url, "GET", "/engine/info")[0] == 200
    adapters = {each["id"]: each["internalUrl"] for each in call(url, "GET", "/api/adapters/")[1]}
    assert adapters == {name: f"{url}/adapters/{name}" for name in ("plants", "slow")}
    assert call(adapters["plants"], "GET", "/sources/plant-0001/flow")[1]["id"] == "plant-0001/flow"
    assert call(adapters["plants"], "GET", "/sources/?filter=flow")[1]["resultCount"] == 100
    rows = "/timeseries?id=a&from=2026-01-01T00:00:00Z&to=2026-01-01T00:01:00Z"
    assert len(call(adapters["plants"], "GET", rows)[1].splitlines()) == 2
    assert call(url, "GET", "/api/v1/nodes")[1]["kind"] == "NodeList"


def test_an_asynchronous_execution_is_answered_at_once_and_called_back_with_its_result(url):
    received = []

    def receive(request):
        received.append(json.loads(request.body))
        return HttpAnswer(204, b"")

    document = transformation("Async")
    call(url, "PUT", f"/api/transformations/{document['id']}", document)
    with serving(receive) as receiver:
        path = f"/api/transformations/execute-async?callback_url={receiver}/"
        assert call(url, "POST", path, {"id": document["id"], "job_id": "j7"})[0] == 202
        until(lambda: received, "the callback")
    assert received[0].keys() == recorded("backend_execute_response").keys()
    assert received[0]["job_id"] == "j7"
    assert call(url, "POST", "/api/transformations/execute-async", {"id": document["id"]})[0] == 422
