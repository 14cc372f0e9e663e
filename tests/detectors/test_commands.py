"""The commands of findings run in a shell against a simulated cluster and a real one."""

import json
import re
import shutil
import subprocess
from functools import cache

import pytest

from harness.detectors import diagnose
from harness.simulator.faults import FAULTS, HETIDA_FAULTS
from harness.simulator.profile.file import load_profile
from tests.support.injected.every_fault import INJECTED
from tests.support.injection.case import simulated
from tests.support.injection.cases import CASES
from tests.support.rehearsal import Rehearsal, Shell

# As the platforms' own manifests name them.
DEPLOYMENTS = {"ml-pipeline", "ml-pipeline-persistenceagent", "workflow-controller", "mysql", "seaweedfs", "minio"}
CHANGES = re.compile(r"kubectl (?:set|scale|patch|drain|edit|exec|rollout restart)\b")
# Python for the pipeline's author; what is asked on a machine or in a container, not of the cluster.
ELSEWHERE = re.compile(r"^\w+\.set_|^timedatectl|^kubectl exec")
KUBELETS = re.compile(r"kubectl (?:exec|top|logs|rollout status)\b")  # without them, no pod runs
EDITOR = """sed -i -e 's/requests.cpu: "4"/requests.cpu: "400"/' -e '/^  parallelism:/d'"""
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


def commands_of(timeline):
    return [command for finding in diagnose(timeline).findings for command in finding.commands]


@cache
def commands_after(faults):
    """Each command once, in order of appearance, from one simulated test per fault."""
    found = [command for name in faults for command in commands_of(simulated(CASES[name], 1.0, 0))]
    return [command for command in dict.fromkeys(found) if not ELSEWHERE.search(command)]


def at_rest(profile):
    """The idle cluster, with the same names of nodes, claims and deployments as in the tests."""
    rehearsal = Rehearsal(load_profile(profile))
    for fault in ("quota", "parallelism-cap") if profile == "demo" else ():
        rehearsal.inject(fault)
    rehearsal.platform.loop.run(10.0)
    return rehearsal


def ran(shell, command):
    """Whether a command succeeded: `grep` without a match returns 1, and kubectl's errors show on stderr."""
    done = shell.run(command, EDITOR)
    return (done.returncode == 0 or "grep" in command) and "error" not in done.stderr.lower(), done.stdout, done.stderr


@pytest.mark.parametrize("name", INJECTED)
def test_every_command_is_valid_shell_and_names_existing_deployments(name, tmp_path):
    for command in commands_of(INJECTED[name]().timeline(tmp_path)):
        if not re.match(r"\w+\.set_", command):  # Python, for the pipeline's author
            subprocess.run(["bash", "-n", "-c", command], check=True)
        named = re.findall(r"\bdeploy(?:ment)?[/ ]([\w-]+)", command)
        assert set(named) <= DEPLOYMENTS, command


@pytest.mark.soak  # some forty commands, each a process of its own
@needs_kubectl
@pytest.mark.parametrize(
    ("profile", "faults", "changes"), [("demo", tuple(FAULTS), 10), ("hetida-pattern-1", tuple(HETIDA_FAULTS), 0)]
)
def test_every_command_runs_against_the_observed_cluster(profile, faults, changes, tmp_path):
    with at_rest(profile).shell(tmp_path) as shell:
        kept = there(shell.run("kubectl get nodes -o name").stdout)
        tried = [command for command in map(kept, commands_after(faults)) if command]
        for command in tried:
            well, out, err = ran(shell, command)
            assert well, (command, out, err)
            assert out or "grep" in command or "exec" in command or "--field-selector" in command, command
    assert len([each for each in tried if CHANGES.search(each)]) >= changes


@pytest.mark.soak
@needs_kubectl
def test_commands_have_the_same_effect_on_a_real_cluster_as_on_the_simulated_one(real_cluster, tmp_path):
    if not real_cluster.controls:
        pytest.skip("there is no controller manager, which binds claims to volumes")
    rehearsal, real = at_rest("demo"), Shell({"KUBECONFIG": str(real_cluster.kubeconfig)})
    with rehearsal.shell(tmp_path) as shell:
        kept = there(shell.run("kubectl get nodes -o name").stdout)
        installed = tmp_path / "installed.json"
        installed.write_text(json.dumps(manifests(rehearsal)))
        try:
            assert real.run(f"kubectl create -f {installed}").returncode == 0
            bound = "kubectl wait pvc --all -n kubeflow --for=jsonpath='{.status.phase}'=Bound --timeout=60s"
            assert real.run(bound).returncode == 0
            before = state(real)
            assert state(shell) == before
            for command in map(kept, commands_after(tuple(FAULTS))):
                if command and not KUBELETS.search(command):
                    assert ran(shell, command)[0], command
                    well, out, err = ran(real, command)
                    assert well, (command, out, err)
            after = state(real)
            assert state(shell) == after
        finally:
            real.run(f"kubectl delete --wait=false -f {installed}")
    assert {kind for kind in before if before[kind] != after[kind]} == {
        "configmaps", "deployments", "nodes", "persistentvolumeclaims", "resourcequotas",
    }  # fmt: skip


def manifests(rehearsal):
    """The simulated cluster's objects as manifests for another cluster."""
    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeflow"}}]
    wanted = ("storageclasses", "nodes", "persistentvolumeclaims", "configmaps", "resourcequotas", "deployments")
    for plural in wanted:
        for each in rehearsal.objects(plural):
            kept = {key: each["metadata"][key] for key in ("name", "namespace", "labels") if key in each["metadata"]}
            items.append({key: value for key, value in each.items() if key != "status"} | {"metadata": kept})
    items += [volume(each) for each in items if each["kind"] == "PersistentVolumeClaim"]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def volume(claim):
    """The persistent volume that a claim requests by name."""
    spec, about = claim["spec"], claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": spec["volumeName"]},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "claimRef": {"namespace": about["namespace"], "name": about["name"]},
            "hostPath": {"path": "/none"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec["storageClassName"],
        },
    }


def state(shell):
    """The state that commands can change."""

    def read(kind, field, where="-n kubeflow"):
        done = shell.run(f"kubectl get {kind} {where} -o json")
        assert done.returncode == 0, done.stderr
        return {each["metadata"]["name"]: field(each) for each in json.loads(done.stdout)["items"]}

    def turned(deployment):
        spec = deployment["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        return spec["replicas"], container.get("args"), container.get("env")

    configuration = "-n kubeflow --field-selector metadata.name=workflow-controller-configmap"
    simulated_only = "--selector kubernetes.azure.com/agentpool"
    return {
        "configmaps": read("configmaps", lambda each: each["data"], configuration),
        "deployments": read("deployments", turned),
        "nodes": read("nodes", lambda each: bool(each["spec"].get("unschedulable")), simulated_only),
        "persistentvolumeclaims": read("pvc", lambda each: each["spec"]["resources"]["requests"]),
        "resourcequotas": read("resourcequotas", lambda each: each["spec"]["hard"]),
    }


def there(listed):
    """Restrict drains to nodes that existed before the test; nodes added during it are not served."""
    names = {line.removeprefix("node/") for line in listed.split()}

    def kept(command):
        if not command.startswith("kubectl drain"):
            return command
        given = [word for word in command.split()[2:] if not word.startswith("--")]
        left = [name for name in given if name in names]
        return " ".join(["kubectl drain", *left, *command.split()[2 + len(given) :]]) if left else ""

    return kept
