"""The cluster collector under failures in a real cluster and on the network."""

import threading
from pathlib import Path
from typing import Any

from harness.collectors.kubernetes.reflector import Reflector
from harness.collectors.source_health import SourceHealth
from harness.model import Event
from harness.model.phases import RUNNING, UNSCHEDULABLE
from harness.store import RunFolder
from tests.support.real_cluster_runs import (
    last_spans,
    observing,
    of_ourselves,
    placed,
    placements,
    step,
)
from tests.support.real_kubernetes import RealCluster, admin
from tests.support.servers import until


def events_of(folder: RunFolder, pod: str) -> dict[str, Event]:
    return {event.reason: event for event in folder.records(Event) if event.kind == "Pod" and event.object == pod}


def test_a_pod_that_is_preempted_ends_and_the_one_of_higher_priority_takes_its_place(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    from kubernetes import client

    core = client.CoreV1Api(real_cluster.client())
    priority = {"metadata": {"name": f"high-{namespace[:40]}"}, "value": 1000}
    client.SchedulingV1Api(real_cluster.client()).create_priority_class(priority)
    with observing(tmp_path, kubeconfig=str(real_cluster.kubeconfig)) as (_, folder):
        for k in range(8):  # as many as the node holds
            step(real_cluster, namespace, f"low-{k}")
        until(lambda: placements(folder, namespace) == 8, "the node full")
        for k in range(8):
            real_cluster.run_pod(namespace, f"low-{k}")
        step(real_cluster, namespace, "urgent", priorityClassName=priority["metadata"]["name"])
        until(lambda: any(e.reason == "Preempted" for e in folder.records(Event)), "the preemption")
        victim = next(event.object for event in folder.records(Event) if event.reason == "Preempted")
        core.delete_namespaced_pod(victim, namespace, grace_period_seconds=0)  # as its kubelet does when it has ended
        until(lambda: placed(folder, namespace, "urgent"), "its placement")
        until(lambda: last_spans(folder, namespace)[victim, RUNNING].ended_at, "the victim's end")
    assert events_of(folder, victim)["Preempted"].run == namespace
    assert ("urgent", UNSCHEDULABLE) in last_spans(folder, namespace)
    running = [
        pod for (pod, phase), span in last_spans(folder, namespace).items() if phase == RUNNING and not span.ended_at
    ]
    assert len(running) == 7


def test_evicted_pods_end_whether_drained_or_evicted_by_their_node(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    from kubernetes import client

    core = client.CoreV1Api(real_cluster.client())
    with observing(tmp_path, kubeconfig=str(real_cluster.kubeconfig)) as (_, folder):
        for name in ("drained", "pressed"):
            step(real_cluster, namespace, name)
        until(lambda: placements(folder, namespace) == 2, "placements")
        for name in ("drained", "pressed"):
            real_cluster.run_pod(namespace, name)
        core.create_namespaced_pod_eviction(
            "drained", namespace, client.V1Eviction(metadata=client.V1ObjectMeta(name="drained", namespace=namespace))
        )
        core.delete_namespaced_pod("drained", namespace, grace_period_seconds=0)
        said = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
        core.patch_namespaced_pod_status("pressed", namespace, {"status": said})
        for name in ("drained", "pressed"):
            until(lambda name=name: last_spans(folder, namespace)[name, RUNNING].ended_at, f"the end of {name}")
    assert events_of(folder, "pressed")["Evicted"].message == said["message"]


def test_claims_are_followed_and_metadata_can_be_watched_alone(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    """As workflows are watched; this control plane has no custom resources, so claims stand in for them."""
    path, config = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", str(real_cluster.kubeconfig)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    seen: list[dict[str, Any]] = []
    with observing(tmp_path, kubeconfig=config, platform_namespaces=(namespace,)) as (cluster, folder):
        follower = Reflector(
            cluster._api, path, {}, lambda _, manifest: seen.append(manifest), health=SourceHealth("alone", cluster._journal),
            journal=cluster._journal, metadata_only=True,
        )  # fmt: skip
        stop = threading.Event()
        threading.Thread(target=follower.follow, args=(stop,), daemon=True).start()
        for name in ("seaweedfs-pvc", "mysql-pv-claim"):
            admin(real_cluster).create(path, {"metadata": {"name": name, "labels": {"app": "store"}}, "spec": spec})
        until(lambda: _waiting(folder) == {"seaweedfs-pvc", "mysql-pv-claim"}, "the claims")
        until(lambda: len(seen) >= 2, "their metadata")
        stop.set()
    assert all(manifest["metadata"]["labels"] == {"app": "store"} for manifest in seen)
    assert not any("spec" in manifest for manifest in seen)
    assert not of_ourselves(folder)


def _waiting(folder: RunFolder) -> set[str]:
    """The pending volume claims."""
    return {e.object for e in folder.records(Event) if (e.kind, e.reason) == ("PersistentVolumeClaim", "Pending")}
