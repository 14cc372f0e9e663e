"""The complete result of a test: everything that a report says, computed once. Renderers need nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from harness.analysis.baseline import Regression, batches, regression
from harness.analysis.capacity.bounds import bounds
from harness.analysis.capacity.knee import knee
from harness.analysis.capacity.progress import scaling
from harness.analysis.capacity.scale_advice import scale_advice
from harness.analysis.cost.allocated import allocated
from harness.analysis.cost.cost import cost, goodput, gpu_drivers, image_pulls, pending
from harness.analysis.cost.virtual import virtual_pods
from harness.analysis.latency import latencies
from harness.analysis.ledger import ledger, recovered
from harness.analysis.services.database import database_work
from harness.analysis.services.processes import processes
from harness.analysis.services.workers import workers
from harness.analysis.slo import SloResult, State, judge
from harness.analysis.spot.advice import advice
from harness.analysis.spot.recorded import losses
from harness.analysis.stats.trend import degradation
from harness.analysis.tenants import tenants
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline, active, floats, remembered
from harness.analysis.waits.breakdown import phase_breakdown
from harness.analysis.waits.failures import failure_groups
from harness.analysis.waits.wasted_work import wasted_work
from harness.model import Diagnosis, ExitCode, NotJudged, Plan
from harness.model.baseline import Baseline
from harness.model.effects import Effects
from harness.model.run_name import run_name

T = TypeVar("T")


class Part(Generic[T]):
    """A part of the result, which is computed from the timeline when it is first asked for."""

    def __init__(self, compute: Callable[[Timeline], T]) -> None:
        self._of = remembered(compute)

    def __get__(self, result: "Result", _owner: type) -> T:
        return self._of(result.timeline)


def peak_nodes(timeline: Timeline) -> int | None:
    """The most nodes for the runs that were ready at once; none when no node was observed."""
    if not np.isfinite(throughput(timeline).nodes).any():
        return None
    ready, gone = floats(timeline.run_nodes, "ready_s"), floats(timeline.run_nodes, "gone_s")
    at = np.clip(ready[np.isfinite(ready)], 0.0, None)
    return int(active(ready, gone, at).max(initial=0))


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a test showed.

    Attributes:
        timeline: what was recorded.
        diagnosis: validity, findings, and what could not be judged.
        slos: the objectives, judged.
        regression: against the baseline, where there is one.
        effects: what the findings' fixes are expected to bring; none where that was not asked for.
    """

    timeline: Timeline
    diagnosis: Diagnosis
    slos: tuple[SloResult, ...]
    regression: Regression | None
    effects: Effects | None = None

    ledger = Part(ledger)
    recovered = Part(recovered)
    latencies = Part(latencies)
    throughput = Part(throughput)
    peak_nodes = Part(peak_nodes)
    phases = Part(phase_breakdown)
    errors = Part(failure_groups)
    batches_s = Part(batches)
    scaling = Part(scaling)
    bounds = Part(bounds)
    knee = Part(knee)
    degradation = Part(degradation)
    scale_advice = Part(scale_advice)
    cost = Part(cost)
    pending = Part(pending)
    allocated = Part(allocated)
    virtual = Part(virtual_pods)
    goodput = Part(goodput)
    losses = Part(losses)
    spot_advice = Part(advice)
    wasted_work = Part(wasted_work)
    image_pulls = Part(image_pulls)
    gpu_drivers = Part(gpu_drivers)
    workers = Part(workers)
    processes = Part(processes)
    tenants = Part(tenants)

    @property
    def plan(self) -> Plan:
        """What was intended."""
        return self.timeline.plan

    @property
    def not_judged(self) -> tuple[NotJudged, ...]:
        """That of the diagnosis, and the database where its capacity could not be measured."""
        work = None if self.timeline.executed else database_work(self.timeline)
        unknown = (NotJudged("database", f"its capacity is unknown: {work}"),) if isinstance(work, str) else ()
        return (*self.diagnosis.not_judged, *unknown)

    @property
    def name(self) -> str:
        """The test's name, from its plan: a renamed folder gives the same report."""
        if self.plan.name:
            return self.plan.name
        schedule = str(self.plan.schedule.get("name", "observed"))
        return run_name(self.plan.target, schedule, self.ledger.intended, self.timeline.start_at)

    @property
    def observed(self) -> bool:
        """The runs were not ours: they were watched or imported."""
        return not self.plan.intended

    @property
    def valid(self) -> bool:
        """The load was the one that was promised."""
        return self.diagnosis.validity.valid

    @property
    def verdict(self) -> str:
        """VALID or INVALID, as reports print it."""
        return "VALID" if self.valid else "INVALID"

    @property
    def verdict_text(self) -> str:
        """The verdict with its meaning, in a few words."""
        if not self.valid:
            return f"{self.verdict}: no verdict on the platform"
        return f"{self.verdict}: " + ("the records are complete" if self.observed else "the promised load was applied")

    @property
    def exit_code(self) -> ExitCode:
        """Interrupted beats invalid, invalid beats a failed SLO and a regression, which count the same.

        An SLO that is inconclusive is not met; of those that are met and not proven, the plan decides.
        """
        if self.timeline.interrupted:
            return ExitCode.INTERRUPTED
        if not self.valid:
            return ExitCode.INVALID
        worse = self.regression is not None and self.regression.reasons
        met = all(map(self.passes, self.slos))
        return ExitCode.OK if met and not worse else ExitCode.SLO_FAILED

    def passes(self, slo: SloResult) -> bool:
        """Whether an SLO counts as met: one that is not proven does unless the plan says otherwise."""
        return slo.state is State.MET or (slo.state is State.UNPROVEN and not self.plan.limits.fail_undecided)

    @property
    def headline(self) -> str:
        """One sentence for a manager."""
        counts, ambiguous = self.ledger, self.diagnosis.validity.ambiguous
        if ambiguous:
            return f"Invalid test: {ambiguous}"
        if self.diagnosis.findings:
            return self.diagnosis.findings[0].title
        if not self.valid:
            return f"Invalid test: {self.diagnosis.validity.reasons[0]}"
        if counts.succeeded == counts.intended:
            return f"All {counts.intended:,} runs succeeded and no bottleneck was found"
        return f"{counts.succeeded:,} of {counts.intended:,} runs succeeded; no cause was found for the others"


def analyse(timeline: Timeline, diagnosis: Diagnosis, baseline: Baseline | None = None) -> Result:
    """Judge a test by its objectives and its baseline; the parts follow when they are asked for.

    Raises:
        ConfigError: an SLO of the plan can't be understood, or the baseline is of another load.
    """
    if baseline is not None:
        baseline.demand_same_load(timeline.plan)
    compared = regression(baseline, timeline) if baseline is not None else None
    return Result(timeline, diagnosis, judge(timeline), compared)
