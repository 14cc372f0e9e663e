"""Recommended requests of steps, from their use, and how many runs then fit on a node.

How often steps were throttled at their CPU limit is known by the periods of the kernel's scheduler (CFS), or by their
use.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import pandas as pd

from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.phases import POD_CFS_PERIODS, POD_CFS_THROTTLED, POD_CPU_CORES, POD_MEMORY_BYTES, RUNNING

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
    samples = timeline.labelled(metric, "pod")
    return samples.assign(task=samples["pod"].map(tasks)).dropna(subset="task")


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


_HEADROOM = 1.2  # memory: the next data set may be a little larger
_ENOUGH_FOR, _SURE = 0.99, 0.95  # memory: for this share of all pods, with this confidence
_CPU_HEADROOM = 1.1
_AFTER_OOM = 1.5  # killed at its limit: how much more it needs is unknown
_CPU_STEP, _MEMORY_STEP = 0.05, 64 * 2**20
_FEW = 10
_DRIVER = "-driver"
_OOM = "OOMKilled"
_FITTED_RUNS = 50
_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Resources:
    """Requests and limits of a step, in cores and bytes; none where the pipeline sets none."""

    cpu_request: float | None = None
    cpu_limit: float | None = None
    memory_request: float | None = None
    memory_limit: float | None = None


@dataclass(frozen=True, slots=True)
class StepNeed:
    """Measured use and recommended requests of a step.

    Attributes:
        task: the step's name.
        pods: pods that were measured.
        samples: CPU measurements of them.
        cpu_p95: cores, over all measurements.
        cpu_most: cores, maximum.
        memory_p95: bytes; over the pods' peaks.
        memory_most: bytes, maximum.
        killed: pods killed for running out of memory.
        oom_share: the share of pods expected to exceed the recommended memory; none where their spread is unknown.
        throttled: share of CFS periods in which it was throttled, else of CPU measurements at the limit; none without.
        now: the pipeline's current requests and limits.
        advice: the recommended ones.
        notes: caveats, as sentences.
    """

    task: str
    pods: int
    samples: int
    cpu_p95: float
    cpu_most: float
    memory_p95: float
    memory_most: float
    killed: int
    oom_share: float | None
    throttled: Throttling | None
    now: Resources
    advice: Resources
    notes: tuple[str, ...]

    @property
    def line(self) -> str:
        """KFP code that sets the recommended values on the step's task."""
        name, r = re.sub(r"\W", "_", self.task), self.advice
        return (
            f'{name}.set_cpu_request("{as_cores(r.cpu_request or 0)}").set_cpu_limit("{as_cores(r.cpu_limit or 0)}")'
            f'.set_memory_request("{as_memory(r.memory_request or 0)}")'
            f'.set_memory_limit("{as_memory(r.memory_limit or 0)}")'
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """How many runs fit on one kind of node.

    Attributes:
        pool: the node pool.
        cpu: allocatable cores of one node.
        memory: allocatable bytes.
        run_cpu: the most cores that one run requests at the same time.
        run_memory: the most bytes that one run requests at the same time.
        jobs: runs that fit.
        binding: "cpu" or "memory", whichever is exhausted first.
        stranded: share of CPU or of memory, whichever is larger, that no run can use.
        next_step: cores or bytes per run at which one more fits.
    """

    pool: str
    cpu: float
    memory: float
    run_cpu: float
    run_memory: float
    jobs: int
    binding: str
    stranded: float
    next_step: float

    @property
    def sentence(self) -> str:
        """As text: ``3 jobs per node, 21% stranded; with 3.5 CPU: 4 jobs``."""
        less = f"{self.next_step:g} CPU" if self.binding == "cpu" else as_memory(self.next_step)
        plural = "" if self.jobs == 1 else "s"
        return f"{self.jobs} job{plural} per node, {self.stranded:.0%} stranded; with {less}: {self.jobs + 1} jobs"


def step_needs(timeline: Timeline, current: Mapping[str, Resources]) -> tuple[StepNeed, ...]:
    """Measured needs by step, in order of their start; the platform's own drivers are left out.

    Args:
        timeline: a test with recorded pod metrics.
        current: the pipeline's requests and limits, by task.
    """
    pods = timeline.pods[timeline.of_runs(RUNNING)]
    first = pods.drop_duplicates("pod")
    tasks = pd.Series(first["task"].astype(str).to_numpy(), index=timeline.names.take(first["pod"].to_numpy()))
    cpu, memory = use(timeline, POD_CPU_CORES, tasks), use(timeline, POD_MEMORY_BYTES, tasks)
    killed, throttled = _killed(timeline), by_periods(timeline, tasks)
    order = pods.groupby("task", observed=True)["start_s"].median().sort_values().index.astype(str)
    return tuple(
        _need(
            task,
            cpu[cpu["task"] == task],
            memory[memory["task"] == task],
            killed.get(task, 0),
            current.get(task, Resources()),
            throttled.get(task),
        )
        for task in order
        if not task.endswith(_DRIVER) and ((cpu["task"] == task).any() or (memory["task"] == task).any())
    )


def _killed(timeline: Timeline) -> dict[str, int]:
    events = timeline.events
    mine = (events["kind"] == "Pod") & ((events["reason"] == _OOM) | events["message"].str.contains(_OOM))
    pods = timeline.pods_called(events["object"][mine]).drop_duplicates("pod")
    return {str(task): int(count) for task, count in pods["task"].astype(str).value_counts().items()}


def _need(
    task: str, cpu: pd.DataFrame, memory: pd.DataFrame, killed: int, now: Resources, throttled: Throttling | None
) -> StepNeed:
    used = floats(cpu, "value")
    peaks = memory.groupby("pod")["value"].max().to_numpy(dtype=np.float64)
    cpu_p95, cpu_most = _p95(used), float(used.max(initial=0.0))
    memory_p95, memory_most = _p95(peaks), float(peaks.max(initial=0.0))
    throttled = throttled or by_use(used, now.cpu_limit)
    notes = []
    pods = int(pd.concat([cpu["pod"], memory["pod"]]).nunique())
    if pods < _FEW:
        notes.append(f"only {pods} pod{'' if pods == 1 else 's'} measured: run more")
    request = _up(cpu_p95 * _CPU_HEADROOM, _CPU_STEP)
    limit = max(request, _up(cpu_most * _HEADROOM, _CPU_STEP))
    if throttled and throttled.much:
        limit = max(limit, _up((now.cpu_limit or cpu_most) * _AFTER_OOM, _CPU_STEP))
        known = f" of {as_cores(now.cpu_limit)}" if now.cpu_limit else ", which the pipeline does not set"
        notes.append(f"{throttled.sentence} at its CPU limit{known}: measure again")
    least = max(memory_p95 * _HEADROOM, memory_most, memory_bound(peaks))
    if killed:
        least = max(least, (now.memory_limit or memory_most) * _AFTER_OOM)
        notes.append(f"{killed} pod{'' if killed == 1 else 's'} killed for memory: measure again")
    size = _up(least, _MEMORY_STEP)
    advice = Resources(request, limit, size, size)
    return StepNeed(
        task, pods, used.size, cpu_p95, cpu_most, memory_p95, memory_most, killed,
        None if killed else share_above(peaks, size), throttled, now, advice, tuple(notes),
    )  # fmt: skip


def memory_bound(peaks: Floats) -> float:
    """Bytes that 99 % of the pods stay below, with 95 % confidence; 0.0 for too few pods to know their spread.

    The one-sided tolerance bound of a lognormal distribution (Hahn and Meeker, Statistical Intervals, 4.6): maxima of
    data that vary in size have a long tail, which a quantile of twenty pods does not show.
    """
    if peaks.size < _FEW or peaks.min() <= 0:
        return 0.0
    from scipy.special import nctdtrit, ndtri

    logs, root = np.log(peaks), np.sqrt(peaks.size)
    factor = float(nctdtrit(peaks.size - 1, ndtri(_ENOUGH_FOR) * root, _SURE)) / root
    return float(np.exp(logs.mean() + factor * logs.std(ddof=1)))


def share_above(peaks: Floats, limit: float) -> float | None:
    """The chance that the next pod needs more than `limit` bytes, by the same distribution; none for too few pods."""
    if peaks.size < _FEW or peaks.min() <= 0:
        return None
    from scipy.special import stdtr

    logs = np.log(peaks)
    spread = float(logs.std(ddof=1)) * np.sqrt(1 + 1 / peaks.size)
    return float(stdtr(peaks.size - 1, (logs.mean() - np.log(limit)) / spread)) if spread > 0 else 0.0


def _p95(values: Floats) -> float:
    return float(np.quantile(values, 0.95, method="inverted_cdf")) if values.size else 0.0


def _up(value: float, step: float) -> float:
    return max(1, ceil(value / step - _EPSILON)) * step


def fits(timeline: Timeline, requests: Mapping[str, Resources]) -> tuple[Fit, ...]:
    """How many runs with these requests fit on each kind of node of the test, daemon sets not counted.

    A run counts with its peak request, given how its steps overlapped in the test.
    """
    cpu, memory = _at_once(timeline, requests)
    if cpu <= 0 and memory <= 0:
        return ()
    kinds = timeline.run_nodes.drop_duplicates(["pool", "cpu", "memory"])
    return tuple(
        fit(str(pool), float(c), float(m), cpu, memory)
        for pool, c, m in zip(kinds["pool"], floats(kinds, "cpu"), floats(kinds, "memory"), strict=True)
    )


def fit(pool: str, cpu: float, memory: float, run_cpu: float, run_memory: float) -> Fit:
    """How many runs with these peak requests fit on a node with this capacity."""
    by_cpu = floor(cpu / run_cpu + _EPSILON) if run_cpu > 0 else None
    by_memory = floor(memory / run_memory + _EPSILON) if run_memory > 0 else None
    counts = [count for count in (by_cpu, by_memory) if count is not None]
    if not counts:
        raise ValueError("run_cpu or run_memory must be positive")
    jobs = min(counts)
    binding = "cpu" if jobs == by_cpu else "memory"
    stranded = max(1 - jobs * run_cpu / cpu, 1 - jobs * run_memory / memory)
    room, step = (cpu, _CPU_STEP) if binding == "cpu" else (memory, _MEMORY_STEP)
    share = room / (jobs + 1)
    next_step = round(floor(share / step + _EPSILON) * step, 6) or share
    return Fit(pool, cpu, memory, run_cpu, run_memory, jobs, binding, stranded, next_step)


def _at_once(timeline: Timeline, requests: Mapping[str, Resources]) -> tuple[float, float]:
    """Peak cores and bytes requested by the median run, given how its steps overlapped."""
    pods = timeline.pods[timeline.of_runs(RUNNING)]
    pods = pods[pods["row"] < np.unique(pods["row"])[:_FITTED_RUNS].max(initial=-1) + 1]
    peaks = []
    for _, steps in pods.groupby("row"):
        needs = [requests.get(str(task), Resources()) for task in steps["task"]]
        at = np.concatenate((floats(steps, "start_s"), np.nan_to_num(floats(steps, "end_s"), nan=timeline.end_s)))
        # Where one step ends as another starts, the ended one frees its resources first.
        order = np.lexsort((np.repeat((1, 0), len(steps)), at))
        peak = []
        for amounts in ([r.cpu_request or 0.0 for r in needs], [r.memory_request or 0.0 for r in needs]):
            change = np.concatenate((amounts, np.negative(amounts)))[order]
            peak.append(float(np.cumsum(change).max(initial=0.0)))
        peaks.append(peak)
    if not peaks:
        return 0.0, 0.0
    cpu, memory = np.median(np.array(peaks), axis=0).tolist()
    return cpu, memory


def as_cores(cores: float) -> str:
    """A quantity of CPU as Kubernetes writes it: ``500m``, ``2``."""
    return f"{cores:.0f}" if abs(cores - round(cores)) < _EPSILON and cores >= 1 else f"{cores * 1000:.0f}m"


def as_memory(count: float) -> str:
    """A quantity of memory as Kubernetes writes it: ``512Mi``, ``2Gi``."""
    mebibytes = count / 2**20
    return f"{mebibytes / 1024:.0f}Gi" if mebibytes >= 1024 and mebibytes % 1024 == 0 else f"{mebibytes:.0f}Mi"
