"""What load and observer need to be allowed in a cluster, and what a test loses without it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from harness.model.phases import CONTROLLER_SETTINGS
from harness.model.plan import Plan
from harness.plan.kubeconfig import by_kubeconfig
from harness.targets.kube_service import KubeService, is_kube_service


@dataclass(frozen=True, slots=True)
class Right:
    """A right of the account of the kubeconfig, and what a test loses without it."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    cost: str
    namespace: str = ""  # "" is that of the runs
    only: str = ""  # the one object of this name

    @property
    def name(self) -> str:
        """As ``kubectl auth can-i`` names the resource."""
        named = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{named}/{self.only}" if self.only else named

    def rule(self, verbs: Sequence[str] = ()) -> dict[str, Any]:
        """As a role grants it; `verbs` if not all of them."""
        only = {"resourceNames": [self.only]} if self.only else {}
        return {"apiGroups": [self.group], "resources": [self.resource], **only, "verbs": list(verbs or self.verbs)}


_FOLLOW = ("get", "list", "watch")
KARPENTER = "karpenter.sh"
RIGHTS = (
    Right("", "nodes", _FOLLOW, "no node counts: scaling, capacity and cost can't be judged"),
    Right("", "pods", _FOLLOW, "no phases of runs: where the time went can't be judged"),
    Right("", "events", _FOLLOW, "no reasons why pods wait or fail"),
    Right("", "persistentvolumeclaims", _FOLLOW, "volumes are not assigned to the store or the database"),
    Right("", "resourcequotas", ("list",), "whether a quota was used up is seen only in workflows that are read"),
    Right("", "pods/log", ("get",), "storing outputs can't be separated from running"),
    Right("argoproj.io", "workflows", _FOLLOW, "the lag of the platform behind its workflows can't be judged"),
    Right("", "configmaps", ("get",), "which of Argo's limits holds workflows back", only=CONTROLLER_SETTINGS),
    Right(KARPENTER, "nodeclaims", _FOLLOW, "no machines on their way, and not why one did not come"),
    Right("metrics.k8s.io", "nodes", ("get", "list"), "no CPU and memory in use of nodes"),
    Right("metrics.k8s.io", "pods", ("get", "list"), "no CPU and memory in use of steps: no recommended requests"),
)
# Not among them: a kubelet also lets its holder run commands in every container. See deploy/rbac-kubelets.yaml.
KUBELETS = Right("", "nodes/proxy", ("get",), "free space of volumes comes from a Prometheus alone (--prometheus)")


def rights_to_load(plan: Plan) -> tuple[Right, ...]:
    """What a load of the platform needs in the cluster: nothing where it is reached by an address of its own."""
    if is_kube_service(plan.host):
        verbs = ("get", "create", "update", "delete")
        refused = "the API server refuses requests to the platform with 403; update and delete: only some clean-ups"
        return (Right("", "services/proxy", verbs, refused, KubeService.parse(plan.host).namespace),)
    if by_kubeconfig(plan):
        namespace = str(plan.target_options.get("namespace") or "default")
        refused = "no workflow can be started, shut down or deleted"
        return (Right("argoproj.io", "workflows", ("create", "patch", "delete"), refused, namespace),)
    return ()


def cluster_role(missing: Iterable[tuple[Right, Sequence[str]]]) -> str:
    """The ClusterRole that grants verbs of rights, as YAML; "" for none."""
    rules = [right.rule(verbs) for right, verbs in missing]
    if not rules:
        return ""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "pipeswarm-observer"},
        "rules": rules,
    }
    return str(yaml.safe_dump(role, sort_keys=False))
