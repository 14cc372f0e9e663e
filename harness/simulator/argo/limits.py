"""What keeps a template from being executed now, or again: ``parallelism``, suspensions, and the retry strategy."""

from collections.abc import Mapping, Sequence

from harness.simulator.argo.expressions import ExpressionError, filled, is_true_of
from harness.simulator.argo.fields import is_pod, seconds
from harness.simulator.argo.nodes import DAG, PENDING, POD, RUNNING, STEPS, Node, Run
from harness.simulator.argo.numbers import duration
from harness.simulator.argo.templates import Spec
from harness.simulator.workflows.retry import RetryStrategy

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


def strategy_of(retry: Spec) -> RetryStrategy:
    """The ``retryStrategy`` of a template, its tags replaced."""
    backoff, limit, condition = retry.get("backoff") or {}, retry.get("limit"), str(retry.get("expression") or "")
    policy = str(retry.get("retryPolicy") or ("Always" if condition else "OnFailure"))
    times = {"backoff_s": "duration", "max_s": "maxDuration", "cap_s": "cap"}
    given = {name: seconds(backoff[key]) for name, key in times.items() if backoff.get(key)}
    factor = float(backoff.get("factor") or 1)
    return RetryStrategy(None if limit is None else int(limit), policy, factor=factor, expression=condition, **given)


def is_repeated(run: Run, strategy: RetryStrategy, attempts: Sequence[Node]) -> bool:
    """Whether another attempt may follow the last one; not where only a real platform could evaluate the condition."""
    last = attempts[-1]
    if run.shutdown or not strategy.covers(last.phase) or not strategy.allows(len(attempts)):
        return False
    try:
        return not strategy.expression or is_true_of(strategy.expression, _last_retry(last))
    except ExpressionError:
        return False


def _last_retry(last: Node) -> dict[str, str]:
    """What a strategy's expression knows of the last attempt."""
    code = last.pod.exit_code if last.pod is not None else -1
    took_s = (last.finished or last.started) - last.started
    own = {"exitCode": code, "status": last.phase, "message": last.message, "duration": int(took_s)}
    return {f"lastRetry.{key}": str(value) for key, value in own.items()}


def suspended_s(template: Spec, scope: Mapping[str, str]) -> float:
    """Seconds that a suspend template waits; 0 without a duration, where a person ends it.

    Raises:
        ExpressionError: what its tags are replaced with is not a duration.
    """
    text = filled(str((template["suspend"] or {}).get("duration") or "0"), scope)
    if why := duration(text):
        raise ExpressionError(f"suspend.duration: {why}")
    return seconds(text)
