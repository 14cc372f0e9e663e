"""Which starts of pods were pulls of images where no event says so: the long ones on nodes that were new to their task.

Later pods of the task find the image on their node. Volumes to attach, or a slow kubelet, delay those as well.
"""

from dataclasses import replace

import numpy as np

from harness.analysis.timeline import Bools, Floats, Ints, Timeline, floats
from harness.model.phases import POD_PHASES, PULLING, STARTING

_MIN_STARTS = 5  # starts on nodes that had the image: too few to compare with
_MIN_LONG_S, _MIN_RATIO = 2.0, 3.0  # a long start takes as long, and as many times as long as usual
_MIN_SHARE_LONG = 0.8
_MAX_STARTS = 500_000  # starts: comparing more would take hundreds of megabytes


def with_likely_pulls(timeline: Timeline) -> Timeline | None:
    """The same timeline with long starts on new nodes as pulls.

    None where long starts have nothing to do with nodes, or too many would have to be compared.

    A node is new to a task until a pod of the task has started there. Pods that come to a new node together wait for
    the same pull.
    """
    starting = timeline.of_runs(STARTING)
    if np.count_nonzero(starting) > _MAX_STARTS:
        return None
    rows = np.flatnonzero(starting)
    starts = timeline.pods.take(rows)
    begun, over = floats(starts, "start_s"), np.nan_to_num(floats(starts, "end_s"), nan=timeline.end_s)
    length = over - begun
    place = starts.groupby(["node", "task"], observed=True, sort=False).ngroup().to_numpy().astype(np.int64)
    known = _known(place, begun, over)
    if np.count_nonzero(known) < _MIN_STARTS:
        return None
    long = length >= max(_MIN_LONG_S, _MIN_RATIO * float(np.median(length[known])))
    if not long.any() or np.count_nonzero(long & ~known) < _MIN_SHARE_LONG * np.count_nonzero(long):
        return None
    phase = timeline.pods["phase"].to_numpy().copy()
    phase[rows[long & ~known]] = POD_PHASES.index(PULLING)
    return replace(timeline, pods=timeline.pods.assign(phase=phase))


def _known(place: Ints, begun: Floats, over: Floats) -> Bools:
    """Per start: another at the same place was over before it began."""
    first_over = np.full(int(place.max(initial=-1)) + 1, np.inf)
    placed = place >= 0
    np.minimum.at(first_over, place[placed], over[placed])
    known = np.zeros(place.size, dtype=np.bool_)
    known[placed] = first_over[place[placed]] <= begun[placed]
    return known
