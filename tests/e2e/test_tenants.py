"""Two tenants of one KFP, each in a namespace of its own, one with hardly any quota, from end to end."""

import json
import urllib.request
from pathlib import Path

import pytest

from tests.support.e2e import QUICK
from tests.support.serving import simulated

TENANTS = ("team-a", "team-b")
PROFILE = """
tenants:
  - {namespace: team-a, quota: {pods: 50}}
  - {namespace: team-b, quota: {pods: 1}}
"""


def ask(url: str, path: str, body: object = None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers)) as answer:
        return json.load(answer)


@pytest.fixture
def platform(tmp_path):
    profile = tmp_path / "tenants.yaml"
    profile.write_text(Path(QUICK).read_text() + PROFILE)
    with simulated("--profile", str(profile), "--seed", "7") as served:
        yield served


def test_two_tenants_are_loaded_observed_compared_and_cleaned_up(locust, platform):
    rows = "".join(f"{k},s,{TENANTS[k % 2]}\n" for k in range(8))
    (locust.place / "tenants.csv").write_text(f"id,scenario_name,tenant\n{rows}")
    finished = locust.headless(
        "--host", platform.url, "--simulate", "", "--scenarios", "tenants.csv", "--schedule", "spread", "--over", "2s",
        "--tenant-namespace", "team-a", "--tenant-namespace", "team-b", "--cleanup", "delete",
        "--pipeline", str(Path(__file__).parents[2] / "harness/targets/training.yaml"),
        KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    assert [row["tenant"] for row in sorted(finished.rows(), key=lambda row: row["seq"])] == [*TENANTS] * 4
    report = finished.report()
    a, b = report["tenants"]["tenants"]
    assert [(each["name"], each["intended"], each["succeeded"]) for each in (a, b)] == [
        (name, 4, 4) for name in TENANTS
    ]
    assert b["waited_s"] > a["waited_s"] > 0, "pods were seen in both namespaces"
    assert report["tenants"]["worst"] == "team-b"
    assert report["tenants"]["fairness"] < 0.999
    for namespace in TENANTS:
        experiments = ask(platform.url, f"/apis/v2beta1/experiments?namespace={namespace}")
        assert [each["namespace"] for each in experiments["experiments"]] == [namespace]
        assert ask(platform.url, f"/apis/v2beta1/runs?namespace={namespace}") == {}
        assert not ask(platform.url, f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/workflows")["items"]
