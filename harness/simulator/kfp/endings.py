"""What a pod's end means to the workflow controller: the state and message of its node, and whether it is tried again.

KFP's ConfigMap gives every node of a workflow a retry strategy: up to `error_retries` attempts, after errors only
(``templateDefaults``: ``retryPolicy: OnError``). A failed container is a failure and not an error, so that it is not
repeated, not even with ``set_retry``; a deleted or lost pod is, and one of which only ``wait`` failed. Without these
defaults only ``set_retry`` repeats anything, and Argo's own policy for it is OnFailure.
"""

from harness.simulator.cluster import Pod
from harness.simulator.cluster.kubelet import EVICTED
from harness.simulator.kfp.graph import Plan
from harness.simulator.kfp.launcher import WAIT_FAILED
from harness.simulator.kfp.workflow import ERROR, FAILED


def ending(pod: Pod, *, stopping: bool = False) -> tuple[str, str]:
    """The state and message of the node of a pod that did not succeed, in Argo's words.

    `stopping` is whether its workflow is being terminated: KFP sets the workflow's deadline to now.
    """
    if stopping:
        return FAILED, "Step exceeded its deadline"
    if pod.deleting is not None:
        return ERROR, "pod deleted"
    if pod.reason == EVICTED:
        return FAILED, pod.message
    if pod.wait_error and not pod.exit_code:
        return ERROR, f"wait: Error (exit code {WAIT_FAILED}): {pod.wait_error}"
    said = f"main: {pod.reason} (exit code {pod.exit_code})"
    return FAILED, f"{said}: {pod.message}" if pod.message else said


def retries(plan: Plan, state: str, error_retries: int) -> int:
    """How often a node that ended in this state may be tried again."""
    repeated = ERROR if error_retries else FAILED
    if state != repeated:
        return 0
    return plan.container.retries or error_retries
