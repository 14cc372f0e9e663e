"""The complete result of a test: everything that a report says, computed once. Renderers need nothing else."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.baseline import Regression, batches, regression
from harness.analysis.capacity.bounds import Bound, bounds
from harness.analysis.capacity.knee import Knee, knee
from harness.analysis.capacity.progress import Progress, progress, scaling
from harness.analysis.capacity.scale_advice import ScaleAdvice, scale_advice
from harness.analysis.capacity.scaling import Interval, Scaling
from harness.analysis.cost.allocated import Part, allocated
from harness.analysis.cost.cost import Cost, Pending, cost, pending
from harness.analysis.cost.goodput import Goodput, goodput
from harness.analysis.cost.readiness import GpuDrivers, ImagePulls, gpu_drivers, image_pulls
from harness.analysis.cost.requested import Requested, requested
from harness.analysis.cost.virtual import VirtualPods, virtual_pods
from harness.analysis.latency import Latencies, latencies
from harness.analysis.ledger import Ledger, ledger, recovered
from harness.analysis.series.flow import FreeSpace, ScalingCurve, Submissions, free_space, scaling_curve, submissions
from harness.analysis.series.phases import PendingPods, PhaseBreakdown, PhaseSummary, pending_pods, phase_breakdown
from harness.analysis.series.placement import HostWork, LostPods, Placement, host_work, hosts, placement
from harness.analysis.series.raw_rows import RawRows, raw_rows
from harness.analysis.series.run_bars import RunBars, run_bars
from harness.analysis.series.thinning import Points
from harness.analysis.services.database import database_work
from harness.analysis.services.own_requests import OwnRequests, own_requests
from harness.analysis.services.processes import Processes, processes
from harness.analysis.services.volumes import volumes
from harness.analysis.services.workers import Workers, workers
from harness.analysis.slo import SloResult, State, judge
from harness.analysis.spot.advice import Advice, StepAdvice, advice
from harness.analysis.spot.recorded import Losses, losses
from harness.analysis.stats.quantiles import Summary
from harness.analysis.stats.trend import Trend, degradation
from harness.analysis.tenants import Tenants, tenants
from harness.analysis.throughput import Throughput, throughput
from harness.analysis.timeline import Floats, Ints, Timeline, active, floats
from harness.analysis.waits.failures import Group, failure_groups
from harness.analysis.waits.tasks import Tasks, tasks
from harness.analysis.waits.wasted_work import WastedWork, wasted_work
from harness.model import Diagnosis, ExitCode, NotJudged, Plan
from harness.model.baseline import Baseline
from harness.model.effects import Effects
from harness.model.run_name import run_name

__all__ = [
    "Advice", "Cost", "Floats", "HostWork", "Interval", "Ints", "Losses", "LostPods", "PhaseSummary", "Placement",
    "Points", "Regression", "Result", "Scaling", "SloResult", "State", "StepAdvice", "Summary", "analyse",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a test showed.

    Attributes:
        plan: what was intended.
        started_at: t0 as UTC ns; all ``_s`` that are instants count from it.
        end_s: the last instant anything was recorded.
        interrupted: the test was stopped by Ctrl-C or SIGTERM.
        answers_are_results: a run is over with the answer to its submission.
        diagnosis: validity, findings, and what could not be judged.
        not_judged: that of the diagnosis, and components without a bound for lack of measurements.
        recovered: what was added to the ledger late, one sentence each.
        peak_nodes: the most nodes for the runs that were ready at once; none when no node was observed.
        errors: why runs failed and submissions were rejected, the most frequent first.
        batches_s: mean durations by batch of arrivals, for a later comparison.
        regression: against the baseline, where there is one.
        scaling, progress, scaling_curve: throughput by number of nodes; none when too few numbers of nodes were seen.
        virtual: what ran on virtual nodes; none when nothing did.
        losses, spot_advice: what evictions did, and what to do about it; none without spot nodes and losses.
        pending, pending_pods: how long pods waited for a node.
        image_pulls, gpu_drivers: what pods and new nodes needed before they could work; none without any.
        processes: what runs used that are processes; none where they are not.
        tenants: by tenant, where the scenarios or the schedule name them.
        free_space, requested, submissions, host_work, placement, run_bars: what figures show.
        effects: what the findings' fixes are expected to bring; none where that was not asked for.
        raw_rows, tasks, own_requests: what the tables of raw data show.
    """

    plan: Plan
    started_at: int
    end_s: float
    interrupted: bool
    answers_are_results: bool
    diagnosis: Diagnosis
    not_judged: tuple[NotJudged, ...]
    ledger: Ledger
    recovered: tuple[str, ...]
    latencies: Latencies
    throughput: Throughput
    peak_nodes: int | None
    phases: PhaseBreakdown
    slos: tuple[SloResult, ...]
    errors: tuple[Group, ...]
    batches_s: Floats
    regression: Regression | None
    progress: Progress | None
    scaling: Scaling | None
    scaling_curve: ScalingCurve | None
    bounds: tuple[Bound, ...]
    knee: Knee | None
    degradation: Trend | None
    scale_advice: ScaleAdvice | None
    cost: Cost | None
    allocated: tuple[Part, ...]
    virtual: VirtualPods | None
    goodput: tuple[Goodput, ...]
    losses: Losses | None
    spot_advice: Advice | None
    wasted_work: WastedWork | None
    pending: Pending | None
    pending_pods: PendingPods | None
    image_pulls: ImagePulls | None
    gpu_drivers: GpuDrivers | None
    workers: Workers | None
    processes: Processes | None
    tenants: Tenants | None
    free_space: tuple[FreeSpace, ...]
    requested: tuple[Requested, ...]
    submissions: Submissions | None
    host_work: HostWork | None
    placement: Placement | None
    run_bars: RunBars | None
    raw_rows: RawRows
    tasks: Tasks
    own_requests: OwnRequests | None
    effects: Effects | None = None

    @property
    def name(self) -> str:
        """The test's name, from its plan: a renamed folder gives the same report."""
        if self.plan.name:
            return self.plan.name
        schedule = str(self.plan.schedule.get("name", "observed"))
        return run_name(self.plan.target, schedule, self.ledger.intended, self.started_at)

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
        if self.interrupted:
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
    """Compute everything a report says.

    Raises:
        ConfigError: an SLO of the plan can't be understood, or the baseline is of another load.
    """
    if baseline is not None:
        baseline.demand_same_load(timeline.plan)
    fitted, replicas = scaling(timeline), workers(timeline)
    machines = hosts(timeline, replicas)
    return Result(
        plan=timeline.plan,
        started_at=timeline.start_at,
        end_s=timeline.end_s,
        interrupted=timeline.interrupted,
        answers_are_results=timeline.answers_are_results,
        diagnosis=diagnosis,
        not_judged=(*diagnosis.not_judged, *_unmeasured(timeline)),
        ledger=ledger(timeline),
        recovered=recovered(timeline),
        latencies=latencies(timeline),
        throughput=throughput(timeline),
        peak_nodes=_peak_nodes(timeline),
        phases=phase_breakdown(timeline),
        slos=judge(timeline),
        errors=tuple(failure_groups(timeline)),
        batches_s=batches(timeline),
        regression=regression(baseline, timeline) if baseline is not None else None,
        progress=progress(timeline),
        scaling=fitted,
        scaling_curve=scaling_curve(fitted) if fitted is not None else None,
        bounds=bounds(timeline),
        knee=knee(timeline),
        degradation=degradation(timeline),
        scale_advice=scale_advice(timeline),
        cost=cost(timeline),
        allocated=allocated(timeline),
        virtual=virtual_pods(timeline),
        goodput=goodput(timeline),
        losses=losses(timeline),
        spot_advice=advice(timeline),
        wasted_work=wasted_work(timeline),
        pending=pending(timeline),
        pending_pods=pending_pods(timeline),
        image_pulls=image_pulls(timeline),
        gpu_drivers=gpu_drivers(timeline),
        workers=replicas,
        processes=processes(timeline),
        tenants=tenants(timeline),
        free_space=free_space(volumes(timeline)),
        requested=requested(timeline),
        submissions=submissions(timeline),
        host_work=host_work(timeline, machines),
        placement=placement(timeline, machines),
        run_bars=run_bars(timeline),
        raw_rows=raw_rows(timeline),
        tasks=tasks(timeline),
        own_requests=own_requests(timeline),
    )


def _unmeasured(timeline: Timeline) -> tuple[NotJudged, ...]:
    work = None if timeline.executed else database_work(timeline)
    return (NotJudged("database", f"its capacity is unknown: {work}"),) if isinstance(work, str) else ()


def _peak_nodes(timeline: Timeline) -> int | None:
    if not np.isfinite(throughput(timeline).nodes).any():
        return None
    ready, gone = floats(timeline.run_nodes, "ready_s"), floats(timeline.run_nodes, "gone_s")
    at = np.clip(ready[np.isfinite(ready)], 0.0, None)
    return int(active(ready, gone, at).max(initial=0))
