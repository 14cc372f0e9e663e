"""The objects of Dask tenants at a real kube-apiserver, with the operator's types in minimal form, and its quotas."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import urllib3

from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import FAILED
from harness.model.scenario import Scenario
from harness.targets.dask_tenants.kube import KubeTenants
from harness.targets.dask_tenants.objects import Recipe, dask_autoscaler, dask_cluster, resources_of, stage_pod
from harness.targets.scenarios import Input, InputType
from harness.targets.target import RejectedError
from tests.support.real_kubernetes import RealCluster, admin
from tests.support.real_parts.kube import ANYTHING, Kube, RefusedError, crd, types
from tests.support.servers import until

GROUP = "kubernetes.dask.org"
ROOT = f"/apis/{GROUP}/v1"
RECIPE = Recipe("image", resources_of("cpu=1,nvidia.com/gpu=1"), ("dask-worker",), "t1", 900)
INPUTS = tuple(
    Input(name, kind, required=False, default=default)
    for name, kind, default in (
        ("width", InputType.INTEGER, 2), ("tasks", InputType.INTEGER, 4), ("task_s", InputType.DOUBLE, 1.0),
        ("variation", InputType.DOUBLE, 0.0),
    )
)  # fmt: skip
# What the definitions of release 2025.7 require, and the fields beside pods; everything else is pruned as there.
POD_SPEC = {"type": "object", "required": ["containers"], "properties": {"containers": {
    "type": "array", "items": {**ANYTHING, "required": ["name"], "properties": {"name": {"type": "string"}}},
}, "tolerations": {"type": "array", "items": ANYTHING}}}  # fmt: skip
CLUSTER_SPEC = {"type": "object", "required": ["scheduler", "worker"], "properties": {
    "idleTimeout": {"type": "integer"},
    "worker": {"type": "object", "required": ["spec"], "properties": {
        "replicas": {"type": "integer"}, "spec": POD_SPEC,
    }},
    "scheduler": {"type": "object", "required": ["spec", "service"], "properties": {
        "spec": POD_SPEC, "service": ANYTHING,
    }},
}}  # fmt: skip
AUTOSCALER_SPEC = {"type": "object", "required": ["cluster", "minimum", "maximum"], "properties": {
    "cluster": {"type": "string"}, "minimum": {"type": "integer"}, "maximum": {"type": "integer"},
}}  # fmt: skip
KINDS = (("DaskCluster", CLUSTER_SPEC), ("DaskAutoscaler", AUTOSCALER_SPEC))


def type_of(kind: str, spec: dict) -> dict:
    whole = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": ANYTHING}}
    return crd(kind, api=f"{GROUP}/v1", schema=whole)


class Server:
    """The API server as an exchange, as its administrator."""

    def __init__(self, cluster: RealCluster) -> None:
        self._url = cluster.url
        self._http = urllib3.PoolManager(ca_certs=str(cluster.ca))
        self._token = cluster.token

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **request.headers}
        answer = self._http.request(request.method, self._url + request.path, body=request.body, headers=headers)
        return HttpAnswer(answer.status, answer.data)


@pytest.fixture(scope="module")
def kube(real_cluster: RealCluster) -> Iterator[Kube]:
    kube = admin(real_cluster)
    for name in ("dask-free", "dask-full", "dask-no-pods"):
        kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    with types(kube, *(type_of(*each) for each in KINDS)):
        yield kube


@pytest.fixture
def server(kube: Kube, real_cluster: RealCluster) -> Server:
    return Server(real_cluster)


def limit(kube: Kube, namespace: str, **hard: str) -> None:
    """Create a quota whose status says that nothing is used.

    The controller counts a kind of objects only after it has discovered the kind, which can take minutes for types as
    young as these; until then the API server refuses them with "status unknown for quota".
    """
    limits = {name.replace("_", "/"): n for name, n in hard.items()}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    with suppress(RefusedError):  # it is there
        kube.create(path, {"metadata": {"name": "small"}, "spec": {"hard": limits}})
    until(lambda: kube.get(f"{path}/small").get("status", {}).get("hard"), "the controller has looked at it")
    if kube.get(f"{path}/small")["status"].get("used", {}).keys() != limits.keys():
        kube.patch(f"{path}/small/status", {"status": {"hard": limits, "used": dict.fromkeys(limits, "0")}})


def tenants(pauses: list[float]) -> KubeTenants:
    """Whose clock advances only while they pause."""
    return KubeTenants(RECIPE, "dask-free", "", INPUTS, 5.0, clock=lambda: sum(pauses), pause=pauses.append)


def test_the_api_server_takes_the_objects_and_prunes_nothing_of_them(kube):
    made = dask_cluster(RECIPE, "dask-free", "mine")
    shown = kube.create(f"{ROOT}/namespaces/dask-free/daskclusters", made)
    assert shown["spec"] == made["spec"], shown
    scaled = dask_autoscaler(RECIPE, "dask-free", "mine", 3)
    assert kube.create(f"{ROOT}/namespaces/dask-free/daskautoscalers", scaled)["spec"] == scaled["spec"]
    pod = stage_pod(RECIPE, "dask-free", shown, 3, {"tasks": 4, "task_s": 1.0, "variation": 0.0})
    there = kube.create("/api/v1/namespaces/dask-free/pods?fieldValidation=Strict", pod)
    assert there["kind"] == "Pod", there
    assert there["metadata"]["labels"]["dask.org/cluster-name"] == "mine"
    assert there["metadata"]["ownerReferences"][0]["uid"] == shown["metadata"]["uid"]
    for component in ("worker", "scheduler"):  # their templates are those of pods, too
        template = {"metadata": {"name": component}, "spec": made["spec"][component]["spec"]}
        trial = kube.create("/api/v1/namespaces/dask-free/pods?dryRun=All&fieldValidation=Strict", template)
        assert trial["kind"] == "Pod", trial


def test_a_session_finds_its_types_and_is_closed_where_no_operator_acts(server, kube):
    pauses: list[float] = []
    target = tenants(pauses)
    target.set_up(server)
    run = target.submit(Scenario("1", "a", {}, {}, "dask-free"), server)
    assert run.state == FAILED
    assert "its pods were not ready" in run.error
    names = [each["metadata"]["name"] for each in kube.get(f"{ROOT}/daskclusters")["items"]]
    assert run.run not in names


def test_a_namespace_that_is_not_there_is_named(server):
    with pytest.raises(RejectedError, match=r'namespaces "nowhere" not found: create it with kubectl create namespace'):
        tenants([]).submit(Scenario("1", "a", {}, {}, "nowhere"), server)


def test_a_quota_that_is_used_up_is_named(server, kube):
    for _ in range(60):  # until admission has seen the count
        limit(kube, "dask-full", **{"count_daskclusters.kubernetes.dask.org": "0"})
        with pytest.raises(RejectedError) as no:
            tenants([]).submit(Scenario("1", "a", {}, {}, "dask-full"), server)
        if "has not been counted yet" not in no.value.message:
            break
        time.sleep(0.2)
    assert re.match("namespace dask-full: the quota small is used up: .*exceeded quota: small", no.value.message)
    assert no.value.status == 403


def test_a_quota_without_room_for_the_stage_s_pod_fails_the_run_and_names_it(server, kube):
    limit(kube, "dask-no-pods", pods="0")
    ready = {"type": "Ready", "status": "True"}

    def exchange(request: HttpRequest) -> HttpAnswer:
        """The server, where the operator's pods seem to be ready."""
        if request.method == "GET" and urlsplit(request.path).path.endswith("/pods"):
            pods = [
                {"metadata": {"name": f"{k}", "labels": {"dask.org/component": component}}, "status": {"conditions": [ready]}}
                for k, component in enumerate(("scheduler", "worker", "worker"))
            ]  # fmt: skip
            closed = not any(each["metadata"]["namespace"] == "dask-no-pods" for each in clusters())
            return HttpAnswer(200, json.dumps({"items": [] if closed else pods}).encode())
        return server(request)

    def clusters() -> list[dict]:
        return kube.get(f"{ROOT}/daskclusters")["items"]

    run = tenants([]).submit(Scenario("1", "a", {}, {}, "dask-no-pods"), exchange)
    assert run.state == FAILED
    assert run.error.startswith("namespace dask-no-pods: the quota small is used up: pods ")
