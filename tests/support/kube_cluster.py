"""A small model behind the API under test: snapshots are manifests, actions do what they say at once."""

import asyncio
import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from harness.simulator.kube_api import ApiError, ObjectStore, Resource, resource
from harness.simulator.kube_api.patches import merge
from harness.simulator.kube_api.resource import shown
from harness.simulator.kube_api.routes import mount
from tests.support.servers import kubeconfig

T = TypeVar("T")
Manifest = dict[str, Any]
_uids = itertools.count(1)


def as_is(snapshot: Any) -> Manifest:
    return dict(snapshot)


def stamp(seconds_ago: float = 0.0) -> str:
    return datetime.fromtimestamp(int(time.time() - seconds_ago), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def metadata(name: str, namespace: str = "", **more: Any) -> Manifest:
    found = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {**found, "uid": f"uid-{next(_uids)}", "creationTimestamp": stamp(), **more}


def pod(
    name: str,
    namespace: str = "default",
    *,
    node: str = "",
    phase: str = "Pending",
    labels: dict[str, str] | None = None,
) -> Manifest:
    more = {"labels": labels} if labels else {}
    placed = {"nodeName": node} if node else {}
    return {
        "metadata": metadata(name, namespace, **more),
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {}}],
            "restartPolicy": "Never",
            **placed,
        },
        "status": {"phase": phase, "qosClass": "BestEffort"},
    }


_MACHINE = dict.fromkeys(
    (
        "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
        "machineID", "operatingSystem", "osImage", "systemUUID",
    ),
    "",
)  # fmt: skip


def node(name: str, *, labels: dict[str, str] | None = None) -> Manifest:
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = {
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
        "lastHeartbeatTime": stamp(), "lastTransitionTime": stamp(),
    }  # fmt: skip
    return {
        "metadata": metadata(name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [ready],
            "nodeInfo": _MACHINE,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def deployment(name: str, replicas: int) -> Manifest:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "metadata": metadata(name, "default"),
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
        "status": {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas},
    }


def types() -> list[Resource]:
    usage = {"cpu": "250m", "memory": "512Mi"}
    at = {"timestamp": stamp(), "window": "30s"}
    return [
        resource.nodes(**shown(as_is, "spec.unschedulable")),
        resource.pods(**shown(as_is, "spec.nodeName", "status.phase", "spec.restartPolicy")),
        resource.namespaces(**shown(as_is, "status.phase")),
        resource.persistent_volume_claims(**shown(as_is)),
        resource.events(**shown(as_is, "involvedObject.kind", "involvedObject.name", "reason", "type")),
        resource.config_maps(**shown(as_is)),
        resource.deployments(**shown(as_is)),
        resource.services(**shown(as_is, "spec.clusterIP", "spec.type")),
        resource.resource_quotas(**shown(as_is)),
        resource.workflows(**shown(as_is)),
        resource.node_metrics(
            **shown(as_is),
            listing=lambda: [("", "node-0", {"metadata": {"name": "node-0"}, **at, "usage": usage})],
        ),
        resource.pod_metrics(
            **shown(as_is),
            listing=lambda: [
                (
                    "default",
                    "p0",
                    {
                        "metadata": {"name": "p0", "namespace": "default"},
                        **at,
                        "containers": [{"name": "main", "usage": usage}],
                    },
                )
            ],
        ),
    ]


class Cluster:
    """Implements `Actions` over the store, at once and without a kubelet; remembers what it was asked."""

    def __init__(self, history: int = 50_000) -> None:
        self.store = ObjectStore(types(), history)
        self.asked: list[tuple[object, ...]] = []
        self.guarded: set[str] = set()

    def add(self, plural: str, manifest: Manifest) -> int:
        its = manifest["metadata"]
        return self.store.put(plural, its.get("namespace", ""), its["name"], manifest)

    def _resource(self, plural: str) -> Resource:
        return next(each for each in self.store.resources if each.plural == plural and each.listing is None)

    def manifest(self, plural: str, namespace: str, name: str) -> Manifest:
        found = self.store.get(self._resource(plural), namespace, name)
        assert found is not None
        return copy.deepcopy(as_is(found.snapshot))

    def make(self, resource: Resource, namespace: str, document: dict[str, Any], *, dry: bool = False) -> None:
        """Put a client's object into the store."""
        if not dry:
            self.store.put(resource.plural, namespace, document["metadata"]["name"], document)

    def delete(self, plural: str, namespace: str, name: str, grace_s: float | None) -> None:
        self.asked.append(("delete", plural, namespace, name, grace_s))
        if plural != "pods":
            self.store.delete(plural, namespace, name)
            return
        manifest = self.manifest(plural, namespace, name)
        grace = 30 if grace_s is None else int(grace_s)
        generation = manifest["metadata"].get("generation", 0) + ("deletionTimestamp" not in manifest["metadata"])
        its = {"deletionTimestamp": stamp(-grace), "deletionGracePeriodSeconds": grace, "generation": generation}
        manifest["metadata"] |= its
        self.store.put(plural, namespace, name, manifest)
        if not grace:
            self.store.delete(plural, namespace, name)

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        self.asked.append(("patch", plural, namespace, name, patch))
        self.store.put(plural, namespace, name, merge(self.manifest(plural, namespace, name), patch))

    def evict(self, namespace: str, name: str, grace_s: float | None = None) -> None:
        self.asked.append(("evict", namespace, name, grace_s))
        if name in self.guarded:
            raise ApiError(
                429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", {}
            )
        manifest = self.manifest("pods", namespace, name)
        why = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            **why,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(),
        }
        manifest["status"].setdefault("conditions", []).append(condition)
        self.store.put("pods", namespace, name, manifest)
        self.delete("pods", namespace, name, grace_s)


class Server:
    """The API of a cluster on the loopback interface, its event loop in a thread of its own."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.url = ""
        self.kubeconfig = folder / "kubeconfig"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubeapi", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._runner = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(60)
        kubeconfig(self.kubeconfig, self.url)

    async def _serve(self) -> web.AppRunner:
        app = web.Application()
        mount(app, self.cluster.store, self.cluster, time.time_ns)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def do(self, action: Callable[[Cluster], T]) -> T:
        """Let the model act, in the loop's thread as it does in the simulator."""

        async def act() -> T:
            return action(self.cluster)

        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(60)

    def client(self) -> Any:
        """A `kubernetes.client.ApiClient` for this server."""
        from kubernetes import config

        return config.new_client_from_config(str(self.kubeconfig))


@contextmanager
def serve(cluster: Cluster, folder: Path) -> Iterator[Server]:
    server = Server(cluster, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
