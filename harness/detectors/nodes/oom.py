"""Steps, or the platform's own pods, exceed their memory limit and are killed."""

import re
from collections.abc import Iterator
from math import ceil

import pandas as pd

from harness.analysis.waits.failures import Failure, own_events
from harness.analysis.waits.stated import failed_for, failures_for
from harness.detectors.detector import Bools, Capability, Evidence, Finding, Timeline, broke, slowed
from harness.detectors.error_texts import require_reasons
from harness.model.phases import REQUESTED_MEMORY_BYTES

NAME = "oom"
SEEN = ("real: oom",)
NEEDS = (Capability.RUNS,)
USES = {
    Capability.PODS: "the steps' tasks and requests",
    Capability.POD_EVENTS: "kills that a retry made good, and those of the platform's own pods",
    Capability.WORKFLOWS: "the runs whose pods were gone before they were seen",
}

_REASON = "OOMKilled"
_MOST_NAMED = 5  # steps that a finding lists
_MI = 2**20


def detect(timeline: Timeline) -> list[Finding]:
    """Containers killed for memory, whether or not a retry saved the run; pods of others' runs don't count."""
    own, others = own_events(timeline), (row.name for row in timeline.catalogue.rows if not row.general)
    told = timeline.runs["run"].iloc[sorted(failed_for(timeline, *{*others} - {NAME}))]
    killed = own[_is_killed(own) & ~own["run"].isin(told).to_numpy(dtype=bool)]
    failed = failures_for(timeline, NAME)
    found = [_of_steps(timeline, killed, failed)] if len(killed) or failed else []
    if not found and (suspects := [f for f in failures_for(timeline, "killed") if not _lost(timeline, f)]):
        found = [_of_suspects(timeline, suspects)]
    platforms = sorted(set(_platforms_own(timeline)))
    if not found and not platforms:
        require_reasons(timeline)
    return [*found, _of_platform(timeline, platforms)] if platforms else found


def _is_killed(events: pd.DataFrame) -> Bools:
    said = (events["reason"] == _REASON) | events["message"].str.contains(_REASON)
    return ((events["kind"] == "Pod") & said).to_numpy(dtype=bool)


def _platforms_own(timeline: Timeline) -> Iterator[str]:
    """Pods that were killed and work for no run: the observer records those of the platform's namespaces only."""
    events = timeline.events[_is_killed(timeline.events)]
    of_runs = set(timeline.names.take(timeline.numbers_of(events["object"])))
    for pod, run in zip(events["object"], events["run"].fillna(""), strict=True):
        if not run and pod not in of_runs:
            yield str(pod)


def _lost(timeline: Timeline, failure: Failure) -> bool:
    gone = timeline.nodes["name"][timeline.nodes["gone_s"].notna()]
    return bool(gone.isin(failure.nodes).any())


def _of_steps(timeline: Timeline, killed: pd.DataFrame, failed: list[Failure]) -> Finding:
    pods = timeline.pods_called(killed["object"])
    tasks = sorted({task for task in pods["task"] if task} | {task for f in failed for task in f.tasks})
    share = len(failed) / max(len(timeline.runs), 1)
    where = f" in {', '.join(tasks[:_MOST_NAMED])}" if tasks else ""
    count = float(killed["object"].nunique())
    facts = []
    if count:
        said = f"{count:,.0f} pods were killed for memory{where}"
        facts.append(Evidence(said, count, "pods", "events", f"reason = {_REASON}"))
    if failed:
        facts.append(_failed_runs(failed, share))
    return Finding(
        NAME,
        f"Steps ran out of memory{where}: {_percent(share)} of the runs failed because of it",
        0.95 if count else 0.7,
        tuple(facts),
        "Raise the step's memory limit and set its request to the same value, or process the data in chunks.",
        _doubled(timeline, tasks[:_MOST_NAMED]),
        broke(share),
    )


def _of_suspects(timeline: Timeline, failed: list[Failure]) -> Finding:
    share = len(failed) / max(len(timeline.runs), 1)
    tasks = sorted({task for f in failed for task in f.tasks})
    return Finding(
        NAME,
        f"Steps were killed, probably for memory: {_percent(share)} of the runs failed with exit code 137",
        0.6,
        (_failed_runs(failed, share),),
        "Raise the memory limit of the step and see whether it ends: the kernel kills a process above the limit "
        "without telling the kubelet if it is not the container's first one.",
        _doubled(timeline, tasks[:_MOST_NAMED]),
        broke(share),
    )


def _failed_runs(failed: list[Failure], share: float) -> Evidence:
    return Evidence(f"{len(failed):,} runs ({share:.1%}) failed because of it", share, "share", "events", "kind = Run")


def _percent(share: float) -> str:
    """In whole percent; small shares more precisely, so that one run of many is not none."""
    return f"{share:.0%}" if share >= 0.01 or not share else f"{share:.2%}"


def _of_platform(timeline: Timeline, names: list[str]) -> Finding:
    listed = ", ".join(names[:_MOST_NAMED])
    return Finding(
        NAME,
        f"Pods outside the runs ran out of memory: {listed}",
        0.9,
        (Evidence(f"{len(names):,} of them were killed for memory", float(len(names)), "pods", "events",
                  f"reason = {_REASON}"),),
        "Raise the memory limit of their workload: while a platform component restarts, runs wait for it.",
        (f"kubectl top pods -n {timeline.namespace} --sort-by=memory",),
        slowed(0.2),
    )  # fmt: skip


def _doubled(timeline: Timeline, tasks: list[str]) -> tuple[str, ...]:
    """Lines for the pipeline's author: twice the memory that the steps' pods requested, where that was observed."""
    of_task = timeline.labelled(REQUESTED_MEMORY_BYTES, "task").groupby("task")["value"].max()
    known = [(task, float(of_task[task])) for task in tasks if of_task.get(task, 0.0) > 0]
    return tuple(_setting(re.sub(r"\W", "_", task), f"{ceil(2 * size / _MI)}Mi") for task, size in known)


def _setting(variable: str, size: str) -> str:
    return f'{variable}.set_memory_request("{size}").set_memory_limit("{size}")'
