"""A namespace of a real cluster in which a scene takes place: nodes, and the stand-ins for kubelets, Argo and KFP."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.real_kubernetes import RealCluster
from tests.support.real_parts.argo import ARGO, WORKFLOW_TYPE, Controller
from tests.support.real_parts.kfp import KfpApi, serving
from tests.support.real_parts.kube import Kube, RefusedError
from tests.support.real_parts.kubelet import Kubelet
from tests.support.real_parts.kubelet_api import serving_logs
from tests.support.real_parts.scenes import Scene
from tests.support.servers import kubeconfig, until

_TYPES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
_POOL = "rehearsal"  # label of a scene's nodes, and node selector of its pods
ACCOUNT = "observer"


@dataclass
class Stage:
    """Where a scene takes place.

    Attributes:
        url: of the KFP API.
        kubeconfig: of the account that observes.
        nodes: names of the nodes.
        errors: of the stand-ins; a rehearsal with any shows nothing.
    """

    scene: Scene
    kfp: KfpApi
    kubelet: Kubelet
    nodes: tuple[str, ...]
    url: str = ""
    kubeconfig: Path = Path()
    errors: list[str] = field(default_factory=list)


@contextmanager
def workflow_type(cluster: RealCluster) -> Iterator[None]:
    """Let the cluster know Argo's Workflow."""
    kube = admin(cluster)
    kube.create(_TYPES, WORKFLOW_TYPE)
    try:
        until(lambda: _is_served(kube), "the API server serves workflows")
        yield
    finally:
        kube.delete(f"{_TYPES}/{WORKFLOW_TYPE['metadata']['name']}")


def admin(cluster: RealCluster, *, patient: bool = False) -> Kube:
    """The API as an administrator."""
    return Kube(cluster.url, cluster.token, cluster.ca, patient=patient)


def _is_served(kube: Kube) -> bool:
    try:
        kube.get(f"{ARGO}/workflows")
    except RefusedError:
        return False
    return True


@contextmanager
def on_stage(scene: Scene, cluster: RealCluster, folder: Path) -> Iterator[Stage]:
    """Furnish a namespace, and let the stand-ins work there until the end of the block."""
    # A namespace lasts for a while after it was deleted: an earlier performance's may still be there.
    kube, namespace = admin(cluster), f"rehearsal-{scene.name}-{uuid.uuid4().hex[:6]}"
    path = f"/api/v1/namespaces/{namespace}"
    kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    names = tuple(f"{namespace}-{number}" for number in range(len(scene.nodes)))
    api = KfpApi(kube, namespace)
    stage = Stage(scene, api, Kubelet(kube, namespace, scene.fate()), names)
    controller = Controller(kube, namespace, {_POOL: namespace}, api.report)
    with ExitStack() as stack:
        stack.callback(kube.delete, path)
        # At once: other tests use the cluster next. No kubelet would confirm that pods are gone.
        stack.callback(kube.delete, f"{path}/events")
        stack.callback(kube.delete, f"{path}/pods?gracePeriodSeconds=0")
        key = cluster.ca.with_suffix(".key")
        leads_here = {"status": stack.enter_context(serving_logs(stage.kubelet.log, cluster.ca, key))}
        for name, cpu in zip(names, scene.nodes, strict=True):
            cluster.add_node(name, cpu=cpu, labels={_POOL: namespace})
            stack.callback(cluster.remove_node, name)
            kube.patch(f"/api/v1/nodes/{name}/status", leads_here)
        if scene.quota is not None:
            _limit(kube, path, scene.quota)
        _work(stack, stage, [
            stage.kubelet.watch, stage.kubelet.work, controller.work,
            partial(controller.watch, "workflows"), partial(controller.watch, "pods"),
        ])  # fmt: skip
        token = cluster.token if scene.rights is None else _restricted(kube, namespace, scene.rights)
        config = folder / "kubeconfig"
        kubeconfig(config, cluster.url, token=token, ca=str(cluster.ca), namespace=namespace)
        stage.kubeconfig, stage.url = config, stack.enter_context(serving(api))
        yield stage


def _work(stack: ExitStack, stage: Stage, jobs: list[Callable[[threading.Event], None]]) -> None:
    """Run each in a thread of its own."""
    over = threading.Event()

    def run(job: Callable[[threading.Event], None]) -> None:
        try:
            job(over)
        except Exception as error:  # noqa: BLE001  # whatever it is, the rehearsal must not go on unnoticed
            stage.errors.append(repr(error))

    for job in jobs:
        thread = threading.Thread(target=run, args=(job,), daemon=True)
        thread.start()
        stack.callback(thread.join)
    stack.callback(over.set)


def _limit(kube: Kube, path: str, pods: int) -> None:
    """Set a quota; it counts once the controllers have taken note of it."""
    kube.create(f"{path}/resourcequotas", {"metadata": {"name": "tight"}, "spec": {"hard": {"pods": str(pods)}}})
    until(lambda: kube.get(f"{path}/resourcequotas/tight").get("status", {}).get("hard"), "the quota is in force")


def _restricted(kube: Kube, namespace: str, resources: tuple[str, ...]) -> str:
    """The token of an account that may only list and watch some resources of a namespace."""
    path = f"/api/v1/namespaces/{namespace}"
    kube.create(f"{path}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
    rules: list[dict[str, Any]] = [{"apiGroups": [""], "resources": list(resources), "verbs": ["list", "watch"]}]
    kube.create(f"{_RIGHTS}/namespaces/{namespace}/roles", {"metadata": {"name": ACCOUNT}, "rules": rules})
    kube.create(f"{_RIGHTS}/namespaces/{namespace}/rolebindings", {
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    })  # fmt: skip
    made = kube.create(f"{path}/serviceaccounts/{ACCOUNT}/token", {"spec": {}})
    return str(made["status"]["token"])
