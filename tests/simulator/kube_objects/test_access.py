"""The accounts of a profile, and the rights that an operator gives them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from kubernetes import client, config

from harness.simulator.kube_objects.access import users
from harness.simulator.profile import Account, Profile
from harness.simulator.profile.file import parse_profile
from harness.simulator.serve import write_kubeconfig
from tests.support.skipping import Skippable, skippable

PROFILE = """
pools: [{name: pool, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
accounts:
  - {name: admin, token: a, groups: ["system:masters"]}
  - {name: "system:serviceaccount:kubeflow:pipeswarm-observer", token: o}
"""
OBSERVER = "system:serviceaccount:kubeflow:pipeswarm-observer"
RIGHTS = Path(__file__).parents[3] / "deploy" / "rbac.yaml"
NAMESPACED = "/api/v1/namespaces/kubeflow"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Skippable]:
    with skippable(parse_profile(PROFILE, "the profile", "guarded")) as platform:
        yield platform


def status(url: str, token: str | None) -> int:
    request = Request(url, headers={} if token is None else {"Authorization": f"Bearer {token}"})
    try:
        with urlopen(request) as answer:
            return answer.status
    except HTTPError as error:
        with error:
            return error.code


@pytest.fixture(scope="module")
def kubeconfig(guarded: Skippable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guarded") / "config"
    write_kubeconfig(path, guarded.url, parse_profile(PROFILE, "the profile", "guarded"))
    return path


def kubectl(kubeconfig: Path, context: str, *arguments: str) -> Any:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ["kubectl", f"--kubeconfig={kubeconfig}", f"--context={context}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_an_account_gets_its_rights_from_the_objects_that_an_operator_applies(
    guarded: Skippable, kubeconfig: Path
) -> None:
    pods, nodes = f"{guarded.url}{NAMESPACED}/pods", f"{guarded.url}/api/v1/nodes"
    assert (status(pods, "a"), status(pods, "o"), status(pods, None), status(pods, "x")) == (200, 403, 403, 401)
    said = kubectl(kubeconfig, "admin", "apply", "-f", str(RIGHTS))
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.count("created") == 3
    assert (status(pods, "o"), status(nodes, "o")) == (200, 200)
    assert status(f"{guarded.url}{NAMESPACED}/configmaps", "o") == 403
    assert status(f"{guarded.url}/apis/unknown.example/v1/things", "o") == 403
    assert status(f"{guarded.url}/apis/unknown.example/v1/things", "a") == 404
    allowed = kubectl(kubeconfig, OBSERVER, "auth", "can-i", "list", "workflows.argoproj.io", "-A")
    denied = kubectl(kubeconfig, OBSERVER, "auth", "can-i", "delete", "pods", "-n", "kubeflow")
    assert (allowed.stdout.split(), denied.stdout.split()) == (["yes"], ["no"])
    assert "unchanged" in kubectl(kubeconfig, "admin", "apply", "-f", str(RIGHTS)).stdout
    api = config.new_client_from_config(str(kubeconfig), context=OBSERVER)
    with api:
        assert client.CoreV1Api(api).list_namespaced_pod("kubeflow").items
    gone = kubectl(kubeconfig, "admin", "delete", "clusterrolebinding", "pipeswarm-observer")
    assert gone.returncode == 0, gone.stderr
    assert status(pods, "o") == 403


def test_the_kfp_api_and_its_metrics_need_no_account(guarded: Skippable) -> None:
    assert status(f"{guarded.url}/apis/v2beta1/healthz", None) == 200
    assert status(f"{guarded.url}/metrics", None) == 200
    assert status(f"{guarded.url}/metrics", "o") == 403  # that of the Kubernetes API server, for its clients


def test_a_service_account_is_in_the_groups_of_all_and_of_its_namespace() -> None:
    profile = Profile("p", accounts=(Account("system:serviceaccount:a:b", "t"), Account("u", "v", ("g",))))
    found = users(profile)
    assert found["t"].groups == ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated")
    assert found["v"].groups == ("g", "system:authenticated")


def test_the_kubeconfig_has_a_context_for_each_account(kubeconfig: Path) -> None:
    document = yaml.safe_load(kubeconfig.read_text())
    assert document["current-context"] == "admin"
    assert [each["user"] for each in document["users"]] == [{"token": "a"}, {"token": "o"}]
    assert [each["context"]["user"] for each in document["contexts"]] == [each["name"] for each in document["users"]]


def test_a_platform_without_metrics_server_has_neither_it_nor_its_types() -> None:
    with skippable(parse_profile("metrics_server: false", "the profile", "bare")) as platform:
        assert status(f"{platform.url}/apis/metrics.k8s.io/v1beta1/pods", None) == 404
        with urlopen(f"{platform.url}/api/v1/namespaces/kube-system/pods") as answer:
            assert b"metrics-server" not in answer.read()
