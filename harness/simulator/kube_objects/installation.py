"""The other objects of an installation: namespaces, services, volume claims."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.simulator.cluster.quota import Quota
from harness.simulator.cluster.shapes import quantity
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.components import RUNTIME
from harness.simulator.kube_objects.pod_status import pod_ip
from harness.simulator.kube_objects.snapshots import PodSnapshot, metadata, uid
from harness.simulator.profile import Profile
from harness.simulator.profile.store_products import Installed


@dataclass(frozen=True, slots=True)
class Claim:
    """A volume claim at one resource version. `capacity` in bytes."""

    name: str
    namespace: str
    capacity: float


NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
STORAGE_CLASS = "managed-csi"


@dataclass(frozen=True, slots=True)
class Service:
    """A ClusterIP service for the pods of a component; `number` determines its address."""

    name: str
    namespace: str
    component: str
    ports: tuple[tuple[str, int], ...]
    number: int


def services(profile: Profile, store: Installed) -> tuple[Service, ...]:
    """The services of the installation."""
    own = profile.namespace
    ports: dict[str, tuple[tuple[str, int], ...]] = {
        "ml-pipeline": (("http", 8888), ("grpc", 8887)),
        "ml-pipeline-ui": (("http", 80),),
        "metadata-grpc-service": (("grpc-api", 8080),),
        "workflow-controller-metrics": (("metrics", 9090),),
        "mysql": (("mysql", 3306),),
        store.service: (("http", 9000),),
    }
    of = {"metadata-grpc-service": "metadata-grpc-deployment", "workflow-controller-metrics": "workflow-controller",
          store.service: store.deployment}  # fmt: skip
    if profile.hetida is not None:
        ports = {RUNTIME: (("http", 8090),), "hetida-designer-backend": (("http", 8090),)}
    found: list[tuple[str, str, str, tuple[tuple[str, int], ...]]] = [("kubernetes", "default", "", (("https", 443),))]
    found += [(name, own, of.get(name, name), each) for name, each in ports.items()]
    found += [("kube-dns", "kube-system", "coredns", (("dns-tcp", 53),))]
    if profile.metrics_server:
        found += [("metrics-server", "kube-system", "metrics-server", (("https", 443),))]
    return tuple(Service(*each, number) for number, each in enumerate(found, start=1))


def render_service(service: Service, stamp: Stamp) -> Manifest:
    """The manifest of a service."""
    address = f"10.0.{service.number >> 8}.{service.number & 255}"
    ports = [{"name": name, "protocol": "TCP", "port": port, "targetPort": port} for name, port in service.ports]
    in_cluster = {"kubernetes.io/cluster-service": "true"} if service.name == "kube-dns" else {}
    return {
        "metadata": metadata(
            "service",
            service.name,
            stamp(0.0),
            service.namespace,
            labels={"app": service.component or service.name, **in_cluster},
        ),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "ports": ports,
            "sessionAffinity": "None",
            **({"selector": {"app": service.component}} if service.component else {}),
        },
        "status": {"loadBalancer": {}},
    }


def render_namespace(name: str, stamp: Stamp) -> Manifest:
    """The manifest of a namespace."""
    return {
        "metadata": metadata("namespace", name, stamp(0.0), labels={"kubernetes.io/metadata.name": name}),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def render_claim(claim: Claim, stamp: Stamp) -> Manifest:
    """The manifest of a volume claim."""
    storage = quantity(claim.capacity)
    return {
        "metadata": metadata(
            "claim",
            claim.name,
            stamp(0.0),
            claim.namespace,
            finalizers=["kubernetes.io/pvc-protection"],
            labels={"application-crd-id": "kubeflow-pipelines"},
        ),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            "storageClassName": STORAGE_CLASS,
            "volumeMode": "Filesystem",
            "volumeName": f"pvc-{uid('volume', claim.namespace, claim.name)}",
        },
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": storage}},
    }


def render_endpoint_slice(service: Service, pods: Iterable[PodSnapshot], stamp: Stamp) -> Manifest:
    """The manifest of an endpoint slice: the pods behind a service."""
    labels = {
        "kubernetes.io/service-name": service.name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    name = f"{service.name}-{uid('slice', service.namespace, service.name)[:5]}"
    return {
        "metadata": metadata("endpoint slice", name, stamp(0.0), service.namespace, labels=labels),
        "addressType": "IPv4",
        "ports": [{"name": name, "protocol": "TCP", "port": port} for name, port in service.ports],
        "endpoints": [_endpoint(pod) for pod in pods if pod_ip(pod)],
    }


def _endpoint(pod: PodSnapshot) -> Manifest:
    ready = pod.started is not None and pod.unreachable is None
    return {
        "addresses": [pod_ip(pod)],
        "conditions": {"ready": ready, "serving": ready, "terminating": False},
        "nodeName": pod.node,
        "targetRef": {"kind": "Pod", "namespace": pod.namespace, "name": pod.name},
    }


# --- the ResourceQuota of the runs as a Kubernetes object, and the PriorityClasses of every cluster ------------------


# In every cluster (kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption).
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def render_quota(quota: Quota, namespace: str, since: float, stamp: Stamp) -> Manifest:
    """The manifest of a ResourceQuota, with amounts as Kubernetes writes them."""
    hard = dict(quota.hard)
    return {
        "metadata": metadata("quota", quota.name, stamp(since), namespace),
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": dict(quota.used)},
    }
