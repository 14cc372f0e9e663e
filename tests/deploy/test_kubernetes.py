"""deploy/kubernetes without nodes: kubectl builds it, a real API server accepts it, Locust reads its commands."""

import json
import shlex
import shutil
import subprocess
from functools import cache

import pytest
import yaml

from tests.support.e2e import BIN, ROOT
from tests.support.real_kubernetes import admin
from tests.support.real_parts.kube import types

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = sorted(path.parent.name for path in FOLDER.glob("*/kustomization.yaml") if path.parent.name != "base")
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

# The operator's resource, as far as the tests need it.
RESOURCES = {
    "type": "object",
    "properties": {
        name: {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
        for name in ("requests", "limits")
    },
}
ROLE = {
    "type": "object",
    "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}, "resources": RESOURCES},
}
SPEC = {
    "type": "object", "required": ["workers"],
    "properties": {
        "image": {"type": "string"}, "workers": {"type": "integer", "minimum": 1}, "args": {"type": "string"},
        "labels": ROLE["properties"]["labels"], "master": ROLE, "worker": ROLE,
        "locustfile": {
            "type": "object",
            "properties": {
                "configMap": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
            },
        },
    },
}  # fmt: skip
LOCUST_TEST = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "locusttests.locust.io"},
    "spec": {
        "group": "locust.io", "scope": "Namespaced",
        "names": {"plural": "locusttests", "singular": "locusttest", "kind": "LocustTest"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
        }],
    },
}  # fmt: skip


@cache
def built(overlay):
    command = ["kubectl", "kustomize", str(FOLDER / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def pods(manifest):
    """The pod templates of a manifest."""
    if isinstance(manifest, dict):
        for key, value in manifest.items():
            if key == "template":
                yield value
            else:
                yield from pods(value)


def containers(overlay):
    return [each for manifest in built(overlay) for pod in pods(manifest) for each in pod["spec"]["containers"]]


def commands(overlay):
    operated = [shlex.split(each["spec"]["args"]) for each in built(overlay) if each["kind"] == "LocustTest"]
    return [each["command"] for each in containers(overlay)] + [["locust", "--master", *words] for words in operated]


@pytest.fixture(scope="module")
def namespace(real_cluster):
    kube, name = admin(real_cluster), "deploy-kubernetes"
    kube.create("/api/v1/namespaces", {"metadata": {"name": name}})
    with types(kube, LOCUST_TEST):
        yield name
    kube.delete(f"/api/v1/namespaces/{name}")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_real_api_server_accepts_the_overlay(overlay, real_cluster, namespace):
    manifests = json.loads(json.dumps(built(overlay)).replace('"namespace": "kubeflow"', f'"namespace": "{namespace}"'))
    if real_cluster.version < (1, 21):  # it knows no CronJob of batch/v1
        manifests = [
            {**each, "kind": "Job", "spec": each["spec"]["jobTemplate"]["spec"]} if each["kind"] == "CronJob" else each
            for each in manifests
        ]
    assert {each["metadata"]["namespace"] for each in manifests} == {namespace}
    command = ["kubectl", "--kubeconfig", str(real_cluster.kubeconfig), "apply", "--dry-run=server", "-f", "-"]
    done = subprocess.run(command, input=yaml.safe_dump_all(manifests), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(manifests)


def test_a_mistake_in_a_manifest_is_found(real_cluster, namespace):
    job = next(each for each in built("job") if each["kind"] == "Job")
    spec = {**job["spec"], "backoffLimits": 0}
    wrong = {**job, "metadata": {**job["metadata"], "namespace": namespace}, "spec": spec}
    command = ["kubectl", "--kubeconfig", str(real_cluster.kubeconfig), "apply", "--dry-run=server", "-f", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(wrong), capture_output=True, text=True, check=False)
    assert done.returncode
    assert "backoffLimits" in done.stderr


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_a_container_mounts_and_reads_is_there(overlay):
    made = {(each["kind"], each["metadata"]["name"]) for each in built(overlay)}
    assert ("ConfigMap", "pipeswarm-inputs") in made
    for pod in (pod["spec"] for manifest in built(overlay) for pod in pods(manifest)):
        for volume in pod.get("volumes", ()):
            claim, files = volume.get("persistentVolumeClaim"), volume.get("configMap")
            assert (
                ("PersistentVolumeClaim", claim["claimName"]) in made if claim else ("ConfigMap", files["name"]) in made
            )
        mounts = {mount["mountPath"] for each in pod["containers"] for mount in each.get("volumeMounts", ())}
        for each in pod["containers"]:
            assert all(f"/{word.split('/')[1]}" in mounts for word in each["command"] if word.startswith("/"))
        assert pod["securityContext"]["runAsUser"] == 10001  # of the Dockerfile


def test_workers_find_their_master_and_share_a_secret_with_it():
    manifests = built("distributed")
    service = next(each for each in manifests if each["kind"] == "Service")
    master, worker = (each["spec"]["template"] for each in manifests if each["kind"] == "Deployment")
    assert service["spec"]["selector"].items() <= master["metadata"]["labels"].items()
    assert not service["spec"]["selector"].items() <= worker["metadata"]["labels"].items()
    (command,) = (each["command"] for each in worker["spec"]["containers"])
    assert command[command.index("--master-host") + 1] == service["metadata"]["name"]
    variables = [each["spec"]["containers"][0]["env"] for each in (master, worker)]
    assert variables[0] == variables[1]


def test_the_policy_of_the_operators_test_selects_the_pods_that_its_labels_describe():
    manifests = built("locust-operator")
    test = next(each["spec"] for each in manifests if each["kind"] == "LocustTest")
    policy = next(each["spec"] for each in manifests if each["kind"] == "NetworkPolicy")
    assert policy["podSelector"]["matchLabels"] == test["labels"] | test["master"]["labels"]
    (peer,) = policy["ingress"][0]["from"]
    assert peer["podSelector"]["matchLabels"] == test["labels"] | test["worker"]["labels"]


@pytest.mark.parametrize("overlay", ["nightly", "locust-operator"])  # the others' are parts of these
def test_locust_reads_the_command_with_the_configuration(overlay, tmp_path):
    command = commands(overlay)[0]
    options = command[3:] if command[0] == "pipeswarm" else command[1:]
    here = {"/inputs": str(FOLDER / "base"), "/home/locust": str(FOLDER / "base"), "/home/pipeswarm": str(ROOT)}
    for there, place in here.items():
        options = [f"{place}{word.removeprefix(there)}" if word.startswith(f"{there}/") else word for word in options]
    named = [] if "-f" in options else ["-f", str(ROOT / "locustfiles/kfp.py")]
    call = [BIN / "locust", *named, *options, "--list"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Kfp" in done.stdout


@pytest.mark.parametrize(
    ("given", "ran"),
    [
        (["--master", "--host", "a b"], "locust --master --host a b"),
        (["pipeswarm", "load"], "pipeswarm load"),
        (["locust", "-f", "x"], "locust -f x"),
    ],
)
def test_the_image_takes_options_alone_for_those_of_locust(given, ran, tmp_path):
    for name in ("locust", "pipeswarm"):
        (tmp_path / name).write_text(f'#!/bin/sh\nfor word in {name} "$@"; do echo "$word"; done\n')
        (tmp_path / name).chmod(0o755)
    line = next(line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("ENTRYPOINT "))
    command = [*json.loads(line.removeprefix("ENTRYPOINT ")), *given]
    out = subprocess.run(command, env={"PATH": f"{tmp_path}:/bin:/usr/bin"}, capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [ran.split()[0], *(given if given[0].startswith("-") else given[1:])]
