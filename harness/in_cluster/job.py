"""A load test in a cluster, as its manifests describe it."""

from dataclasses import dataclass

from harness.in_cluster.account import Rule
from harness.in_cluster.inputs import Inputs

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
