"""The account of a test's pods: it may look at the cluster, and create Argo's workflows where the test does."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.targets.argo.manifest import parse_reference

Rule = Mapping[str, Sequence[str]]
ACCOUNT = "pipeswarm-observer"
_GROUP = "rbac.authorization.k8s.io"


def account(namespace: str, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """A service account, and the ClusterRole of `rules` bound to it. Nodes belong to no namespace: a Role won't do."""
    role = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": ACCOUNT}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}},
        {
            "apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT},
            "rules": [dict(rule) for rule in rules],
        },
        {
            "apiVersion": f"{_GROUP}/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{ACCOUNT}-{namespace}"}, "roleRef": role, "subjects": [subject],
        },
    ]  # fmt: skip


def argo_rules(reference: str, cleanup: str) -> tuple[Rule, ...]:
    """Rules of a Role that may create workflows and end them as ``--cleanup`` does; `reference` is that of ``--from``.

    A template of the whole cluster is in no namespace, and so in no Role.
    """
    verbs = ["create", *{"terminate": ["patch"], "delete": ["patch", "delete"]}.get(cleanup, [])]
    templates = f"{parse_reference(reference).kind.lower()}s" if reference else "workflowtemplates"
    return tuple(
        {"apiGroups": ["argoproj.io"], "resources": [resource], "verbs": allowed}
        for resource, allowed in (("workflows", verbs), (templates, ["get"]))
    )


def permission(name: str, namespace: str, account: str, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """A Role of `rules`, and its binding to a service account of the same namespace."""
    metadata = {"name": name, "namespace": namespace}
    return [
        {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": [dict(rule) for rule in rules]},
        {
            "apiVersion": f"{_GROUP}/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ]  # fmt: skip
