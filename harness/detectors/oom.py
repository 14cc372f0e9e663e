"""Steps need more memory than they may have, and are killed."""

import re

from harness.analysis.failures import failures
from harness.analysis.timeline import Timeline
from harness.detectors.detector import RUNS, broke
from harness.model.findings import Evidence, Finding

NAME = "oom"
NEEDS = (RUNS,)

KILLED = re.compile(r"OOMKilled|out of memory|MemoryError|memory cgroup out", re.IGNORECASE)
_REASON = "OOMKilled"


def detect(timeline: Timeline) -> list[Finding]:
    """Containers that the kernel killed for memory, whether or not a retry saved the run."""
    events = timeline.events
    killed = events[
        (events["kind"] == "Pod") & ((events["reason"] == _REASON) | events["message"].str.contains(_REASON))
    ]
    said = [f for f in failures(timeline) if f.says(KILLED)]
    if not len(killed) and not said:
        return []
    pods = timeline.pods_called(killed["object"])
    tasks = sorted({task for task in pods["task"] if task} | {task for f in said for task in f.tasks})
    share = len(said) / max(len(timeline.runs), 1)
    where = f" in {', '.join(tasks[:5])}" if tasks else ""
    facts = [
        Evidence(
            f"{killed['object'].nunique():,} pods were killed for memory{where}",
            float(killed["object"].nunique()),
            "pods",
            "events",
            f"reason = {_REASON}",
        )
    ]
    if said:
        facts.append(
            Evidence(f"{len(said):,} runs ({share:.1%}) failed because of it", share, "share", "events", "kind = Run")
        )
    return [
        Finding(
            NAME,
            f"Steps ran out of memory{where}: {share:.0%} of the runs failed because of it",
            0.95 if len(killed) else 0.7,
            tuple(facts),
            "Raise the memory limit of the step (and its request to the same value), or make it read its "
            "data in parts.",
            tuple(f'{_variable(task)}.set_memory_request("…").set_memory_limit("…")' for task in tasks[:5]),
            broke(share),
        )
    ]


def _variable(task: str) -> str:
    return re.sub(r"\W", "_", task)
