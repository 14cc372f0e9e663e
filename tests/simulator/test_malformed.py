"""Whatever is asked of the served simulator, it refuses what it can't use: no request makes it trip.

Requests that are right are spoiled in some places: a part is left out, or is something else. An answer may be a 500
where the real service has one, too, but never for want of an answer.
"""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kfp_api import UNKNOWN
from tests.support.serving import QUICK, Serve, Served

ROOT = Path(__file__).parents[2]
HETIDA = """
hetida:
  runtime: {nodes: 1, cores: 4, replicas: 1, workers: 1, timeout_s: 200ms, boot_s: 1ms}
  backend: {prepare_s: 0.1ms}
  adapters: [{id: plants}]
  executions: [{load: 0.1ms, compute: {uniform: [0.1ms, 0.2ms], parameter: busy_ms, per: 1000}, send: 0.1ms}]
"""
REQUEST = json.loads((ROOT / "tests/support/recorded_hetida/runtime_request.json").read_text())
TRANSFORMATION = json.loads((ROOT / "harness/targets/anomaly_detection.json").read_text())
STORED = f"/api/transformations/{TRANSFORMATION['id']}"
RANGE = {"id": "plant-0001/flow", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:05:00Z"}
ROW = {"timestamp": "2026-01-01T00:01:00Z", "value": 1.0}
SPEC = next(yaml.safe_load_all((ROOT / "harness/targets/training.yaml").read_text()))
POD = "/api/v1/namespaces/kubeflow/pods"
FILTER = {"predicates": [{"operation": "EQUALS", "key": "name", "string_value": "r"}]}

# Texts that mean something to one part or another, and what JSON has else.
_TEXTS = st.sampled_from(
    ["", "nan", "inf", "-1", "1e400", "9" * 400, "{", "[]", "null", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z",
     "direct_provisioning", "plants", "http://[", "%00", "a/b", "\ud7ff", "*", "SERIES", "INT", "0"]
)  # fmt: skip
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64), st.floats(allow_nan=False), _TEXTS)
ANYTHING = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2), max_leaves=4
)


def places(document: Any) -> list[tuple[Any, Any]]:
    """Each (container, key) within a document."""
    keys = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    return [found for key in keys for found in ((document, key), *places(document[key]))]


@st.composite
def spoiled(draw: st.DrawFn, document: Any) -> Any:
    """The document with up to three parts left out or changed."""
    copy = [json.loads(json.dumps(document))]
    for _ in range(draw(st.integers(1, 3))):
        found = places(copy)
        if found:
            container, key = draw(st.sampled_from(found))
            if isinstance(container, dict) and draw(st.booleans()):
                del container[key]
            else:
                container[key] = draw(ANYTHING)
    return copy[0] if copy else None


def query(values: Any) -> str:
    pairs = values.items() if isinstance(values, dict) else ()
    return "&".join(f"{quote(str(name))}={quote(v if isinstance(v, str) else json.dumps(v))}" for name, v in pairs)


# What is asked: method, path, query, body.
ASKED: dict[str, tuple[str, str, Any, Any]] = {
    "runtime": ("POST", "/engine/runtime", {}, REQUEST),
    "transformation": ("PUT", STORED, {}, TRANSFORMATION),
    "execution": ("POST", "/api/transformations/execute", {}, {"id": TRANSFORMATION["id"], "job_id": "j", "wiring": TRANSFORMATION["test_wiring"]}),
    "latest": ("POST", "/hdapi/transformations/execute-latest", {}, {"revision_group_id": TRANSFORMATION["revision_group_id"]}),
    "later": ("POST", "/api/transformations/execute-async", {"callback_url": "http://127.0.0.1:9/"}, {"id": TRANSFORMATION["id"]}),
    "list": ("GET", "/api/transformations/", {"revision_group_id": "x"}, None),
    "series": ("GET", "/adapters/plants/timeseries", RANGE, None),
    "frame": ("GET", "/adapters/plants/dataframe", RANGE, None),
    "many series": ("GET", "/adapters/plants/multitsframe", RANGE, None),
    "sent series": ("POST", "/adapters/plants/timeseries", {"timeseriesId": RANGE["id"]}, [ROW]),
    "sent frame": ("POST", "/adapters/plants/dataframe", {"id": RANGE["id"]}, [ROW]),
    "metadata": ("POST", "/adapters/plants/sources/x/metadata/y", {}, {"key": "y", "value": 1}),
    "run": ("POST", "/apis/v2beta1/runs", {}, {"display_name": "r", "pipeline_spec": SPEC, "runtime_config": {"parameters": {"rate": 1}}}),
    "runs": ("GET", "/apis/v2beta1/runs", {"page_size": "5", "sort_by": "created_at desc", "filter": FILTER, "page_token": "", "experiment_id": UNKNOWN}, None),
    "experiment": ("POST", "/apis/v2beta1/experiments", {}, {"display_name": "e"}),
    "pods": ("GET", POD, {"limit": "5", "continue": "", "labelSelector": "a in (b)", "fieldSelector": "spec.nodeName=x", "resourceVersion": "0", "resourceVersionMatch": "Exact"}, None),
    "scale": ("PATCH", "/apis/apps/v1/namespaces/kubeflow/deployments/ml-pipeline", {"fieldManager": "x"}, {"spec": {"replicas": 1, "template": {"metadata": {"annotations": {"a": "b"}}}}}),
    "cordon": ("PATCH", "/api/v1/nodes/pool-1", {}, {"spec": {"unschedulable": False}, "metadata": {"labels": {"a": "b"}}}),
    "logs": ("GET", f"{POD}/none/log", {"container": "main", "tailLines": "1", "sinceSeconds": "1", "limitBytes": "3"}, None),
    "review": ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}, {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
}  # fmt: skip
PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


@pytest.fixture(scope="module")
def server(serve: Serve) -> Iterator[Served]:
    served = serve(profile=QUICK + HETIDA)
    yield served
    served.process.terminate()
    assert served.process.stderr is not None
    assert "Traceback" not in served.process.stderr.read()  # nor did what goes on after an answer


def ask(
    server: Served, method: str, path: str, raw: bytes | None, content: str = "application/json"
) -> tuple[int, str]:
    """Status and text of the answer; 0 where the connection closed without one, as killed runtimes do."""
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        connection.request(method, path, raw, {"Content-Type": content})
        try:
            answer = connection.getresponse()
        except http.client.RemoteDisconnected:
            return 0, ""
        return answer.status, answer.read().decode(errors="replace")


@pytest.mark.parametrize("name", ASKED)
@settings(max_examples=30)
@given(data=st.data())
def test_no_request_makes_it_trip(name: str, server: Served, data: st.DataObject) -> None:
    method, path, given_query, body = ASKED[name]
    asked = query(data.draw(spoiled(given_query), "query")) if given_query else ""
    raw = None if body is None else json.dumps(data.draw(spoiled(body), "body")).encode()
    content = data.draw(st.sampled_from(PATCHES), "type") if method == "PATCH" else "application/json"
    status, text = ask(server, method, f"{path}?{asked}" if asked else path, raw, content)
    assert "got itself in trouble" not in text
    if method == "PUT" and status == 201:  # what was stored can be executed, or that is refused
        status, text = ask(
            server, "POST", "/api/transformations/execute", json.dumps({"id": TRANSFORMATION["id"]}).encode()
        )
        assert "got itself in trouble" not in text
    assert status or name == "runtime"
