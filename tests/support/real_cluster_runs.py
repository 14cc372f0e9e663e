"""Pods of a real cluster, and the cluster collector that records them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.collectors.collector import Activity, ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.cluster import Cluster
from harness.model import Event, Plan, Span
from harness.model.live.observer import LiveObserver
from harness.model.phases import SCHEDULING
from harness.store import RunFolder
from harness.targets.kfp import KfpTarget
from tests.support.observations import observation
from tests.support.real_kubernetes import RealCluster
from tests.support.servers import Proxy, kubeconfig, until


@contextmanager
def observing(tmp_path: Path, activity: Activity | None = None, **more: Any) -> Iterator[tuple[Cluster, RunFolder]]:
    """A running collector, stopped at the end."""
    folder = RunFolder.create(tmp_path, "run")
    with folder.recorder() as recorder:
        settings = ObserverSettings(host="http://x", **{"kube_requests_per_s": 200.0, **more})
        plan = Plan("kfp", "http://x", {}, 1, 0, False)
        cluster = Cluster(
            observation(
                folder,
                Journal(recorder),
                plan=plan,
                target=KfpTarget({"experiment": ""}),
                settings=settings,
                activity=activity or Activity(),
            )
        )
        stop = threading.Event()
        thread = threading.Thread(target=cluster.collect, args=(stop,), daemon=True)
        thread.start()
        try:
            until(lambda: live(cluster).pods is not None, "the first look")
            yield cluster, folder
        finally:
            stop.set()
            thread.join(20)
        assert not thread.is_alive()


def live(cluster: Cluster) -> LiveObserver:
    return cluster.live() or LiveObserver()


def step(real: RealCluster, namespace: str, name: str, *, cpu: str = "500m", **spec: Any) -> None:
    """A pod as Argo creates it for KFP; the run has the namespace's name."""
    from kubernetes import client

    client.CoreV1Api(real.client()).create_namespaced_pod(
        namespace,
        {
            "metadata": {
                "name": name,
                "labels": {"pipeline/runid": namespace, "workflows.argoproj.io/workflow": "wf"},
                "annotations": {"workflows.argoproj.io/node-name": "wf.root.train.executor(0)"},
            },
            "spec": {
                "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}],
                "restartPolicy": "Never",
                "nodeSelector": {"scene": namespace},
                **spec,
            },
        },
    )


def last_spans(folder: RunFolder, run: str) -> dict[tuple[str, str], Span]:
    return {(span.step, span.phase): span for span in folder.records(Span) if span.run == run}


def of_ourselves(folder: RunFolder) -> list[Event]:
    """The observer's notes, except about Argo, which this control plane lacks."""
    events = (event for event in folder.records(Event) if event.kind == "Observer")
    return [event for event in events if event.object != "kubernetes workflows" or "404" not in event.message]


def placements(folder: RunFolder, run: str) -> int:
    return sum(event.reason == "Scheduled" and event.run == run for event in folder.records(Event))


@pytest.fixture
def namespace(real_cluster: RealCluster, request: pytest.FixtureRequest) -> str:
    """A namespace and a node with four cores, for this test only."""
    from kubernetes import client

    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[-50:].strip("-")
    client.CoreV1Api(real_cluster.client()).create_namespace({"metadata": {"name": name}})
    real_cluster.add_node(
        f"node-{name}",
        cpu="4",
        labels={"agentpool": "steps", "scene": name, "kubernetes.azure.com/scalesetpriority": "spot"},
    )
    return name


def through(proxy: Proxy, real: RealCluster, tmp_path: Path) -> str:
    return kubeconfig(tmp_path / "config", f"https://127.0.0.1:{proxy.port}", token=real.token, ca=str(real.ca))


def reasons(folder: RunFolder) -> list[str]:
    return [event.reason for event in of_ourselves(folder)]


def placed(folder: RunFolder, run: str, pod: str) -> bool:
    span = last_spans(folder, run).get((pod, SCHEDULING))
    return span is not None and span.node is not None
