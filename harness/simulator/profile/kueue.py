"""The settings of Kueue's ClusterQueues, part of those of a platform."""

from dataclasses import dataclass
from typing import Annotated

from harness.simulator.profile.bounds import Bytes, Cores, OneOf

NEVER, LOWER, ANY, LOWER_OR_NEWER = "Never", "LowerPriority", "Any", "LowerOrNewerEqualPriority"
BEST_EFFORT, STRICT = "BestEffortFIFO", "StrictFIFO"


@dataclass(frozen=True, slots=True)
class Amounts:
    """Quotas or limits by resource; none where there is none."""

    cpu: Cores | None = None
    memory: Bytes | None = None
    gpu: int | None = None
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A ClusterQueue of one flavor, and the namespaces whose LocalQueue leads to it.

    A resource without a nominal quota is not managed. Queues of the same cohort lend each other what they don't use.
    """

    name: str
    tenants: tuple[str, ...] = ()  # namespaces
    nominal: Amounts = Amounts()
    borrowing: Amounts = Amounts()  # borrowingLimit: most that it borrows
    lending: Amounts = Amounts()  # lendingLimit: most that it lends
    cohort: str = ""
    queueing: Annotated[str, OneOf((BEST_EFFORT, STRICT))] = BEST_EFFORT
    within_queue: Annotated[str, OneOf((NEVER, LOWER, LOWER_OR_NEWER))] = NEVER  # preemption.withinClusterQueue
    reclaim: Annotated[str, OneOf((NEVER, LOWER, ANY))] = NEVER  # preemption.reclaimWithinCohort
