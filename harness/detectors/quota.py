"""A namespace's resource quota rejects pods."""

import numpy as np
import pandas as pd

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import own_events
from harness.analysis.waits.lacking import spare
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.detectors.error_texts import QUOTA_EXCEEDED
from harness.model.findings import Evidence, Finding
from harness.model.inert import shell_word

NAME = "quota"
NEEDS = (Capability.RUNS, Capability.WORKFLOWS)
FAULTS = ("quota",)

_UNKNOWN = 0.5


def detect(timeline: Timeline) -> list[Finding]:
    """The API server's refusal, in the message of a waiting node of the workflow.

    Argo writes no event about it, and the run goes on when there is room: nothing fails.
    """
    own = own_events(timeline)
    refused = own[[bool(QUOTA_EXCEEDED.search(text)) for text in own["message"].fillna("").astype(str)]]
    if not len(refused):
        return []
    example = str(refused["message"].iloc[0])
    found = QUOTA_EXCEEDED.search(example)
    name = (found[1] if found else "") or "quota"
    runs = float(refused["run"].nunique())
    said = f"pods of {runs:,.0f} runs that were looked at had to wait: “{example[:240]}”"
    return [
        Finding(
            NAME,
            f"The namespace's quota ({name}) rejects pods, and their runs wait",
            0.95,
            (Evidence(said, runs, "runs", "events", "reason = PENDING"),),
            "Raise the quota, or run fewer pods at once.",
            (
                f"kubectl describe resourcequota -n {timeline.namespace}",
                f"kubectl edit resourcequota {shell_word(name)} -n {timeline.namespace}",
            ),
            slowed(_waited(timeline, refused) * spare(timeline)),
        )
    ]


def _waited(timeline: Timeline, refused: pd.DataFrame) -> float:
    """The share of their time that the refused runs waited for their refused pods, on average."""
    runs, pods = timeline.runs, timeline.pods
    place = {name: row for row, name in enumerate(runs["run"])}
    due, row, start = floats(runs, "due_s"), pods["row"].to_numpy(), floats(pods, "start_s")
    over = np.where(timeline.is_open, timeline.end_s, floats(runs, "over_s"))
    longest: dict[int, float] = {}
    for (name, task), group in refused.groupby(["run", "object"]):
        at, since = place[str(name)], float(floats(group, "at_s").min())
        mine = start[(row == at) & (pods["task"] == task).to_numpy(dtype=bool) & (start >= since)]
        waited = (float(mine.min()) if mine.size else over[at]) - since
        share = waited / max(over[at] - due[at], 1e-9)
        longest[at] = max(longest.get(at, 0.0), float(np.nan_to_num(np.clip(share, 0.0, 1.0), nan=_UNKNOWN)))
    return float(np.mean(list(longest.values()))) if longest else _UNKNOWN
