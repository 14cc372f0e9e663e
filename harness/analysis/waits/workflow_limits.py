"""Which of the controller's two limits on running workflows holds a test's workflows back.

``parallelism`` counts the running workflows of all namespaces, ``namespaceParallelism`` those of each. The controller
reports both in the same words. Source: https://argo-workflows.readthedocs.io/en/latest/parallelism/
"""

import re
from dataclasses import dataclass

from harness.analysis.timeline import Timeline
from harness.model.phases import CONTROLLER_SETTINGS, LIMITS, NAMESPACE_PARALLELISM, PARALLELISM, PLATFORM
from harness.model.text.inert import shell_word

_SEEN = 0.5  # of the running workflows, at least: those with a pod
_LIMIT = re.compile(rf"\b({PARALLELISM}|{NAMESPACE_PARALLELISM})=(\d{{1,9}})\b")


@dataclass(frozen=True, slots=True)
class WorkflowLimit:
    """A limit on running workflows.

    Attributes:
        settings: the names, in the controller's ConfigMap, of what binds, or may bind.
        namespace: that of the ConfigMap, as a word of a command; that of the runs where it was not read.
        value: what they are set to; 0 where it was not read.
    """

    settings: tuple[str, ...]
    namespace: str
    value: int = 0

    def leaves_to_others(self, most: int) -> bool:
        """Whether workflows of others used it up, while `most` of this test's were active.

        Between two pods a workflow runs and is not seen to be active, so it takes far fewer than the limit to tell.
        """
        return most < self.value * _SEEN


def binding(timeline: Timeline, most: int) -> WorkflowLimit:
    """The limit that was reached while `most` of the test's workflows were active at once.

    Where they are far from ``namespaceParallelism``, workflows of others use ``parallelism`` up.
    """
    namespace, limits = configured(timeline)
    in_all, of_each = limits.get(PARALLELISM, 0), limits.get(NAMESPACE_PARALLELISM, 0)
    if not in_all and not of_each:
        return WorkflowLimit((PARALLELISM, NAMESPACE_PARALLELISM), namespace)
    if not of_each:
        return WorkflowLimit((PARALLELISM,), namespace, in_all)
    reached = of_each * max(1, len(timeline.plan.tenants))
    if in_all == reached:
        return WorkflowLimit((PARALLELISM, NAMESPACE_PARALLELISM), namespace, of_each)
    if not in_all or (reached < in_all and most >= reached * _SEEN):
        return WorkflowLimit((NAMESPACE_PARALLELISM,), namespace, of_each)
    return WorkflowLimit((PARALLELISM,), namespace, in_all)


def configured(timeline: Timeline) -> tuple[str, dict[str, int]]:
    """The namespace of the controller's ConfigMap, and its limits by name: none where it was not read, or sets none."""
    events = timeline.events
    chosen = (events["kind"] == PLATFORM) & (events["object"] == CONTROLLER_SETTINGS) & (events["reason"] == LIMITS)
    if not chosen.any():
        return timeline.namespace, {}
    last = events[chosen].iloc[-1]
    found = _LIMIT.findall(str(last["message"]))
    return shell_word(str(last["namespace"])), {name: int(value) for name, value in found}
