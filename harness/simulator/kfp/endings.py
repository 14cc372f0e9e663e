"""What a pod's end means to the workflow controller: the state and message of its node.

A deleted or lost pod is an error, and so is one of which only ``wait`` failed. A failed container is a failure, and so
is a pod that its kubelet ended: evicted for lack of memory, or because the machine shuts down. What of it is tried
again: `harness.simulator.kfp.retry`.
"""

from harness.simulator.cluster import Pod
from harness.simulator.cluster.kubelet import BY_KUBELET
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
    if pod.reason in BY_KUBELET:
        return FAILED, pod.message
    if pod.wait_error and not pod.exit_code:
        return ERROR, f"wait: Error (exit code {WAIT_FAILED}): {pod.wait_error}"
    said = f"main: {pod.reason} (exit code {pod.exit_code})"
    return FAILED, f"{said}: {pod.message}" if pod.message else said
