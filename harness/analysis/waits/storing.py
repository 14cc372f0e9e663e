"""How long steps stored their outputs, which a platform shows only in part.

Beside a step's main container, Argo's ``wait`` stores its log and the outputs that Argo knows: that is the time from
the end of the main container to the end of the pod. KFP's launcher stores artifacts within the main container; when,
only its log tells, which is read of a sample of the pods. Of the others of the same task the same share is assumed.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Bools, Floats, Ints, Timeline, distinct, remembered
from harness.analysis.waits.waits import waits_so_far
from harness.model.phases import POD_LOGS, RUNNING, STORING, UPLOAD_SECONDS

SLOW = 0.09  # of the runs' time, from which the store is slow


@dataclass(frozen=True, slots=True, eq=False)
class Storing:
    """Storing by the runs' pods, as seen and as estimated.

    Attributes:
        seen: share of all runs' time in the phase STORING.
        total_s: seconds of all pods, estimated.
        share: the same as `seen` with what other pods store while they seem to run.
        hidden: by task's code: share of the time that its pods seem to run in which they store.
        slow_s: 90th percentile of one pod, of those whose log was read if there are any; 0 without any.
        per_work: seconds of storing per second of work.
        logs: number of pods of runs whose log was read and shows an upload.
        unread: why no log of a pod was read.
    """

    seen: float
    total_s: float
    share: float
    hidden: Floats
    slow_s: float
    per_work: float
    logs: int
    unread: str

    @property
    def caveat(self) -> str:
        """What the phases leave open; "" where every pod's upload was seen."""
        if self.logs:
            return (
                f"storing was separated from running in {self.logs:,} pods, whose logs were read; in the others it is "
                "part of running"
            )
        return f"storing could not be separated from running: {self.unread}"


@remembered
def storing(timeline: Timeline) -> Storing:
    """Add up the phases of pods, and extrapolate from those whose logs were read to all pods of their tasks."""
    pods = timeline.pods
    shares = waits_so_far(timeline).shares()
    named = np.zeros(len(timeline.names), dtype=np.bool_)
    named[logged_pods(timeline)] = True
    logged = named[pods["pod"].to_numpy()]
    codes, tasks = pods["task"].cat.codes.to_numpy(), len(pods["task"].cat.categories)
    task, read, lengths = {}, {}, {}
    for phase in (RUNNING, STORING):
        there = timeline.of_runs(phase)
        task[phase], read[phase], lengths[phase] = codes[there], logged[there], timeline.seconds_of(there)
        np.maximum(lengths[phase], 0.0, out=lengths[phase])

    def by_task(phase: str, chosen: Bools) -> Floats:
        return np.bincount(task[phase][chosen], lengths[phase][chosen], tasks).astype(np.float64)

    run, stored = by_task(RUNNING, read[RUNNING]), by_task(STORING, read[STORING])
    ratio = stored / np.maximum(run + stored, 1e-9)
    others_run, others_stored = by_task(RUNNING, ~read[RUNNING]), by_task(STORING, ~read[STORING])
    estimated = stored + np.maximum(others_stored, ratio * (others_run + others_stored))
    seen, total = float((stored + others_stored).sum()), float(estimated.sum())
    running = float(lengths[RUNNING].sum())
    hidden = min((total - seen) / max(running, 1e-9), 1.0)
    by_task_hidden = (estimated - stored - others_stored) / np.maximum(run + others_run, 1e-9)
    of_pods = lengths[STORING][read[STORING]] if logged.any() else lengths[STORING]
    return Storing(
        seen=shares[STORING],
        total_s=total,
        share=shares[STORING] + hidden * shares[RUNNING],
        hidden=np.minimum(by_task_hidden, 1.0),
        slow_s=float(np.quantile(of_pods, 0.9)) if of_pods.size else 0.0,
        per_work=total / max(running - (total - seen), 1e-9),
        logs=distinct(pods["pod"].to_numpy()[logged]),
        unread=_unread(timeline),
    )


def _unread(timeline: Timeline) -> str:
    events = timeline.events
    said = events["message"][(events["kind"] == "Observer") & (events["object"] == POD_LOGS)]
    if not len(said):
        return "no log of a pod was read"
    if said.str.contains(": 403 ", regex=False).any():
        return "no permission to read logs of pods"
    return "the kubelets did not hand out logs of pods"


def logged_pods(timeline: Timeline) -> Ints:
    """Positions in `Timeline.names` of the pods whose logs show an upload."""
    return timeline.numbers_of(timeline.labelled(UPLOAD_SECONDS, "pod")["pod"])
