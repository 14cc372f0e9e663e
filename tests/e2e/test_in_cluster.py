"""`pipeswarm run-in-cluster` against a real Kubernetes API; the pods' containers run as processes of this machine."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest
import yaml
from kubernetes import client, utils

from tests.support.e2e import FEW, PIPELINE, ROOT, free_port
from tests.support.object_store import ENVIRONMENT, object_store
from tests.support.real_kubernetes import admin
from tests.support.real_parts.kube import crd, token, types
from tests.support.real_parts.pod_runner import running_pods
from tests.support.servers import kubeconfig, until


@pytest.fixture
def controlled(real_cluster):
    if not (real_cluster.schedules and real_cluster.controls):
        pytest.skip("Jobs make pods only with kube-scheduler and kube-controller-manager beside the kube-apiserver")
    return real_cluster


def rows(place):
    """The submissions recorded in a run folder at or below `place`."""
    files = place.rglob("submissions.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines(True) if line.endswith("\n")]


def started(cluster, tmp_path, *arguments):
    command = [
        sys.executable,
        "-m",
        "harness.cli",
        "run-in-cluster",
        "--image",
        "registry.example/pipeswarm:1",
        *arguments,
    ]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.Popen(
        command, cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.soak
def test_the_exit_code_is_that_of_the_test_in_the_cluster(controlled, platform, tmp_path):
    with running_pods(controlled, "in-cluster-verdict", tmp_path / "node", {}):
        process = started(
            controlled, tmp_path, "--namespace", "in-cluster-verdict", "kfp", "--host", platform.url,
            "--pipeline", PIPELINE, *FEW, "--schedule", "burst", "--runs", "4", "--run-name", "slow",
            "--slo", "p95(run.duration) < 1ms", "--undecided", "fail",
        )  # fmt: skip
        out, err = process.communicate(timeout=100)
    # 3, or 4 where this machine is so busy that the arrivals of a pod, which gives way to others, leave late.
    code = int(re.search(r"^exit code (\d)", out, re.MULTILINE)[1])
    assert process.returncode == code in {3, 4}, out + err
    assert "SLO" in out
    assert len(rows(tmp_path / "runs/slow")) == 4


@pytest.mark.soak
def test_ctrl_c_ends_master_and_worker_in_the_cluster_and_brings_their_run_folder_home(controlled, platform, tmp_path):
    port, namespace = str(free_port()), "in-cluster-workers"
    stored = tmp_path / "objects"
    (stored / "results").mkdir(parents=True)
    shutil.copy(PIPELINE, stored / "results/pipeline.yaml")
    with object_store(stored) as address:
        ports = {"LOCUST_MASTER_NODE_PORT": port, "LOCUST_MASTER_BIND_PORT": port}
        variables = {**ENVIRONMENT, "AWS_ENDPOINT_URL": address, **ports}
        with running_pods(controlled, namespace, tmp_path / "node", variables) as kubelet:
            process = started(
                controlled, tmp_path, "--namespace", namespace, "--workers", "1", "--upload", "s3://results/nightly",
                "kfp", "--host", platform.url, "--pipeline", "s3://results/pipeline.yaml", *FEW,
                "--schedule", "constant", "--rate", "5/s", "--for", "10m", "--run-name", "A_worker",
            )  # fmt: skip
            until(lambda: rows(tmp_path / "node"), "the worker sends", 100)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=100)
            containers = [each for pod in kubelet.pods.values() for each in pod.values()]
            until(lambda: all(each.process.poll() is not None for each in containers), "all pods end")
        account = client.CoreV1Api(controlled.client()).read_namespaced_service_account("pipeswarm-observer", namespace)
    assert account.metadata.name == "pipeswarm-observer"
    assert process.returncode == 130, out + err
    assert "run folder: runs/A_worker" in err
    home = tmp_path / "runs/A_worker"
    assert rows(home)
    assert (stored / "results/nightly/A_worker/report.json").read_bytes() == (home / "report.json").read_bytes()


@pytest.mark.soak
def test_argos_workflows_are_created_by_the_account_that_is_made_for_the_test(controlled, tmp_path):
    namespace, kube = "in-cluster-argo", admin(controlled)
    arguments = [
        "--namespace", namespace, "argo", "--host", "kubeconfig", "--namespace", namespace, "--run-name", "argo",
        "--workflow", str(ROOT / "harness/targets/workflow.yaml"), "--schedule", "burst", "--runs", "3", "--drain", "1s",
    ]  # fmt: skip
    account = tmp_path / "account"
    with ExitStack() as stack:
        stack.enter_context(types(kube, crd("Workflow")))
        stack.enter_context(running_pods(controlled, namespace, tmp_path / "node", {"KUBECONFIG": str(account)}))
        printed = started(controlled, tmp_path, "--dry-run", *arguments).communicate(timeout=100)[0]
        for manifest in list(yaml.safe_load_all(printed))[:3]:  # the account, for its token
            utils.create_from_dict(controlled.client(), manifest)
        shown = token(kube, namespace, "pipeswarm-observer")
        kubeconfig(account, controlled.url, token=shown, ca=str(controlled.ca))
        out, err = started(controlled, tmp_path, *arguments).communicate(timeout=100)
        made = kube.get(f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/workflows")["items"]
        kube.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/pipeswarm-observer")
        kube.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/pipeswarm-observer-{namespace}")
    assert len(made) == 3, out + err
    assert "exit code 4" in out  # no controller ends them here
    assert {row["run"] for row in rows(tmp_path / "runs/argo")} == {each["metadata"]["name"] for each in made}
