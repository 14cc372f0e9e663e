"""A KFP for several users keeps their experiments, pipelines and runs apart."""

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

TENANTS = "tenants: [{namespace: team-a, quota: {pods: 50}}, {namespace: team-b}]\n"
EMPTY = "Invalid input error: An experiment cannot have an empty namespace in multi-user mode"


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    return serve(profile=QUICK + TENANTS)


@pytest.fixture(scope="module")
def client(served: Served) -> kfp.Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kfp.Client(host=served.url, existing_token="any", namespace="team-a")


def ask(served: Served, method: str, path: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{served.url}{path}", data, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("GET", "/experiments", None, EMPTY),
        ("POST", "/experiments", {"display_name": "e"}, EMPTY),
        ("GET", "/runs", None, "Invalid input error: A run cannot have an empty namespace in multi-user mode"),
        ("POST", "/runs", {"display_name": "r"}, "Experiment id can not be empty in multi-user mode"),
    ],
)
def test_a_call_without_namespace_is_refused(served: Served, method: str, path: str, body: object, words: str) -> None:
    found, error = ask(served, method, f"/apis/v2beta1{path}", body)
    assert (found, error["code"]) == (400, 3)
    assert words in error["message"]


def test_users_have_experiments_of_the_same_name_and_runs_of_their_own(
    served: Served, client: kfp.Client, training: Path
) -> None:
    assert ask(served, "GET", "/apis/v2beta1/healthz")[1]["multi_user"] is True
    own = client.create_experiment("same", namespace="team-a")
    other = ask(served, "POST", "/apis/v2beta1/experiments", {"display_name": "same", "namespace": "team-b"})[1]
    assert (own.namespace, other["namespace"]) == ("team-a", "team-b")
    run = client.run_pipeline(own.experiment_id, "r", str(training))
    assert run.service_account == "default-editor"
    assert [each.run_id for each in client.list_runs(namespace="team-a").runs] == [run.run_id]
    assert ask(served, "GET", "/apis/v2beta1/runs?namespace=team-b")[1] == {}
    workflows = "/apis/argoproj.io/v1alpha1/namespaces/{}/workflows"
    assert len(ask(served, "GET", workflows.format("team-a"))[1]["items"]) == 1
    assert not ask(served, "GET", workflows.format("kubeflow"))[1]["items"]


def test_a_tenants_quota_is_an_object_of_its_namespace_with_kubeflows_name(served: Served) -> None:
    quotas = ask(served, "GET", "/api/v1/resourcequotas")[1]["items"]
    found = [(each["metadata"]["namespace"], each["metadata"]["name"], each["spec"]["hard"]) for each in quotas]
    assert found == [("team-a", "kf-resource-quota", {"pods": "50"})]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("tenants: [{namespace: a}, {namespace: a}]", "tenants[1].namespace: there are two tenants 'a'"),
        ("tenants: [{namespace: A_b}]", "tenants[0].namespace: 'A_b' can't be"),
        ("tenants: [{namespace: kubeflow}]", "tenants[0].namespace: 'kubeflow' can't be"),
        ("tenants: [{namespace: a}]\nhetida: {}", "tenants: only KFP and Argo have tenants"),
    ],
)
def test_impossible_tenants_are_refused_with_their_line(text: str, where: str) -> None:
    with pytest.raises(ConfigError, match=where.replace("[", r"\[")):
        parse_profile(text, "x.yaml", "x")
