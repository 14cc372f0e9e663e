"""The account of a test's pods: it may look at the cluster, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

ACCOUNT = "pipeswarm-observer"
_GROUP = "rbac.authorization.k8s.io"


def account(namespace: str, rules: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
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
