"""The life of a pod that waits for a node, pulls two images and stores outputs, as a cluster tells it."""

from tests.support.manifests import condition, ended, event, pod, running

NODE = "aks-steps-1"
PULLED = 'Successfully pulled image "python:3.11" in 2.3s (2.5s including waiting). Image size: 51234567 bytes.'
SCHEDULED = condition("PodScheduled", "True", 4.9)
UNFIT = condition(
    "PodScheduled", "False", 0.4, reason="Unschedulable", message="0/3 nodes are available: 3 Insufficient cpu."
)
DONE = pod(
    node=NODE, phase="Succeeded", conditions=[SCHEDULED],
    initContainerStatuses=[ended("init", 6.1, 7.2)],
    containerStatuses=[ended("wait", 11.0, 31.6), ended("main", 11.4, 30.2)],
)  # fmt: skip
STORY = (
    pod(conditions=[UNFIT]),
    event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", 0.5, micro_at=0.512345),
    pod(node=NODE, conditions=[SCHEDULED]),
    event("Scheduled", f"Successfully assigned kubeflow/x to {NODE}", 4, micro_at=4.912345),
    event("Pulling", 'Pulling image "quay.io/argoproj/argoexec:v4"', 4),
    event("Pulled", 'Successfully pulled image "quay.io/argoproj/argoexec:v4" in 850ms (850ms including waiting)', 5),
    event("Pulling", 'Pulling image "python:3.11"', 8),
    event("Pulled", PULLED, 10),
    event("Pulled", 'Container image "quay.io/argoproj/argoexec:v4" already present on machine', 10),
    event("Started", "Started container main", 11),
    pod(
        node=NODE,
        phase="Running",
        conditions=[SCHEDULED],
        containerStatuses=[running("wait", 11.0), running("main", 11.4)],
    ),
    DONE,
)
