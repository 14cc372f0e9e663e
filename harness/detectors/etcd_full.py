"""The cluster's etcd has no space left: nothing can be created or changed any more."""

import re

from harness.analysis.timeline import Timeline
from harness.detectors.capability import Capability
from harness.detectors.database_errors import DatabaseError, find
from harness.model.findings import Finding

NAME = "etcd-full"
NEEDS = (Capability.SUBMISSIONS,)
USES = {Capability.WORKFLOWS: "the workflows that could not be updated"}
TARGETS = ("argo", "kfp")
NOT_INJECTED = "the simulated cluster keeps its objects in memory, without a limit"

_ERROR = DatabaseError(
    NAME,
    re.compile(r"mvcc: database space exceeded|etcdserver: no space"),
    "The cluster's etcd is full",
    "Delete finished workflows, then compact and defragment etcd and disarm its alarm; give workflows a time to live "
    "(ttlStrategy) and raise --quota-backend-bytes. On a managed cluster the provider does the latter.",
    (
        "kubectl get workflows -A --no-headers | wc -l",
        "kubectl delete workflows -A -l workflows.argoproj.io/completed=true",
    ),
)


def detect(timeline: Timeline) -> list[Finding]:
    """Etcd's refusal, in responses of the API server and in messages of workflows."""
    return find(timeline, _ERROR)
