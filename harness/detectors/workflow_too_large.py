"""Workflows are too large for one Kubernetes object."""

import re

from harness.analysis.timeline import Timeline
from harness.detectors.capability import Capability
from harness.detectors.database_errors import DatabaseError, find
from harness.model.findings import Finding

NAME = "workflow-too-large"
NEEDS = (Capability.SUBMISSIONS,)
USES = {Capability.WORKFLOWS: "the workflows that grew too large while they ran"}
TARGETS = ("argo", "kfp")
NOT_INJECTED = "it is a property of the workflows, not of the platform"

_ERROR = DatabaseError(
    NAME,
    # Argo's controller; etcd (--max-request-bytes, 1.5 MiB by default); the API server (3 MiB)
    re.compile(r"longer than maximum allowed size|etcdserver: request is too large|Request entity too large"),
    "Workflows are too large for a Kubernetes object",
    "Let Argo keep the nodes of large workflows in its database (nodeStatusOffLoad under persistence), or split the "
    "workflow: each node takes about half a kilobyte, compressed much less.",
    (
        "kubectl get configmap workflow-controller-configmap -n {namespace} -o yaml | grep -A12 persistence",
        "kubectl edit configmap workflow-controller-configmap -n {namespace}",
    ),
)


def detect(timeline: Timeline) -> list[Finding]:
    """The refusals of controller, API server and etcd, in responses and in messages of workflows."""
    return find(timeline, _ERROR)
