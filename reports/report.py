"""A report as a value: everything the renderers say, computed once from the timeline."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.baseline import Regression, regression
from harness.analysis.capacity.bounds import Bound, bounds
from harness.analysis.capacity.knee import Knee, knee
from harness.analysis.capacity.progress import Progress, progress, scaling
from harness.analysis.capacity.scale_advice import ScaleAdvice, scale_advice
from harness.analysis.capacity.scaling import Scaling
from harness.analysis.cost.cost import Cost, Pending, cost, pending
from harness.analysis.cost.goodput import Goodput, goodput
from harness.analysis.latency import Latencies, latencies
from harness.analysis.ledger import Ledger, ledger
from harness.analysis.services.database import database_work
from harness.analysis.services.volumes import Volume, volumes
from harness.analysis.services.workers import Workers, workers
from harness.analysis.slo import SloResult, judge
from harness.analysis.stats.trend import Trend, degradation
from harness.analysis.throughput import Throughput, throughput
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import Group, failure_groups
from harness.analysis.waits.waits import Waits, waits
from harness.analysis.waits.wasted_work import WastedWork, wasted_work
from harness.model.baseline import Baseline
from harness.model.errors import ExitCode
from harness.model.findings import Diagnosis, NotJudged
from harness.store.folder import run_name


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a test showed. `timeline` is what it was computed from; the rest is ready to be rendered."""

    timeline: Timeline
    diagnosis: Diagnosis
    ledger: Ledger
    latencies: Latencies
    throughput: Throughput
    waits: Waits
    slos: tuple[SloResult, ...]
    errors: tuple[Group, ...]
    volumes: tuple[Volume, ...]
    progress: Progress | None
    scaling: Scaling | None
    cost: Cost | None
    pending: Pending | None
    degradation: Trend | None
    bounds: tuple[Bound, ...]
    knee: Knee | None
    workers: Workers | None
    scale_advice: ScaleAdvice | None
    wasted_work: WastedWork | None
    goodput: tuple[Goodput, ...]
    regression: Regression | None  # against the baseline, where there is one

    @property
    def name(self) -> str:
        """The test's name, from its plan: a renamed folder gives the same report."""
        plan = self.timeline.plan
        return run_name(plan.target, self.schedule_name, self.ledger.intended, self.timeline.start_at)

    @property
    def schedule_name(self) -> str:
        """Of the schedule, "observed" for a run without a load of ours."""
        return str(self.timeline.plan.schedule.get("name", "observed"))

    @property
    def verdict(self) -> str:
        """VALID or INVALID: whether the load was the one that was promised."""
        return "VALID" if self.diagnosis.validity.valid else "INVALID"

    @property
    def exit_code(self) -> ExitCode:
        """Interrupted beats invalid, invalid beats a failed objective and a regression, which count the same.

        An objective that can't be judged is not met.
        """
        if self.timeline.interrupted:
            return ExitCode.INTERRUPTED
        if not self.diagnosis.validity.valid:
            return ExitCode.INVALID
        worse = self.regression is not None and self.regression.reasons
        return ExitCode.OK if all(result.met for result in self.slos) and not worse else ExitCode.SLO_FAILED

    @property
    def headline(self) -> str:
        """One sentence a manager understands."""
        if self.diagnosis.findings:
            return self.diagnosis.findings[0].title
        if not self.diagnosis.validity.valid:
            return f"The test does not count: {self.diagnosis.validity.reasons[0]}"
        if self.ledger.succeeded == self.ledger.intended:
            return f"All {self.ledger.intended:,} runs succeeded and no bottleneck was found"
        return f"{self.ledger.succeeded:,} of {self.ledger.intended:,} runs succeeded; no cause was found for the rest"

    @property
    def verdict_text(self) -> str:
        """The verdict with what it means, in a few words."""
        if not self.diagnosis.validity.valid:
            return f"{self.verdict}: no verdict on the platform"
        return f"{self.verdict}: " + (
            "the records can be relied on" if self.observed else "the promised load was applied"
        )

    @property
    def not_judged(self) -> tuple[NotJudged, ...]:
        """What detectors could not judge, and parts that have no bound because nobody measured them."""
        work = None if self.timeline.executed else database_work(self.timeline)
        if not isinstance(work, str):
            return self.diagnosis.not_judged
        return (*self.diagnosis.not_judged, NotJudged("database", f"what it could carry is unknown: {work}"))

    @property
    def observed(self) -> bool:
        """The runs were not ours: they were watched or imported."""
        return not self.timeline.plan.intended

    @property
    def peak_nodes(self) -> int | None:
        """The most nodes for the runs that were ready at once; none when no node was observed."""
        if not np.isfinite(self.throughput.nodes).any():
            return None
        ready, gone = floats(self.timeline.run_nodes, "ready_s"), floats(self.timeline.run_nodes, "gone_s")
        at = np.sort(np.clip(ready[np.isfinite(ready)], 0.0, None))
        begun = np.searchsorted(np.sort(ready[np.isfinite(ready)]), at, side="right")
        over = np.searchsorted(np.sort(gone[np.isfinite(gone)]), at, side="right")
        return int((begun - over).max(initial=0))


def build(timeline: Timeline, diagnosis: Diagnosis, baseline: Baseline | None = None) -> Report:
    """Compute everything a report says.

    Raises:
        ConfigError: an objective of the plan can't be understood, or the baseline is of another load.
    """
    if baseline is not None:
        baseline.demand_same_load(timeline.plan)
    return Report(
        timeline=timeline,
        diagnosis=diagnosis,
        ledger=ledger(timeline),
        latencies=latencies(timeline),
        throughput=throughput(timeline),
        waits=waits(timeline),
        slos=judge(timeline),
        errors=tuple(failure_groups(timeline)),
        volumes=tuple(volumes(timeline)),
        progress=progress(timeline),
        scaling=scaling(timeline),
        cost=cost(timeline),
        pending=pending(timeline),
        degradation=degradation(timeline),
        bounds=bounds(timeline),
        knee=knee(timeline),
        workers=workers(timeline),
        scale_advice=scale_advice(timeline),
        wasted_work=wasted_work(timeline),
        goodput=goodput(timeline),
        regression=regression(baseline, timeline) if baseline is not None else None,
    )
