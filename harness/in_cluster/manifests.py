"""The Kubernetes objects of a load test: its Job, the Job's files, and those of its workers."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.in_cluster.account import Rule, permission
from harness.in_cluster.inputs import Inputs

# --- a load test in a cluster, as its manifests describe it ----------------------------------------------------------


# Where the pod's containers find what they share.
SENT, FETCHED, RUNS, STATE = "/inputs", "/fetched", "/runs", "/state"
LOAD, KEEPER = "load", "run-folder"  # the containers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTest:
    """One load test.

    Attributes:
        name: of the Job, and of what belongs to it.
        run: name of the run folder.
        namespace: of the Job.
        image: with Pipeswarm, as the Dockerfile builds it.
        target: the platform, as for ``pipeswarm load``.
        inputs: options and files.
        workers: load generators in addition to the master; 0 is a single process.
        secret: that master and workers share; "" without workers.
        account: service account of the pods.
        rules: what it may do in the Job's namespace besides reading, for as long as the Job exists.
        secrets: names of Secrets whose keys become environment variables.
        kubeflow_token: give the pods their account's token for Kubeflow Pipelines.
        volume: PersistentVolumeClaim for the run folder; "" keeps it in the pod.
        upload_to: ``s3://…`` that gets a copy of the run folder; "" for none.
        cpu, memory: what each load generator requests, as Kubernetes quantities.
        keep_s: how long the pod waits for its run folder to be taken.
    """

    name: str
    run: str
    namespace: str
    image: str
    target: str
    inputs: Inputs
    account: str
    rules: tuple[Rule, ...] = ()
    workers: int = 0
    secret: str = ""
    secrets: tuple[str, ...] = ()
    kubeflow_token: bool = False
    volume: str = ""
    upload_to: str = ""
    cpu: str = "1"
    memory: str = "2Gi"
    keep_s: int = 600


Manifest = dict[str, Any]
KFP_TOKEN = "/var/run/secrets/kubeflow/pipelines"  # noqa: S105  # where Kubeflow's own clients look for it
INSTANCE = "app.kubernetes.io/instance"
ROLE = "app.kubernetes.io/component"
_SECRET = "PIPESWARM_CLUSTER_SECRET"  # noqa: S105  # the variable's name
_USER = 10001  # of the Dockerfile
_PORT = 5557  # of Locust's master
_GRACE_S = 120  # to end a test: open requests, clean-up, reports
_KEPT_S = 3600  # a finished Job, for those who want to look at it
_WORKERS_WAIT_S = 600  # of the master for its workers: nodes may have to be added
# Moving the load generator to another node would end the test.
_STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
_IN_POD = ("python", "-m", "harness.cli.loading.in_pod")


def job(test: ClusterTest) -> Manifest:
    """The Job of the load: a single process, or the master of workers."""
    names = ["runs", "state", *(["inputs"] if test.inputs.files else []), *(["fetched"] if test.inputs.objects else [])]
    sources: dict[str, Manifest] = {
        "runs": {"persistentVolumeClaim": {"claimName": test.volume}} if test.volume else {"emptyDir": {}},
        "state": {"emptyDir": {}},
        "inputs": {"configMap": {"name": test.name}},
        "fetched": {"emptyDir": {}},
    }
    load = {"name": LOAD, **_generator(test, _load_command(test), [_mount(name) for name in names])}
    keeper = {
        "name": KEEPER, "image": test.image,
        "command": [*_IN_POD, "keep", "--state", STATE, "--for", f"{test.keep_s}s"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": _CONTAINED, "volumeMounts": [_mount("runs"), _mount("state")],
    }  # fmt: skip
    volumes = [{"name": name, **sources[name]} for name in names]
    return _job(test, test.name, "master" if test.workers else "load", _pod(test, [load, keeper], volumes))


def belongings(test: ClusterTest) -> list[Manifest]:
    """What the Job needs in addition to itself; removed with it."""
    made = permission(test.name, test.namespace, test.account, test.rules) if test.rules else []
    made += [_files(test)] if test.inputs.files else []
    return [*made, _secret(test), _service(test), _workers(test)] if test.workers else made


def owned(manifest: Manifest, owner: Mapping[str, str]) -> Manifest:
    """The manifest of an object that is removed with the Job `owner`, given by ``name`` and ``uid``."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", **owner}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}}


def _load_command(test: ClusterTest) -> list[str]:
    """Fetch what is to be fetched, run the load, and store the run folder."""
    fetches = [word for place, address in test.inputs.objects.items() for word in ("--fetch", f"{address}={place}")]
    uploads = ["--upload", f"{RUNS}/{test.run}={test.upload_to}/{test.run}"] if test.upload_to else []
    waits = [
        "--master", "--expect-workers", str(test.workers), "--expect-workers-max-wait", str(_WORKERS_WAIT_S),
    ] if test.workers else []  # fmt: skip
    ours = ["--headless", "--runs-dir", RUNS, "--run-name", test.run]  # the last word on a name
    load = [*_load(test), *test.inputs.options, *ours, *waits]
    return [*_IN_POD, "test", "--state", STATE, *fetches, *uploads, "--", *load]


def _load(test: ClusterTest) -> list[str]:
    token = ["--token-file", f"{KFP_TOKEN}/token"] if test.kubeflow_token else []
    return ["pipeswarm", "load", test.target, *token]


def _generator(test: ClusterTest, command: list[str], mounts: Sequence[Manifest] = ()) -> Manifest:
    """A container that sends load. Its CPU has no limit: throttling would delay arrivals."""
    variables: list[Manifest] = []
    if test.workers:
        variables.append({"name": _SECRET, "valueFrom": {"secretKeyRef": {"name": test.name, "key": _SECRET}}})
    if test.inputs.objects or test.upload_to:
        # Stores other than AWS know no checksums in trailers.
        variables.append({"name": "AWS_REQUEST_CHECKSUM_CALCULATION", "value": "when_required"})
    token = [{"name": "token", "mountPath": KFP_TOKEN, "readOnly": True}] if test.kubeflow_token else []
    return {
        "image": test.image, "command": command,
        "env": variables, "envFrom": [{"secretRef": {"name": name}} for name in test.secrets],
        "resources": {"requests": {"cpu": test.cpu, "memory": test.memory}, "limits": {"memory": test.memory}},
        "securityContext": _CONTAINED, "volumeMounts": [*mounts, *token],
    }  # fmt: skip


_CONTAINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _mount(name: str) -> Manifest:
    places = {"runs": RUNS, "state": STATE, "inputs": SENT, "fetched": FETCHED}
    return {"name": name, "mountPath": places[name], **({"readOnly": True} if name == "inputs" else {})}


def _pod(test: ClusterTest, containers: list[Manifest], volumes: Sequence[Manifest] = ()) -> Manifest:
    token = {"path": "token", "audience": "pipelines.kubeflow.org", "expirationSeconds": 86400}
    projected = [{"name": "token", "projected": {"sources": [{"serviceAccountToken": token}]}}]
    return {
        "restartPolicy": "Never", "serviceAccountName": test.account, "terminationGracePeriodSeconds": _GRACE_S,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": _USER, "fsGroup": _USER, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": containers, "volumes": [*volumes, *(projected if test.kubeflow_token else [])],
    }  # fmt: skip


def _job(test: ClusterTest, name: str, role: str, pod: Manifest, count: int = 1) -> Manifest:
    """A Job that is never repeated: a second attempt would be another test."""
    labels = {**_labels(test), ROLE: role}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {**_named(test, name), "labels": labels},
        "spec": {
            "backoffLimit": 0, "parallelism": count, "completions": count, "ttlSecondsAfterFinished": _KEPT_S,
            "template": {"metadata": {"labels": labels, "annotations": _STAYS}, "spec": pod},
        },
    }  # fmt: skip


def _files(test: ClusterTest) -> Manifest:
    """The ConfigMap of the files to send."""
    texts, binary = {}, {}
    for name, content in test.inputs.files.items():
        try:
            texts[name] = content.decode()
        except UnicodeDecodeError:
            binary[name] = base64.b64encode(content).decode()
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": _named(test, test.name), "data": texts,
        **({"binaryData": binary} if binary else {}),
    }  # fmt: skip


def _secret(test: ClusterTest) -> Manifest:
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": _named(test, test.name),
        "stringData": {_SECRET: test.secret},
    }  # fmt: skip


def _service(test: ClusterTest) -> Manifest:
    """An address of the master that workers can resolve before its pod runs."""
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": _named(test, test.name),
        "spec": {
            "selector": {INSTANCE: test.name, ROLE: "master"},
            "ports": [{"name": "locust", "port": _PORT, "targetPort": _PORT}],
        },
    }  # fmt: skip


def _workers(test: ClusterTest) -> Manifest:
    """Workers get scenarios and options from their master."""
    command = [*_load(test), "--worker", "--master-host", test.name]
    pod = _pod(test, [{"name": "worker", **_generator(test, command)}])
    return _job(test, f"{test.name}-workers", "worker", pod, test.workers)


def _named(test: ClusterTest, name: str) -> Manifest:
    return {"name": name, "namespace": test.namespace, "labels": _labels(test)}


def _labels(test: ClusterTest) -> dict[str, str]:
    return {"app.kubernetes.io/name": "pipeswarm", INSTANCE: test.name}
