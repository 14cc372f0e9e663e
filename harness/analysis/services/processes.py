"""Runs that are processes: what they used, and how long the phases took that they reported themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import pandas as pd

from harness.analysis.timeline import Bools, Timeline, floats, remembered
from harness.model.phases import COMPUTING, PROCESS_CPU_SECONDS, PROCESS_PEAK_BYTES, QUEUED, SUCCEEDED

_MIB = 2**20
_PHASE = "phase "  # begins the names of their figures


@dataclass(frozen=True, slots=True)
class ReportedPhase:
    """A phase as the runs of one scenario timed it; `mean_s` is its mean total per run that succeeded."""

    scenario: str
    name: str
    runs: int
    mean_s: float


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a test.

    Attributes:
        runs: number of processes whose use is known.
        cpu_s: CPU seconds per run with all processes that it started, mean.
        most_cpu_s: of the run that used most.
        peak_bytes: peak memory per run, mean.
        most_peak_bytes: of the run that used most.
        phases: by scenario, in the order of the scenarios and of the phases.
        remarks: what was said of runs that succeeded, as (remark, runs).
    """

    runs: int
    cpu_s: float
    most_cpu_s: float
    peak_bytes: float
    most_peak_bytes: float
    phases: tuple[ReportedPhase, ...]
    remarks: tuple[tuple[str, int], ...]


@remembered
def processes(timeline: Timeline) -> Processes | None:
    """Sum up the processes; none where runs are no processes."""
    cpu = floats(timeline.metric(PROCESS_CPU_SECONDS), "value")
    peak = floats(timeline.metric(PROCESS_PEAK_BYTES), "value")
    if not cpu.size or not peak.size:
        return None
    return Processes(
        int(cpu.size), float(cpu.mean()), float(cpu.max()), float(peak.mean()), float(peak.max()),
        tuple(_phases(timeline)), _remarks(timeline),
    )  # fmt: skip


def figures(timeline: Timeline) -> dict[str, float]:
    """The figures by which tests of processes are compared; those of phases by scenario where there are several."""
    found = processes(timeline)
    if found is None:
        return {}
    scenarios = scenario_names(timeline)
    several = scenarios.nunique() > 1
    values = {"CPU time mean (s)": found.cpu_s, "peak memory mean (MiB)": found.peak_bytes / _MIB}
    if several:
        succeeded = _succeeded(timeline)
        lasted = floats(timeline.runs, "over_s") - floats(timeline.runs, "due_s")
        for scenario in scenarios[succeeded].unique():
            mine = succeeded & (scenarios == scenario).to_numpy(dtype=bool)
            values[f"{scenario}: run.duration mean (s)"] = fmean(lasted[mine].tolist())
    for phase in found.phases:
        values[f"{f'{phase.scenario}: ' if several else ''}{_PHASE}{phase.name} mean (s)"] = phase.mean_s
    return values


def is_of_phase(metric: str) -> bool:
    """Whether a figure is that of a phase, which the run's duration contains."""
    return metric.rpartition(": ")[2].startswith(_PHASE)


def _phases(timeline: Timeline) -> Iterator[ReportedPhase]:
    pods = timeline.pods[timeline.of_runs(COMPUTING, QUEUED)].sort_values(["row", "start_s"], kind="stable")
    pods = pods[_succeeded(timeline)[pods["row"].to_numpy()]]
    if pods["task"].nunique() < 2:
        return  # nothing but the process itself
    scenario = scenario_names(timeline).take(pods["row"].to_numpy()).to_numpy()
    table = pd.DataFrame(
        {
            "row": pods["row"].to_numpy(),
            "scenario": scenario,
            "task": pods["task"].astype("str").to_numpy(),
            "s": floats(pods, "end_s") - floats(pods, "start_s"),
        }
    )
    totals = table.groupby(["scenario", "row", "task"], sort=False)["s"].sum()
    for (name, task), of_runs in totals.groupby(["scenario", "task"], sort=False):
        yield ReportedPhase(str(name), str(task), len(of_runs), float(of_runs.mean()))


def _remarks(timeline: Timeline) -> tuple[tuple[str, int], ...]:
    said = timeline.runs["message"][_succeeded(timeline)]
    return tuple((str(remark), int(runs)) for remark, runs in said[said != ""].value_counts().items())


def _succeeded(timeline: Timeline) -> Bools:
    return (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)


def scenario_names(timeline: Timeline) -> "pd.Series[str]":
    """Per row of `runs`: its scenario's name. Later rounds over the scenarios add their number to the run's name."""
    runs = timeline.runs
    first = runs.drop_duplicates("scenario_id").set_index("scenario_id")["name"]
    names = {id_: str(name).removeprefix(f"{id_}-") for id_, name in first.items()}
    return runs["scenario_id"].map(names).astype("str")
