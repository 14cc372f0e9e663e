"""What `pipeswarm run-in-cluster` prints, creates and refuses; tests/e2e runs its pods."""

import shutil
import subprocess
from uuid import uuid4

import pytest
import yaml
from kubernetes import client

from harness.cli import main
from tests.support.e2e import PIPELINE
from tests.support.real_kubernetes import admin
from tests.support.real_parts.kube import token
from tests.support.servers import kubeconfig

CALL = ["run-in-cluster", "--image", "registry.example/pipeswarm:1"]
LOAD = ["kfp", "--host", "http://kfp.example", "--pipeline", PIPELINE, "--runs", "5"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return tmp_path


@pytest.fixture
def namespace(real_cluster, monkeypatch):
    """A namespace of the test's own."""
    kube, name = admin(real_cluster), f"cli-{uuid4()}"
    kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    monkeypatch.setenv("KUBECONFIG", str(real_cluster.kubeconfig))
    yield name
    kube.delete(f"/api/v1/namespaces/{name}")


def test_the_printed_manifests_are_accepted_by_a_real_api_server(real_cluster, namespace, capsys, tmp_path):
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    (tmp_path / "s.csv").write_text("id,scenario_name\n1,a\n")
    assert main([
        *CALL, "--namespace", namespace, "--workers", "4", "--runs-volume", "claim", "--kubeflow-token",
        "--env-from", "keys", "--dry-run", *LOAD, "--scenarios", "s.csv",
    ]) == 0  # fmt: skip
    printed = capsys.readouterr().out
    assert [each["kind"] for each in yaml.safe_load_all(printed)] == [
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Secret", "Service", "Job", "Job",
    ]  # fmt: skip
    command = ["kubectl", "--kubeconfig", str(real_cluster.kubeconfig), "apply", "--dry-run=server", "-f", "-"]
    done = subprocess.run(command, input=printed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 8
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s.csv"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            [*LOAD, "--token-file", "t"],
            "--token-file can't be given for a test in a cluster\n  → put the token into a Secret",
        ),
        (
            [*LOAD, "--master"],
            "--master can't be given for a test in a cluster\n  → give --workers N before the target",
        ),
        ([*LOAD, "--runs-dir=x"], "--runs-dir can't be given for a test in a cluster"),
        ([*LOAD, "-f", "mine.py"], "-f can't be given for a test in a cluster"),
        ([*LOAD, "--scenarios", "none.csv"], "--scenarios none.csv does not exist"),
        ([*LOAD, "--config", "none.toml"], "--config none.toml does not exist"),
        ([*LOAD, "--runs", "five"], "--runs: 'five' is not a whole number"),
        (
            ["--upload", "bucket", *LOAD],
            "bucket is not an address in an object store\n  → write it as s3://BUCKET/NAME",
        ),
        (LOAD, "there is no kubeconfig"),
    ],
)
def test_what_can_not_work_is_refused_before_anything_is_created(given, said, capsys, tmp_path):
    assert main([*CALL, *given]) == (5 if "kubeconfig" in said else 2)
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "kinds", "said"),
    [
        (["--host", "kubeconfig"], ["Role", "RoleBinding"], ""),
        (["--host", "kubeconfig", "--namespace", "default"], ["Role", "RoleBinding"], ""),
        (["--host", "kubeconfig", "--namespace", "b"], [], "may not create workflows in the namespace b: grant it"),
        (["--host", "https://argo.example"], [], ""),
    ],
)
def test_the_account_may_create_workflows_where_the_test_does(options, kinds, said, capsys):
    assert main([*CALL, "--dry-run", "argo", *options, "--from", "workflowtemplate/a"]) == 0
    printed = capsys.readouterr()
    made = [each["kind"] for each in yaml.safe_load_all(printed.out)]
    assert made == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", *kinds, "Job"]
    assert said in printed.err
    assert main([*CALL, "--service-account", "mine", "--dry-run", "argo", *options, "--from", "wftmpl/a"]) == 0
    assert [each["kind"] for each in yaml.safe_load_all(capsys.readouterr().out)] == ["Job"]


def test_a_configuration_of_the_working_directory_counts_as_in_a_local_test(capsys, tmp_path):
    (tmp_path / "pipeswarm.toml").write_text('[tool.locust]\nscenarios = "none.csv"\n')
    assert main([*CALL, "--dry-run", *LOAD]) == 2
    assert "--scenarios none.csv does not exist" in capsys.readouterr().err
    (tmp_path / "pipeswarm.toml").write_text('[tool.locust]\ntoken-file = "t"\n')
    assert main([*CALL, "--dry-run", *LOAD]) == 2
    assert "--token-file can't be given" in capsys.readouterr().err
    (tmp_path / "pipeswarm.toml").write_text('[tool.locust]\nseed = "odd"\n')
    assert main([*CALL, "--dry-run", *LOAD]) == 2
    assert "--seed: 'odd' is not a whole number" in capsys.readouterr().err


def test_a_run_folder_that_exists_here_is_not_overwritten(real_cluster, namespace, capsys, tmp_path):
    (tmp_path / "runs/a").mkdir(parents=True)
    assert main([*CALL, "--namespace", namespace, *LOAD, "--run-name", "a"]) == 2
    assert "runs/a exists" in capsys.readouterr().err
    assert admin(real_cluster).get(f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"] == []


def test_a_missing_right_is_named_with_what_to_do(real_cluster, namespace, capsys, tmp_path, monkeypatch):
    shown = token(admin(real_cluster), namespace, "poor")
    config = kubeconfig(tmp_path / "config", real_cluster.url, token=shown, ca=str(real_cluster.ca))
    monkeypatch.setenv("KUBECONFIG", config)
    assert main([*CALL, "--namespace", namespace, *LOAD]) == 2
    said = capsys.readouterr().err
    assert "Job pipeswarm-" in said
    assert 'cannot create resource "jobs" in API group "batch"' in said
    assert "→ ask for this right" in said


def test_an_account_that_the_user_names_is_not_made(real_cluster, namespace, capsys):
    assert main([*CALL, "--namespace", namespace, "--service-account", "typo", *LOAD]) == 2
    assert f"there is no service account typo in namespace {namespace}" in capsys.readouterr().err
    assert admin(real_cluster).get(f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"] == []
    assert main([*CALL, "--service-account", "mine", "--dry-run", *LOAD]) == 0
    assert [each["kind"] for each in yaml.safe_load_all(capsys.readouterr().out)] == ["ConfigMap", "Job"]


def test_no_job_is_left_when_one_of_its_objects_is_refused(real_cluster, namespace, capsys):
    kube = admin(real_cluster)
    kube.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "pipeswarm-a"}})
    assert main([*CALL, "--namespace", namespace, *LOAD, "--run-name", "a"]) == 2
    said = capsys.readouterr().err
    assert 'ConfigMap pipeswarm-a can\'t be created: configmaps "pipeswarm-a" already exists' in said
    assert "→ give another --run-name" in said
    jobs = kube.get(f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
    assert all("deletionTimestamp" in each["metadata"] for each in jobs)


def test_an_image_that_can_not_be_pulled_ends_the_test(real_cluster, namespace, capsys, monkeypatch):
    if not real_cluster.controls:
        pytest.skip("Jobs make pods only with kube-controller-manager beside the kube-apiserver")
    core = client.CoreV1Api(real_cluster.client())
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}
    status = {
        "name": "load",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": waiting},
    }

    def pull(seconds: float) -> None:
        """The kubelet's report, made while the command waits."""
        for pod in core.list_namespaced_pod(namespace).items:
            core.patch_namespaced_pod_status(pod.metadata.name, namespace, {"status": {"containerStatuses": [status]}})

    monkeypatch.setattr("time.sleep", pull)
    assert main([*CALL, "--namespace", namespace, *LOAD]) == 2
    assert 'the test can\'t start: ImagePullBackOff: Back-off pulling image "x"' in capsys.readouterr().err
    jobs = admin(real_cluster).get(f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
    assert all("deletionTimestamp" in each["metadata"] for each in jobs)
