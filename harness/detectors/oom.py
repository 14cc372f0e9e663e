"""Steps, or the platform's own pods, exceed their memory limit and are killed."""

import re
from math import ceil

import numpy as np
import orjson
import pandas as pd

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import Failure, failures
from harness.detectors.capability import Capability
from harness.detectors.detector import broke, slowed
from harness.detectors.error_texts import OUT_OF_MEMORY
from harness.model.findings import Evidence, Finding
from harness.model.phases import REQUESTED_MEMORY_BYTES

NAME = "oom"
NEEDS = (Capability.RUNS,)
FAULTS = ("oom",)

_REASON = "OOMKilled"
_MOST_NAMED = 5
_MI = 2**20


def detect(timeline: Timeline) -> list[Finding]:
    """Containers killed for memory, whether or not a retry saved the run."""
    of_pods = timeline.events[timeline.events["kind"] == "Pod"]
    killed = of_pods[(of_pods["reason"] == _REASON) | of_pods["message"].str.contains(_REASON)]
    known = timeline.names.take(timeline.numbers_of(killed["object"]))
    of_runs = killed["object"].isin(known) | (killed["run"].fillna("") != "").to_numpy(dtype=bool)
    failed = [f for f in failures(timeline) if f.says(OUT_OF_MEMORY)]
    steps, others = killed[of_runs], sorted(set(killed["object"][~of_runs]))
    found = [_of_steps(timeline, steps, failed)] if len(steps) or failed else []
    return [*found, _of_platform(timeline, others)] if others else found


def _of_steps(timeline: Timeline, killed: pd.DataFrame, failed: list[Failure]) -> Finding:
    pods = timeline.pods_called(killed["object"])
    tasks = sorted({task for task in pods["task"] if task} | {task for f in failed for task in f.tasks})
    share = len(failed) / max(len(timeline.runs), 1)
    where = f" in {', '.join(tasks[:_MOST_NAMED])}" if tasks else ""
    count = float(killed["object"].nunique())
    facts = [
        Evidence(f"{count:,.0f} pods were killed for memory{where}", count, "pods", "events", f"reason = {_REASON}")
    ]
    if failed:
        facts.append(
            Evidence(f"{len(failed):,} runs ({share:.1%}) failed because of it", share, "share", "events", "kind = Run")
        )
    return Finding(
        NAME,
        f"Steps ran out of memory{where}: {share:.0%} of the runs failed because of it",
        0.95 if count else 0.7,
        tuple(facts),
        "Raise the step's memory limit and set its request to the same value, or process the data in chunks.",
        _doubled(timeline, tasks[:_MOST_NAMED]),
        broke(share),
    )


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
    samples = timeline.metric(REQUESTED_MEMORY_BYTES)
    of_task: dict[str, float] = {}
    for labels, value in zip(samples["labels"], floats(samples, "value").tolist(), strict=True):
        task = str(orjson.loads(labels).get("task", ""))
        of_task[task] = float(np.fmax(of_task.get(task, 0.0), value))
    known = [(task, of_task[task]) for task in tasks if of_task.get(task, 0.0) > 0]
    return tuple(_setting(re.sub(r"\W", "_", task), f"{ceil(2 * size / _MI)}Mi") for task, size in known)


def _setting(variable: str, size: str) -> str:
    return f'{variable}.set_memory_request("{size}").set_memory_limit("{size}")'
