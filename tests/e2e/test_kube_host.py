"""``--host kube://NAMESPACE/SERVICE``: a load through the API server's service proxy."""

import json

import pytest

from tests.support.e2e import FEW, PIPELINE

LOAD = (*FEW, "--pipeline", PIPELINE, "--schedule", "burst", "--runs", "3")


@pytest.mark.soak
def test_runs_are_sent_and_observed_through_the_service_proxy(locust, platform):
    finished = locust.headless(
        *LOAD, "--host", "kube://kubeflow/ml-pipeline", KUBECONFIG=platform.kubeconfig
    )  # fmt: skip
    assert finished.code in {0, 4}, finished.err + finished.out  # three runs on a busy machine may be late
    assert finished.report()["ledger"]["succeeded"] == 3
    plan = json.loads((finished.folder / "manifest.json").read_text())
    assert plan["host"] == "kube://kubeflow/ml-pipeline:8888", "with the port that was looked up"
