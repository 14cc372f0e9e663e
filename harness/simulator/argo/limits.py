"""What keeps a template from being executed now, or again: ``parallelism``, suspensions, and the retry strategy."""

from collections.abc import Mapping, Sequence
from math import inf

from harness.simulator.argo.expressions import ExpressionError, filled, is_true_of
from harness.simulator.argo.fields import is_pod, policy, seconds
from harness.simulator.argo.nodes import DAG, PENDING, POD, RUNNING, STEPS, Node, Run
from harness.simulator.argo.numbers import duration
from harness.simulator.argo.templates import Spec

_ACTIVE = (PENDING, RUNNING)


def is_throttled(run: Run, template: Spec, boundary: str) -> bool:
    """Whether ``parallelism``, of the workflow or of the template around it (the node `boundary`), is used up."""
    most = int(run.spec.get("parallelism") or 0)
    around = run.nodes.get(boundary)
    inside = int(run.templates[around.template].get("parallelism") or 0) if around is not None else 0
    if not most and not inside:  # of most workflows: nothing to count, however many nodes there are
        return False
    nodes = [node for node in run.nodes.values() if node.phase in _ACTIVE]
    if most and is_pod(template) and sum(node.type == POD for node in nodes) >= most:
        return True
    count = sum(node.boundary == boundary and node.type in {POD, STEPS, DAG} for node in nodes)
    return bool(inside) and count >= inside


def is_repeated(run: Run, strategy: Spec, attempts: Sequence[Node]) -> bool:
    """Whether another attempt follows the last one.

    Raises:
        ExpressionError: the strategy's expression is no condition.
    """
    limit, last = strategy.get("limit"), attempts[-1]
    more = limit is None or len(attempts) <= int(limit)
    if not more or last.phase not in policy(strategy) or run.shutdown:
        return False
    return not strategy.get("expression") or is_true_of(str(strategy["expression"]), _last_retry(last))


def _last_retry(last: Node) -> dict[str, str]:
    """What a strategy's expression knows of the last attempt."""
    code = last.pod.exit_code if last.pod is not None else -1
    took_s = (last.finished or last.started) - last.started
    own = {"exitCode": code, "status": last.phase, "message": last.message, "duration": int(took_s)}
    return {f"lastRetry.{key}": str(value) for key, value in own.items()}


def backoff_s(strategy: Spec, attempts: int) -> float:
    """Seconds from the end of the latest of so many attempts to the next one."""
    backoff = strategy.get("backoff") or {}
    first = seconds(backoff.get("duration") or 0)
    most = seconds(backoff["cap"]) if backoff.get("cap") else inf
    return min(first * float(backoff.get("factor") or 1) ** (attempts - 1), most) if first else 0.0


def out_of_time(strategy: Spec, attempts: Sequence[Node]) -> str:
    """Why no attempt follows within ``backoff.maxDuration``, in Argo's words; "" if one may.

    Source: processNodeRetries in Argo's workflow/controller/operator.go.
    """
    most = (strategy.get("backoff") or {}).get("maxDuration")
    ended = attempts[-1].finished
    if not most or ended is None:
        return ""
    until = attempts[0].started + seconds(most)
    if ended > until:
        return "Max duration limit exceeded"
    return "Backoff would exceed max duration limit" if ended + backoff_s(strategy, len(attempts)) > until else ""


def suspended_s(template: Spec, scope: Mapping[str, str]) -> float:
    """Seconds that a suspend template waits; 0 without a duration, where a person ends it.

    Raises:
        ExpressionError: what its tags are replaced with is not a duration.
    """
    text = filled(str((template["suspend"] or {}).get("duration") or "0"), scope)
    if why := duration(text):
        raise ExpressionError(f"suspend.duration: {why}")
    return seconds(text)
