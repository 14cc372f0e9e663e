"""How long each step's container ran at least in a run that succeeded: no part of the step's work takes longer."""

from collections.abc import Mapping

from harness.analysis.timeline import Timeline
from harness.model.phases import RUNNING, SUCCEEDED


def quickest_s(timeline: Timeline) -> Mapping[str, float]:
    """Seconds by step. Of several pods of a step in one run, the longest counts: the others may have been lost."""
    succeeded = timeline.runs["state"].to_numpy() == SUCCEEDED
    ran = timeline.stretches(RUNNING)
    ran = ran[succeeded[ran["row"].to_numpy()]]
    took = (ran["end_s"] - ran["start_s"]).groupby([ran["task"].astype("str"), ran["row"], ran["pod"]]).sum()
    quickest = took.groupby(level=[0, 1]).max().groupby(level=0).min()
    return {str(task): float(seconds) for task, seconds in quickest.items()}
