"""The truth table: situations that are made on real parts, and what a report must name first."""

from pathlib import Path

import yaml

from tests.support.situations.making import (
    after,
    claim,
    compact,
    delete_node,
    fill_etcd,
    finished_workflows,
    kill_controller,
    limit_range,
    lose_node,
    pause,
    preempt,
    quota,
    restart_controller,
    settings,
    start_api,
    start_controller,
    stop_api,
    taint,
    together,
    webhook,
)
from tests.support.situations.situation import Situation

_LONG = "20"  # seconds that a step works where something happens to it meanwhile


def _fate(**how: str) -> dict[str, object]:
    """Annotations by which the kubelet plays a step's pod."""
    return {"metadata": {"annotations": {f"kubelet.test/{key.replace('_', '-')}": value for key, value in how.items()}}}


_BUSY = {"resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
_ITEMS = {
    "name": "all",
    "steps": [[{"name": "one", "template": "main", "withItems": list(range(8))}]],
}
_FAN_OUT = {
    "entrypoint": "all",
    "parallelism": 1,
    "templates": [_ITEMS, {"name": "main", "container": {"image": "python:3.11-slim", "command": ["true"]}}],
}

_KFP = yaml.safe_load(Path(__file__).with_name("kfp_shaped.yaml").read_text())


def _kfp(**how: str) -> dict[str, object]:
    """The workflow of KFP's form; its executors fare so."""
    templates = [
        {**each, **_fate(**how)} if each["name"] == "system-container-impl" else each for each in _KFP["templates"]
    ]
    return {**_KFP, "templates": templates}


SITUATIONS = (
    Situation("none", "nothing was limited", short=True),
    Situation("low-qps", "the controller may ask the API server 6 times a second", ("controller-qps",),
              controller=("--qps", "6", "--burst", "6"), runs=80, drain="90s"),
    Situation("one-worker", "the controller has one worker", ("controller-workers",), r"worker",
              controller=("--workflow-workers", "1"), runs=30, drain="90s", short=True),
    Situation("parallelism", "the ConfigMap lets 4 workflows run", ("workflows-postponed",),
              settings={"parallelism": "4"}, runs=20, drain="120s"),
    Situation("workflow-parallelism", "a workflow may run one of its eight steps at a time", ("parallelism-cap", "workflow-parallelism"), also=("controller-requeue",),
              spec=_FAN_OUT, runs=5, drain="150s"),
    Situation("semaphore", "three workflows may hold the semaphore", ("lock-wait",), prepare=settings("locks", all="3"),
              spec={"synchronization": {"semaphores": [{"configMapKeyRef": {"name": "locks", "key": "all"}}]}}, runs=15,
              drain="120s"),
    Situation("mutex", "one workflow may hold the mutex", ("lock-wait",), runs=8, drain="150s",
              spec={"synchronization": {"mutexes": [{"name": "model"}]}}),
    Situation("quota-pods", "a ResourceQuota of 6 pods", ("quota",), ready=quota(pods="7"), runs=30, drain="90s"),
    Situation("quota-cpu", "a ResourceQuota of 2 CPU", ("quota",), ready=quota(requests_cpu="2"), runs=15, drain="120s",
              settings={"executor": "resources:\n  requests:\n    cpu: 10m\n    memory: 16Mi\n"}),
    Situation("quota-unstated", "a ResourceQuota on CPU; Argo's own containers request none", ("quota-without-requests",),
              also=("failures",), ready=quota(requests_cpu="2"), runs=12, drain="25s"),
    Situation("nodes-full", "one node of 2 CPU", ("nodes-exhausted",), nodes=("2",), runs=24, drain="90s"),
    Situation("taint", "no node's taint is tolerated", ("untolerated-taint*",), prepare=taint(0, 1), runs=12, drain="25s", short=True),
    Situation("taint-and-full", "a node is full, the other's taint is not tolerated", ("untolerated-taint*", "nodes-exhausted"), nodes=("2", "8"), prepare=taint(1), runs=20, drain="45s"),
    Situation("claim", "a claim without a storage class, which nothing provisions", ("claim-without-class",), prepare=claim, runs=12, drain="25s",
              spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
              pod={"container": {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}}),
    Situation("limit-range", "a LimitRange refuses the pods", ("limit-range-exceeded",), also=("failures",),
              ready=limit_range, runs=12, drain="25s",
              pod={"container": {"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}}}}),
    Situation("image-missing", "the image does not exist", ("image-missing",),
              pod=_fate(reason="ErrImagePull"), runs=10, drain="25s"),
    Situation("image-pull", "each pod pulls its image for 20 s", ("image-pull",), pod=_fate(pull_s="20"), drain="90s"),
    Situation("sandbox", "the network has no addresses left", ("pod-addresses-exhausted", "sandbox-failed"),
              pod=_fate(reason="FailedCreatePodSandBox"), runs=10, drain="25s"),
    Situation("volume", "a ConfigMap that is mounted is missing", ("volume-object-missing", "config-map-missing", "volume-mount-failed"),
              pod=_fate(reason="FailedMount"), runs=10, drain="25s"),
    Situation("config", "a Secret is missing", ("secret-missing",),
              pod=_fate(reason="CreateContainerConfigError"), runs=10, drain="25s"),
    Situation("oom", "steps are killed for memory", ("oom",), pod=_fate(reason="OOMKilled"), runs=12),
    Situation("evicted", "the node is short of memory", ("node-pressure", "evicted"), also=("failures",), pod=_fate(reason="Evicted"), runs=12),
    Situation("failures", "steps fail", ("failures", "step-failed"), pod=_fate(exit_code="1"), runs=12),
    Situation("failures-removed", "steps fail; pods and workflows are removed at once", ("failures", "step-failed"),
              pod=_fate(exit_code="1"), runs=12,
              spec={"podGC": {"strategy": "OnPodCompletion"}, "ttlStrategy": {"secondsAfterCompletion": 0}}),
    Situation("removed", "nothing was limited; pods and workflows are removed at once",
              spec={"podGC": {"strategy": "OnPodCompletion"}, "ttlStrategy": {"secondsAfterCompletion": 0}}),
    Situation("node-lost", "a node fell silent", ("node-lost", "node-not-ready", "node-status-unknown", "evicted-by-taint-manager", "taint-eviction"), also=("failures",), pod=_fate(runs_s=_LONG), runs=10,
              during=after(4, lose_node), drain="90s"),
    Situation("node-deleted", "a node was deleted under its pods", ("node-gone", "node-removed", "node-lost", "pod-deleted"), also=("failures", "node-not-ready"),
              pod=_fate(runs_s=_LONG), runs=10, during=after(4, delete_node), drain="90s"),
    Situation("preempted", "pods of higher priority took the nodes", ("preempted*",), also=("nodes-exhausted",),
              pod={**_fate(runs_s=_LONG), "container": _BUSY}, nodes=("6", "6"), runs=12, during=after(4, preempt), drain="90s"),
    Situation("controller-killed", "the controller ran out of memory and was down for 25 s", ("controller-down",), also=("oom",), runs=60, over="50s", during=after(10, kill_controller, pause(25), start_controller),
              drain="60s"),
    Situation("restarted-before", "one worker, since a restart 8 s before the test", ("controller-workers",),
              ready=together(pause(10), restart_controller("--workflow-workers", "1"), pause(8)),
              runs=40, drain="60s"),
    Situation("api-restarted", "the API server was away for 8 s", ("api-errors", "api-server-unreachable"),
              runs=40, over="40s", during=after(8, stop_api, pause(8), start_api), drain="60s"),
    Situation("watch-expired", "watches expired while the API server restarted", also=("api-errors",), runs=30, over="30s",
              during=after(8, stop_api, compact, start_api), drain="60s"),
    Situation("etcd-full", "etcd's quota of 64 MB is used up", ("etcd-full",), also=("api-errors",), ready=fill_etcd, runs=10,
              etcd=("--quota-backend-bytes=67108864",)),
    Situation("webhook-slow", "an admission webhook takes 5 s for each pod", ("webhook-slow",), prepare=webhook(5.0, 15), runs=60, drain="90s"),
    Situation("webhook-times-out", "an admission webhook never answers", ("webhook-timeout",), also=("failures",),
              prepare=webhook(60.0, 2), runs=12, drain="40s"),
    Situation("kfp-none", "nothing was limited but by the controller's 10 s", also=("controller-requeue",), spec=_kfp(), runs=6, drain="120s"),
    Situation("kfp-nodes-full", "workflows of KFP's form on one node of 1 CPU, beside the controller's 10 s", ("nodes-exhausted", "controller-requeue"), spec=_kfp(), runs=8,
              nodes=("1",), drain="150s"),
    Situation("kfp-oom", "executors of KFP's form are killed for memory", ("oom",), also=("controller-requeue",), spec=_kfp(reason="OOMKilled"), runs=8,
              drain="90s"),
    Situation("kfp-quota", "workflows of KFP's form under a ResourceQuota of 3 pods", ("quota",), also=("controller-requeue",), spec=_kfp(), runs=6,
              ready=quota(pods="4"), drain="150s"),
    Situation("finished", "nothing was limited; 3,000 finished workflows lie about", also=("finished-workflows",),
              prepare=finished_workflows(3000)),
)  # fmt: skip
