"""What a wait for nodes would leave with more of them: pods on new nodes would pull their images there."""

import numpy as np

from harness.analysis.timeline import Floats, Ints, Timeline, floats
from harness.analysis.timeline.curves import peak
from harness.analysis.timeline.memory import remembered
from harness.model.phases import PULLING, UNSCHEDULABLE

_WHOLE = 0.5  # of the longest pull: shorter ones found most layers on their node


@remembered
def left_by_pulls(timeline: Timeline) -> float:
    """The share, 0 to 1, of the pods' wait for nodes that pulls on new nodes would take instead.

    New nodes are needed for as many pods as ever waited at once, so that the first ones of so many pay: each a whole
    pull, less what it pulled anyway, and at most as long as it waited. Later ones find the images.
    """
    waited, begun, pod = _stretches(timeline, UNSCHEDULABLE)
    if not waited.sum() > 0:
        return 0.0
    pulls, _, pulling = _stretches(timeline, PULLING)
    whole = float(pulls[pulls >= _WHOLE * pulls.max()].mean()) if pulls.size else 0.0
    own = np.bincount(pulling, weights=pulls, minlength=int(pod.max()) + 1)[pod]
    first = np.argsort(begun, kind="stable")[: int(peak(begun, begun + waited))]
    paid = np.clip(whole - own, 0.0, waited)[first]
    return float(paid.sum() / waited.sum())


def _stretches(timeline: Timeline, phase: str) -> tuple[Floats, Floats, Ints]:
    """Length and start of the pods' stretches in one phase, and the pods' numbers; those that go on last until now."""
    found = timeline.stretches(phase)
    begun = floats(found, "start_s")
    length = np.nan_to_num(floats(found, "end_s"), nan=timeline.end_s) - begun
    lasted = length > 0
    return length[lasted], begun[lasted], found["pod"].to_numpy().astype(np.int64)[lasted]
