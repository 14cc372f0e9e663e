"""How often steps were throttled at their CPU limit, by the periods of the kernel's scheduler (CFS) or by their use."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
import pandas as pd

from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.phases import POD_CFS_PERIODS, POD_CFS_THROTTLED

_AT_LIMIT = 0.95  # of the CPU limit: the demand beyond it is not visible
_MIN_OF_SAMPLES = 0.05
_MIN_OF_PERIODS = 0.25  # as the alert CPUThrottlingHigh of kubernetes-mixin: a burst of threads throttles a little


@dataclass(frozen=True, slots=True)
class Throttling:
    """The share of CFS periods with a throttled container, or the share of CPU measurements at the limit."""

    share: float
    by_periods: bool

    @property
    def much(self) -> bool:
        """Enough to slow the step down."""
        return self.share > (_MIN_OF_PERIODS if self.by_periods else _MIN_OF_SAMPLES)

    @property
    def sentence(self) -> str:
        """As text, without what limits it: ``throttled in 40% of its CFS periods``."""
        return (
            f"throttled in {self.share:.0%} of its CFS periods" if self.by_periods else f"{self.share:.0%} of the time"
        )


def use(timeline: Timeline, metric: str, tasks: "pd.Series[str]") -> pd.DataFrame:
    """The samples of a metric with pod and task; pods of other workloads are left out.

    Args:
        timeline: of the test.
        metric: whose labels name the pod.
        tasks: the runs' pods.
    """
    samples = timeline.metric(metric)
    names = pd.Series([orjson.loads(text).get("pod") for text in samples["labels"]], dtype="str")
    frame = pd.DataFrame({"pod": names, "task": names.map(tasks), "value": floats(samples, "value")})
    return frame[frame["task"].notna()]


def by_periods(timeline: Timeline, tasks: "pd.Series[str]") -> Mapping[str, Throttling]:
    """By task, where Prometheus had the periods of its containers: the kernel counts those of limited ones only."""
    periods, throttled = (
        use(timeline, metric, tasks).groupby("task")["value"].sum() for metric in (POD_CFS_PERIODS, POD_CFS_THROTTLED)
    )
    return {
        str(task): Throttling(float(throttled.get(task, 0.0)) / count, by_periods=True)
        for task, count in periods.items()
        if count > 0
    }


def by_use(cores: Floats, limit: float | None) -> Throttling | None:
    """By measurements of one task's pods; none without a limit or measurements."""
    return Throttling(float((cores >= _AT_LIMIT * limit).mean()), by_periods=False) if limit and cores.size else None
