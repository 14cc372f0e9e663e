"""What to do about a limit on running workflows, for the detectors that find one."""

from harness.analysis.waits.workflow_limits import WorkflowLimit
from harness.detectors.detector import Evidence
from harness.model.phases import CONTROLLER_SETTINGS, NAMESPACE_PARALLELISM

_SCOPE = "parallelism counts all running workflows, namespaceParallelism those of each namespace"


def named(limit: WorkflowLimit) -> str:
    """The settings as text: what binds, or may bind."""
    return (" and " if limit.value else " or ").join(limit.settings)


def fix(limit: WorkflowLimit) -> str:
    """What to change."""
    if not limit.value:
        return (
            f"Look up both in the workflow controller's ConfigMap, where the observer could read neither: {_SCOPE}. "
            "Raise or remove the one that is reached."
        )
    label = ", or the namespace's label that overrides it" if NAMESPACE_PARALLELISM in limit.settings else ""
    return f"Raise or remove {named(limit)} in the workflow controller's ConfigMap{label}: {_SCOPE}."


def commands(limit: WorkflowLimit) -> tuple[str, ...]:
    """How to look the limits up, and how to change them."""
    where = f"{CONTROLLER_SETTINGS} -n {limit.namespace}"
    return f"kubectl get configmap {where} -o yaml | grep -i parallelism", f"kubectl edit configmap {where}"


def evidence(limit: WorkflowLimit, most: int) -> tuple[Evidence, ...]:
    """What the ConfigMap adds to what was seen; none where it was not read."""
    if not limit.value:
        return ()
    others = f"; other workflows ran while {most} of this test did" if limit.leaves_to_others(most) else ""
    words = f"{named(limit)} is {limit.value} in the controller's ConfigMap{others}"
    return (Evidence(words, float(limit.value), "workflows", "events", "reason = Limits"),)
