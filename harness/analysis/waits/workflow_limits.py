"""Which of the controller's two limits on running workflows holds a test's workflows back.

``parallelism`` counts the running workflows of all namespaces, ``namespaceParallelism`` those of each. The controller
reports both in the same words. Source: https://argo-workflows.readthedocs.io/en/latest/parallelism/
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from harness.analysis.timeline import Timeline, remembered
from harness.model import ConfigError, parse_duration
from harness.model.phases import (
    ARGUMENTS,
    BURST,
    CLEANUP_WORKERS,
    CONTROLLER_SETTINGS,
    LIMITS,
    NAMESPACE_PARALLELISM,
    PARALLELISM,
    PLATFORM,
    QPS,
    REQUEUE_TIME,
    WORKFLOW_CONTROLLER,
    WORKFLOW_WORKERS,
)
from harness.model.text.inert import shell_word

# Source: cmd/workflow-controller/main.go and workflow/controller of Argo Workflows, 3.4 to 4.0.
DEFAULTS: Mapping[str, float] = {QPS: 20, BURST: 30, WORKFLOW_WORKERS: 32, CLEANUP_WORKERS: 4, REQUEUE_TIME: 10}


@remembered
def settings(timeline: Timeline) -> Mapping[str, float]:
    """What the controller's last pod ran with, by argument or variable: numbers and seconds.

    Without what can't be read; none where no pod of the controller was seen.
    """
    events = timeline.events
    frame = events[(events["kind"] == PLATFORM) & (events["object"] == WORKFLOW_CONTROLLER)]
    frame = frame[frame["reason"] == ARGUMENTS]
    if not len(frame):
        return {}
    found = dict(DEFAULTS)
    for name, _, value in (part.partition("=") for part in str(frame["message"].iloc[-1]).split()):
        found.pop(name, None)
        with suppress(ConfigError):
            found[name] = parse_duration(value)
    return found


def as_good(timeline: Timeline, name: str, value: float) -> bool:
    """Whether a setting is known to be this value or a better one: more, but for the time until the next look."""
    present = settings(timeline).get(name)
    return present is not None and (present <= value if name == REQUEUE_TIME else present >= value)


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
