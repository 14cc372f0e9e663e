"""What a pod's end means to the workflow controller: state and message of its node, and whether it is tried again.

A deleted or lost pod is an error, and so is one of which only ``wait`` failed. A failed container is a failure, and so
is a pod that its kubelet ended: evicted for lack of memory, or because the machine shuts down.

KFP compiles ``set_retry`` into a limit and a back-off without a policy; the policy is that of the controller's defaults
(KFP's ConfigMap: OnError), or Argo's own without them (OnFailure). ``backoffMaxDuration`` becomes Argo's
``maxDuration``, which does not bound one wait: it is the time from the first attempt's start after which there is no
further attempt, and at which a later attempt is ended. Source: Argo 4.0, ``processNodeRetries`` and ``getDeadline``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from harness.simulator.cluster import Pod
from harness.simulator.profile import Controller as Settings
from harness.simulator.workflows.graph import Plan
from harness.simulator.workflows.launcher import WAIT_FAILED
from harness.simulator.workflows.workflow import ERROR, FAILED

_REPEATED: Mapping[str, tuple[str, ...]] = {
    "Always": (FAILED, ERROR), "OnFailure": (FAILED,), "OnError": (ERROR,), "OnTransientError": (),
}  # fmt: skip
_OVERFLOW_S = 1e9  # far beyond every test: a back-off that grows without bound stays a number


@dataclass(frozen=True, slots=True)
class RetryStrategy:
    """How often and when a node is tried again.

    Attributes:
        limit: further attempts after the first; none for any number.
        policy: OnError, OnFailure, OnTransientError or Always.
        backoff_s: before the second attempt; multiplied by `factor` for each later one, up to `cap_s`.
        max_s: from the first attempt's start, no attempt begins or goes on after it.
        expression: a condition on the last attempt, too; "" for none.
    """

    limit: int | None
    policy: str
    backoff_s: float = 0.0
    factor: float = 1.0
    max_s: float = inf
    cap_s: float = _OVERFLOW_S
    expression: str = ""

    def allows(self, attempts: int) -> bool:
        """Whether its limit allows another attempt after that many."""
        return self.limit is None or attempts <= self.limit

    def covers(self, state: str) -> bool:
        """Whether an attempt that ended in this state, Failed or Error, may be repeated."""
        return state in _REPEATED[self.policy]

    def pause_s(self, attempts: int) -> float:
        """Seconds from the end of the latest of that many attempts to the next one."""
        try:
            return min(self.backoff_s * self.factor ** (attempts - 1), self.cap_s)
        except OverflowError:
            return self.cap_s

    def too_late(self, attempts: int, since_first_s: float) -> str:
        """Why no attempt follows within `max_s`, in Argo's words; "" if one may; arguments as for `wait_s`."""
        if since_first_s > self.max_s:
            return "Max duration limit exceeded"
        return "Backoff would exceed max duration limit" if since_first_s + self.pause_s(attempts) > self.max_s else ""

    def wait_s(self, state: str, attempts: int, since_first_s: float) -> float | None:
        """Seconds from the end of an attempt to the next one; none if there is none.

        Args:
            state: Failed or Error, in which the latest attempt ended.
            attempts: made so far.
            since_first_s: from the start of the first attempt to the end of the latest.
        """
        repeated = self.allows(attempts) and self.covers(state) and not self.too_late(attempts, since_first_s)
        return self.pause_s(attempts) if repeated else None


def strategy_of(plan: Plan, settings: Settings) -> RetryStrategy:
    """The strategy of a step: the task's own limit and back-off, the controller's policy and its limit for the rest."""
    container, policy = plan.container, settings.retry_policy
    if not policy:
        policy = "OnError" if settings.error_retries else "OnFailure"
    if container.retries:
        return RetryStrategy(
            container.retries, policy, container.backoff_s, container.backoff_factor, container.backoff_max_s
        )
    return RetryStrategy(settings.error_retries, policy)


def ending(pod: Pod, *, stopping: bool = False) -> tuple[str, str]:
    """The state and message of the node of a pod that did not succeed, in Argo's words.

    `stopping` is whether its workflow is being terminated: KFP sets the workflow's deadline to now.
    """
    if stopping:
        return FAILED, "Step exceeded its deadline"
    if pod.node is None and pod.message:
        return ERROR, pod.message  # it was not created
    if pod.deleting is not None:
        return ERROR, "pod deleted"
    if pod.by_kubelet:
        return FAILED, pod.message
    if pod.wait_error and not pod.exit_code:
        return ERROR, f"wait: Error (exit code {WAIT_FAILED}): {pod.wait_error}"
    said = f"main: {pod.reason} (exit code {pod.exit_code})"
    return FAILED, f"{said}: {pod.message}" if pod.message else said
