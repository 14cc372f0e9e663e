"""A limit on parallel workflows holds runs back while the cluster has room."""

import numpy as np

from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.workflow_limits import binding
from harness.detectors.controller.workflow_limit_fix import commands, evidence, fix
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_duration, slowed

NAME = "parallelism-cap"
NEEDS = (Capability.RUNS, Capability.PODS)
TARGETS = ("kfp",)
EXPLAINED_BY = {"lock-wait": 0.1}  # a semaphore that whole workflows take looks the same

_MIN_SHARE_OF_TIME = 0.15  # of the runs' time; as for waits for nodes (node_waits.SHARE)


def detect(timeline: Timeline) -> list[Finding]:
    """The number of active runs stays at its maximum while others wait for their first pod."""
    delay = startup_delay(timeline)
    share = delay.queue
    if not delay.capped or share < _MIN_SHARE_OF_TIME or scheduling_wait(timeline).share > share:
        return []
    before, between = delay.late_s, max(0.0, float(np.median(delay.between)))
    limit = binding(timeline, delay.most)
    return [
        Finding(
            NAME,
            f"Only {delay.most} runs are active at once: runs spent {share:.0%} of their time waiting for a slot",
            0.9,
            (
                Evidence(
                    f"{delay.most} runs were active for {delay.plateau:.0%} of the "
                    f"{format_duration(delay.queued_s)} in which others waited for their first pod",
                    delay.plateau, "share", "spans",
                ),
                Evidence(
                    f"all but the first {delay.most} runs waited {format_duration(before)} for their first pod, then "
                    f"{format_duration(between)} between pods (medians)",
                    before, "s", "spans",
                ),
                *evidence(limit, delay.most),
            ),
            fix(limit) + " Or it is the pipeline's own limit.",
            commands(limit),
            slowed(share),
        )
    ]  # fmt: skip
