"""A KFP for several users refuses as the real one does, and keeps their experiments, pipelines and runs apart."""

import json
import urllib.error
import urllib.request
import warnings
from pathlib import Path
from typing import Any

import kfp
import pytest

from harness.model.errors import ConfigError
from harness.simulator.profile.file import parse_profile
from tests.support.serving import QUICK, Serve, Served

TENANTS = """
tenants: [{namespace: team-a, owner: alice, quota: {pods: 50}}, {namespace: team-b, owner: bob}]
accounts:
  - {name: admin, token: adm1n}
  - {name: alice, token: al1ce}
  - {name: bob, token: b0b}
"""
EMPTY = "An experiment cannot have an empty namespace in multi-user mode"
OF_RUNS = "A run cannot have an empty namespace in multi-user mode"
DENIED = "User 'bob' is not authorized with reason:  (request: &ResourceAttributes{Namespace:team-a,Verb:list"


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    return serve(profile=QUICK + TENANTS)


@pytest.fixture(scope="module")
def client(served: Served) -> kfp.Client:
    """Alice's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kfp.Client(host=served.url, existing_token="al1ce", namespace="team-a")


def ask(served: Served, method: str, path: str, token: str = "al1ce", body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{served.url}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("method", "path", "token", "body", "status", "code", "words"),
    [
        ("GET", "/experiments", "al1ce", None, 400, 3,
         f"List experiments failed: Failed to authorize with API: Invalid input error: {EMPTY}"),
        ("POST", "/experiments", "al1ce", {"display_name": "e"}, 400, 3, f"Invalid input error: {EMPTY}"),
        ("GET", "/runs", "al1ce", None, 400, 3, f"Invalid input error: {OF_RUNS}"),
        ("POST", "/runs", "al1ce", {"display_name": "r"}, 400, 3, "Experiment id can not be empty in multi-user mode"),
        ("GET", "/experiments?namespace=team-a", "b0b", None, 403, 7, DENIED),
        ("GET", "/runs?namespace=team-a", "b0b", None, 403, 7,
         "Failed to list runs due to authorization error. Check if you have permission to access namespace team-a"),
        ("GET", "/pipelines?namespace=team-a", "b0b", None, 403, 7, "Failed to list pipelines in namespace team-a"),
        ("POST", "/experiments", "b0b", {"display_name": "e", "namespace": "team-a"}, 403, 7, "PermissionDenied"),
        ("GET", "/experiments?namespace=team-a", "adm1n", None, 403, 7, "User 'admin' is not authorized"),
        ("GET", "/experiments?namespace=team-a", "", None, 401, 16, "User identity is empty in the request header"),
        ("GET", "/experiments?namespace=team-a", "wrong", None, 401, 16, "Unauthenticated"),
    ],
)  # fmt: skip
def test_a_call_without_namespace_user_or_right_is_refused(
    served: Served, method: str, path: str, token: str, body: object, status: int, code: int, words: str
) -> None:
    found, error = ask(served, method, f"/apis/v2beta1{path}", token, body)
    assert (found, error["code"]) == (status, code)
    assert words in error["message"]


def test_users_have_experiments_of_the_same_name_and_runs_of_their_own(
    served: Served, client: kfp.Client, training: Path
) -> None:
    assert ask(served, "GET", "/apis/v2beta1/healthz")[1]["multi_user"] is True
    own = client.create_experiment("same", namespace="team-a")
    other = ask(served, "POST", "/apis/v2beta1/experiments", "b0b", {"display_name": "same", "namespace": "team-b"})[1]
    assert (own.namespace, other["namespace"]) == ("team-a", "team-b")
    run = client.run_pipeline(own.experiment_id, "r", str(training))
    assert run.service_account == "default-editor"
    assert [each.run_id for each in client.list_runs(namespace="team-a").runs] == [run.run_id]
    assert ask(served, "GET", "/apis/v2beta1/runs?namespace=team-b", "b0b")[1] == {}
    path = f"/apis/v2beta1/runs/{run.run_id}"
    for method, verb in (("GET", ""), ("POST", ":terminate"), ("POST", ":archive"), ("DELETE", "")):
        assert ask(served, method, path + verb, "b0b")[0] == 403, verb
    workflows = "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows"
    assert len(ask(served, "GET", workflows.format("team-a"), "adm1n")[1]["items"]) == 1
    assert not ask(served, "GET", workflows.format("kubeflow"), "adm1n")[1]["items"]


def test_a_tenants_quota_is_an_object_of_its_namespace_with_kubeflows_name(served: Served) -> None:
    quotas = ask(served, "GET", "/api/v1/resourcequotas", "adm1n")[1]["items"]
    found = [(each["metadata"]["namespace"], each["metadata"]["name"], each["spec"]["hard"]) for each in quotas]
    assert found == [("team-a", "kf-resource-quota", {"pods": "50"})]


def test_an_upload_into_a_foreign_namespace_is_refused_without_a_reason(served: Served, training: Path) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="uploadfile"; filename="p.yaml"\r\n\r\n'
    headers = {"Authorization": "Bearer b0b", "Content-Type": "multipart/form-data; boundary=x"}
    url = f"{served.url}/apis/v2beta1/pipelines/upload?namespace=team-a"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(
            urllib.request.Request(url, part + training.read_bytes() + b"\r\n--x--\r\n", headers, method="POST")
        )
    assert refused.value.code == 400
    assert b"Failed to create a pipeline" in refused.value.read()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("tenants: [{namespace: a}, {namespace: a}]", "tenants[1].namespace: there are two tenants 'a'"),
        ("tenants: [{namespace: A_b}]", "tenants[0].namespace: 'A_b' can't be"),
        ("tenants: [{namespace: kubeflow}]", "tenants[0].namespace: 'kubeflow' can't be"),
        ("tenants: [{namespace: a, owner: x}]", "tenants[0].owner: there is no account 'x'"),
        ("tenants: [{namespace: a}]\nhetida: {}", "tenants: only KFP and Argo have tenants"),
    ],
)
def test_impossible_tenants_are_refused_with_their_line(text: str, where: str) -> None:
    with pytest.raises(ConfigError, match=where.replace("[", r"\[")):
        parse_profile(text, "x.yaml", "x")
