"""The deployments of an installation, with the containers of KFP's and Argo's manifests.

Containers have only the environment variables and arguments that a fix changes or an operator looks for, not probes,
security contexts and the like (github.com/kubeflow/pipelines, manifests/kustomize, KFP 2.17).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.simulator.kube_api import Manifest
from harness.simulator.profile import Profile
from harness.simulator.profile.store_products import Installed

_MI = 2**20

DATABASE_CLAIM = "mysql-pv-claim"
RUNTIME = "hetida-designer-runtime"
CONTROLLER, API_SERVER, AGENT = "workflow-controller", "ml-pipeline", "ml-pipeline-persistenceagent"
CONFIGURATION = "workflow-controller-configmap"  # of the workflow controller
# A runtime's requests: memory per worker, of which 60 % is in use (210 MiB), and a share of all nodes' cores.
_WORKER_MEMORY, _RUNTIME_SHARE = 350 * _MI, 0.8


@dataclass(frozen=True, slots=True)
class Component:
    """A deployment. `cpu` in thousandths of a core and `memory` in bytes are what KFP's manifests request."""

    name: str
    image: str
    cpu: int
    memory: int
    namespace: str = ""  # "" is KFP's namespace
    claim: str = ""  # of the volume mounted by its pod
    spread: bool = False  # its pods are spread over all nodes
    container: str = ""  # container name, if it differs from the deployment's
    args: tuple[str, ...] = ()
    env: tuple[Manifest, ...] = ()

    def manifest(self) -> Manifest:
        """The container in the deployment's template, without its requests."""
        made: Manifest = {"name": self.container or self.name, "image": self.image}
        if self.args:
            made["args"] = list(self.args)
        if self.env:
            made["env"] = list(self.env)
        return made


def _env(**values: str) -> tuple[Manifest, ...]:
    return tuple({"name": name, "value": value} for name, value in values.items())


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _secrets(secret: str, names: Mapping[str, str]) -> tuple[Manifest, ...]:
    return tuple(
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}} for name, key in names.items()
    )


_NAMESPACE = _field("NAMESPACE", "metadata.namespace")
_STORE_KEYS = "mlpipeline-minio-artifact"


def components(profile: Profile, store: Installed) -> tuple[tuple[Component, int], ...]:
    """The installed components with their replicas: the cluster's own, and hetida designer or Kubeflow Pipelines."""
    if profile.hetida is None:
        return tuple((component, 1) for component in (*_pipelines(profile, store), *_clusters_own(profile)))
    runtime = profile.hetida.runtime
    cores = _RUNTIME_SHARE * runtime.cores * runtime.nodes / runtime.replicas
    return (
        (
            Component(
                RUNTIME, "hetida/designer-runtime:0.9.8", round(1000 * cores), runtime.workers * _WORKER_MEMORY,
                spread=True, env=_env(WEB_CONCURRENCY=str(runtime.workers)),
            ),
            runtime.replicas,
        ),
        (Component("hetida-designer-backend", "hetida/designer-backend:0.9.8", 250, 500 * _MI), 1),
        (Component("hetida-designer-db", "postgres:15", 100, 256 * _MI), 1),
        *((component, 1) for component in _clusters_own(profile)),
    )  # fmt: skip


_DNS = Component("coredns", "mcr.microsoft.com/oss/kubernetes/coredns:v1.11.3", 100, 70 * _MI, "kube-system")
_METRICS_SERVER = Component(
    "metrics-server", "mcr.microsoft.com/oss/kubernetes/metrics-server:v0.7.2", 100, 150 * _MI, "kube-system"
)


def _clusters_own(profile: Profile) -> tuple[Component, ...]:
    return (_DNS, _METRICS_SERVER) if profile.metrics_server else (_DNS,)


def _pipelines(profile: Profile, store: Installed) -> tuple[Component, ...]:
    controller, agent = profile.controller, profile.agent
    return (
        Component(
            API_SERVER, "ghcr.io/kubeflow/kfp-api-server:2.17.0", 250, 500 * _MI, container="ml-pipeline-api-server",
            env=(
                *_env(LOG_LEVEL="info", OBJECTSTORECONFIG_HOST=f"{store.service}.{profile.namespace}",
                      OBJECTSTORECONFIG_PORT="9000"),
                _field("POD_NAMESPACE", "metadata.namespace"),
                *_secrets(_STORE_KEYS, {"OBJECTSTORECONFIG_ACCESSKEY": "accesskey"}),
            ),
        ),
        Component("ml-pipeline-ui", "ghcr.io/kubeflow/kfp-frontend:2.17.0", 10, 70 * _MI),
        Component(
            AGENT, "ghcr.io/kubeflow/kfp-persistence-agent:2.17.0", 120, 500 * _MI,
            env=(_NAMESPACE, *_env(TTL_SECONDS_AFTER_WORKFLOW_FINISH=f"{controller.ttl_s:.0f}",
                                   NUM_WORKERS=str(agent.workers), LOG_LEVEL="info")),
        ),
        Component(
            "ml-pipeline-scheduledworkflow", "ghcr.io/kubeflow/kfp-scheduled-workflow-controller:2.17.0", 120,
            100 * _MI, env=(*_env(CLIENT_QPS="10", CLIENT_BURST="20", LOG_LEVEL="info"), _NAMESPACE),
        ),
        Component(
            "metadata-grpc-deployment", "gcr.io/tfx-oss-public/ml_metadata_store_server:1.14.0", 0, 0,
            container="container", args=("--grpc_port=8080", "--enable_database_upgrade=true"),
        ),
        Component(
            CONTROLLER, "quay.io/argoproj/workflow-controller:v4.0.8", 100, 500 * _MI,
            args=("--configmap", CONFIGURATION, "--executor-image", "quay.io/argoproj/argoexec:v4.0.8",
                  "--namespaced"),
            env=(_field("LEADER_ELECTION_IDENTITY", "metadata.name"),
                 *_env(DEFAULT_REQUEUE_TIME=f"{controller.requeue_s:g}s")),
        ),
        Component(
            "mysql", "mysql:8.4", 100, 800 * _MI, claim=DATABASE_CLAIM,
            args=("--datadir", "/var/lib/mysql", "--disable-log-bin"),
            env=({"name": "MYSQL_ALLOW_EMPTY_PASSWORD", "value": "true"},),
        ),
        _store(store),
    )  # fmt: skip


def _store(store: Installed) -> Component:
    """The deployment of the artifact store."""
    return Component(
        store.deployment, store.image, store.cpu, store.memory, claim=store.claim, args=store.args,
        env=_secrets(_STORE_KEYS, store.secrets),
    )  # fmt: skip
